"""A type checker takes the right uses, and refuses each wrong one on its own line.

mypy runs once for all tests of this module; it is told nothing of Django's plugin, as in a
project that has not installed it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT

HERE = Path(__file__).parent
CONFIGURATION = """
[mypy]
strict = true
python_version = 3.11
namespace_packages = true
explicit_package_bases = true
"""
ERROR = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[a-z-]+)\]$")
MARK = re.compile(r"# E: (?P<codes>[a-z,-]+)$")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, set[str]]]:
    """Run mypy; gives the codes of its errors by file and line."""
    configuration = tmp_path_factory.mktemp("mypy") / "mypy.ini"
    configuration.write_text(CONFIGURATION)
    files = sorted(str(path.relative_to(ROOT)) for path in HERE.glob("*_uses.py"))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", str(configuration)),
            *("--cache-dir", str(ROOT / ".cache/mypy-typing"), "--no-error-summary"),
            *("--follow-imports", "silent", "--hide-error-context", *files),
        ],
        cwd=ROOT, env={**os.environ, "MYPYPATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    errors: dict[str, dict[int, set[str]]] = {Path(file).name: {} for file in files}
    for line in done.stdout.splitlines():
        if match := ERROR.match(line):
            of_file = errors[Path(match["file"]).name]
            of_file.setdefault(int(match["line"]), set()).add(match["code"])
        else:
            assert ": note: " in line, line
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return errors


def test_right_uses_are_taken(found: dict[str, dict[int, set[str]]]) -> None:
    """Every way to enqueue that the documentation shows, with its exact types."""
    assert found["right_uses.py"] == {}


def test_wrong_uses_are_refused(found: dict[str, dict[int, set[str]]]) -> None:
    """Each marked line, with the error that it is marked with, and no other line."""
    expected: dict[int, set[str]] = {}
    for number, line in enumerate((HERE / "wrong_uses.py").read_text().splitlines(), 1):
        if match := MARK.search(line):
            expected[number] = set(match["codes"].split(","))
    assert len(expected) > 30
    given = found["wrong_uses.py"]
    missing = {n: codes for n, codes in expected.items() if not given.get(n, set()) & codes}
    assert missing == {}, f"not refused, or otherwise: { {n: given.get(n) for n in missing} }"
    assert {n: codes for n, codes in given.items() if n not in expected} == {}


def test_the_package_says_that_it_is_typed() -> None:
    """Without the marker, type checkers ignore what it declares (PEP 561)."""
    assert (ROOT / "backwave_django/py.typed").is_file()
