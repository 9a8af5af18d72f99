"""``backwave_worker`` with bad input: one clear line, exit code 2, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Project

POSTGRES = "BACKWAVE = {'DATABASE': 'postgres'}\nDATABASES['postgres']"
SQLITE_NAME = "DATABASES['default']['NAME']"


@pytest.mark.parametrize(
    ("settings", "arguments", "line"),
    [
        ("", ["--group", "nope"], "unknown worker group 'nope'; known: default"),
        ("", ["--group", "defualt"], "unknown worker group 'defualt'; did you mean 'default'?"),
        ("", ["--group", "default", "--group", "x\ny"], r"unknown worker group 'x\ny'; known"),
        ("BACKWAVE = 3", [], "settings.BACKWAVE must be a dict, not 3"),
        ("BACKWAVE = {'DATABSE': 'x'}", [], "key 'DATABSE'; did you mean 'DATABASE'?"),
        ("BACKWAVE = {'SCHEMA_NAME': 'A'}", [], "['SCHEMA_NAME'] must match"),
        ("BACKWAVE = {'WORKER_GROUPS': {'g': {}}}", [], "worker group 'g' has no policy"),
        ("BACKWAVE = {'LIMITS': {'MaxPayloadBytes': 0}}", [], "limit MaxPayloadBytes must be"),
        (
            "BACKWAVE = {'DATABASE': 'postgres'}\nDATABASE_ROUTERS = []",
            [],
            "the database routers send the models of backwave_django to 'default' "
            "(backwave_django.E005). Put 'backwave_django.routers.BackwaveRouter' first",
        ),
        (f"{SQLITE_NAME} = '/no/such/directory/x'", [], "cannot reach database 'default': unable"),
        (f"{SQLITE_NAME} = __file__", [], "cannot reach database 'default': file is not a data"),
        (f"{SQLITE_NAME} = __file__ + '.db'", [], "lacks migrations"),
        (f"{POSTGRES}['NAME'] = 'no_such_database'", [], "cannot reach database 'postgres': conn"),
        (f"{POSTGRES}['HOST'] = '/no/such/socket'", [], "cannot reach database 'postgres': conn"),
        ("BACKWAVE = {'SCHEMA_NAME': 'other'}", [], "run manage.py migrate"),
    ],
)  # fmt: skip
def test_what_cannot_start_says_why_in_one_line(
    project: Project, settings: str, arguments: list[str], line: str
) -> None:
    """On standard error, and nothing on standard output."""
    project.settings(settings)
    code, output, errors = project.manage("backwave_worker", "--burst", *arguments)
    assert (code, output) == (2, "")
    assert "Traceback" not in errors
    [only] = errors.splitlines()
    assert only.startswith("CommandError: ")
    assert line in only


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--nope"], "unrecognized arguments: --nope"),
        (["extra"], "unrecognized arguments: extra"),
        (["--group"], "argument --group: expected one argument"),
        (["--grace", "soon"], "argument --grace: 'soon' is not a number of seconds from 0 up"),
        (["--grace", "-1"], "argument --grace: '-1' is not a number of seconds from 0 up"),
        (["--grace", "nan"], "argument --grace: 'nan' is not a number of seconds from 0 up"),
        (["--grace", "inf"], "argument --grace: 'inf' is not a number of seconds from 0 up"),
    ],
)
def test_a_wrong_option_is_named_under_the_usage(
    project: Project, arguments: list[str], line: str
) -> None:
    """As every command of Django does."""
    code, output, errors = project.manage("backwave_worker", *arguments)
    assert (code, output) == (2, "")
    assert "Traceback" not in errors
    assert errors.startswith("usage: ")
    assert errors.rstrip().endswith(line)


def test_a_missing_migration_names_the_command(fresh: tuple[Project, str]) -> None:
    """With the alias, where that is not the default one; once migrated, it starts."""
    project, alias = fresh
    code, _, errors = project.manage("backwave_worker", "--burst")
    assert code == 2
    [only] = errors.splitlines()
    command = "manage.py migrate" + (" --database postgres" if alias == "postgres" else "")
    assert f"database '{alias}' lacks migrations (0001_initial, " in only
    assert only.endswith(f"run {command}")
    assert project.manage(*command.split()[1:])[0] == 0
    code, output, errors = project.manage("backwave_worker", "--burst")
    assert code == 0, errors
    assert f"running default on database '{alias}'" in output


def test_help_shows_examples(project: Project) -> None:
    """As they are written, with the exit codes."""
    code, output, errors = project.manage("backwave_worker", "--help")
    assert (code, errors) == (0, "")
    for text in (
        "examples:\n  manage.py backwave_worker --group default ",
        "exit codes:\n  0  stopped cleanly",
        "--burst",
        "--grace S",
    ):
        assert text in output


def test_silent_where_that_is_wanted(project: Project, tmp_path: Path) -> None:
    """``-v 0`` says nothing when there is nothing to do."""
    project.settings("")
    code, output, errors = project.manage("backwave_worker", "--burst", "-v", "0")
    assert (code, output, errors) == (0, "", "")
