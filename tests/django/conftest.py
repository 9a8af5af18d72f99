"""Child processes with settings of their own, and databases that nobody else uses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from backwave_django.handlers.registry import Registry, registry
from tests.support.processes import ROOT, child_environment

ALIASES = ["default", "postgres"]


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The process-wide registry, emptied for this test and filled again after it."""
    monkeypatch.setattr(registry, "_types", {})
    monkeypatch.setattr(registry, "conflicts", [])
    return registry


# As little as the app needs; besides, its migrations are quick.
PLAIN = """
INSTALLED_APPS = ["backwave_django", "tests.testapp"]
MIDDLEWARE = []
TEMPLATES = []
ROOT_URLCONF = "own_urls"
"""


class Project:
    """A project of its own: the test settings with some lines after them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.settings("")

    def settings(self, lines: str) -> None:
        """Say what differs from the test settings."""
        text = f"from tests.settings import *\n{lines}\n"
        (self._directory / "own_settings.py").write_text(text)
        (self._directory / "own_urls.py").write_text("urlpatterns = []\n")

    def add_settings(self, lines: str) -> None:
        """Add to what was said last."""
        with (self._directory / "own_settings.py").open("a") as file:
            file.write(f"\n{lines}\n")

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start this Python with ``arguments``, under the settings."""
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self._directory,
            env={
                **child_environment(),
                "DJANGO_SETTINGS_MODULE": "own_settings",
                "PYTHONPATH": os.pathsep.join([str(self._directory), str(ROOT)]),
                "COLUMNS": "200",
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Run to the end; gives exit code, output and errors."""
        with self.start(*arguments, **environment) as process:
            try:
                output, errors = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return process.returncode, output, errors

    def manage(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Run a management command."""
        return self.run("-m", "django", *arguments, **environment)

    def python(self, lines: str, **environment: str) -> str:
        """Run some lines after ``django.setup()``; gives what they print.

        Raises:
            AssertionError: they raised.
        """
        program = f"import django\ndjango.setup()\n{lines}"
        code, output, errors = self.run("-c", program, **environment)
        assert code == 0, errors
        return output


@pytest.fixture
def project(tmp_path: Path, django_db_setup: None) -> Project:
    """A project that shares this test process's databases, unless told otherwise."""
    return Project(tmp_path)


@pytest.fixture(params=ALIASES, ids=["sqlite", "postgres"])
def fresh(
    request: pytest.FixtureRequest, project: Project, tmp_path: Path, django_db_blocker: Any
) -> Iterator[tuple[Project, str]]:
    """A project whose databases are new and empty, with its jobs in each of them in turn."""
    alias: str = request.param
    name = f"fresh_{os.getpid()}_{tmp_path.name[-20:].lower().replace('-', '_')}"
    with django_db_blocker.unblock():
        _execute(f'CREATE DATABASE "{name}"')
    project.settings(
        f"DATABASES['default']['NAME'] = {str(tmp_path / 'fresh.sqlite3')!r}\n"
        f"DATABASES['postgres']['NAME'] = {name!r}\n"
        f"BACKWAVE = {{'DATABASE': {alias!r}}}\n"
        "DATABASE_ROUTERS = ['backwave_django.routers.BackwaveRouter']\n"
        f"{PLAIN}"
    )
    yield project, alias
    with django_db_blocker.unblock():
        _execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _execute(statement: str) -> None:
    connection = connections["postgres"]
    with connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()
