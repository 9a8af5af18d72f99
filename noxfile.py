"""Every supported pair of Python and Django; `make test` runs one of them."""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False

# Django 6 needs Python 3.12.
PAIRS = [
    nox.param(python, django, id=f"py{python}-django{django}")
    for django, pythons in {
        "5.2": ("3.11", "3.12", "3.13"),
        "6.0": ("3.12", "3.13", "3.14"),
        "6.1": ("3.12", "3.13", "3.14"),
    }.items()
    for python in pythons
]


@nox.session
@nox.parametrize(("python", "django"), PAIRS)
def tests(session: nox.Session, django: str) -> None:
    """Run the test suite on one pair."""
    session.install("-e", ".[dev]", f"django~={django}.0")
    session.run("python", "-m", "pytest", "-n", "4", *session.posargs)
