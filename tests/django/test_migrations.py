"""Migrations: forwards, backwards, at any prefix, twice in one database."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from .conftest import Project

WORK = """
from django.core.management import call_command
from django.db import connections
from django.test.utils import CaptureQueriesContext

def tables(alias, prefix="backwave_"):
    names = connections[alias].introspection.table_names()
    return sorted(name for name in names if name.startswith(prefix))

from backwave_django import models
COUNT = sum(isinstance(found, type) and found.__module__ == models.__name__ and
            issubclass(found, models.models.Model) for found in vars(models).values())
"""

ROUND_TRIP = """
alias, other = "{alias}", "{other}"
for name in (alias, other):
    call_command("migrate", database=name, verbosity=0)
there = tables(alias)
assert len(there) == COUNT > 7, there
assert tables(other) == [], "the router keeps them in one place"
from tests.testapp.jobs import nothing
nothing.using(tags=["t"], after=[nothing.enqueue()]).enqueue()
call_command("migrate", "backwave_django", "zero", database=alias, verbosity=0)
assert tables(alias) == []
call_command("migrate", database=alias, verbosity=0)
assert tables(alias) == there
nothing.enqueue()
call_command("migrate", database=alias, check_unapplied=True, verbosity=0)
print("round trip")
"""


def test_migrations_go_forwards_and_backwards(fresh: tuple[Project, str]) -> None:
    """With rows in the tables, and forwards again; the other alias gets no table."""
    project, alias = fresh
    project.add_settings("INSTALLED_APPS += ['django.contrib.contenttypes', 'django.contrib.auth']")
    other = "postgres" if alias == "default" else "default"
    output = project.python(WORK + ROUND_TRIP.format(alias=alias, other=other))
    assert output.strip() == "round trip"


@pytest.mark.django_db(databases=["default", "postgres"])
def test_no_migration_is_missing(project: Project) -> None:
    """At the default and another schema name, with either kind of primary key in the project."""
    pairs = list(itertools.product(["backwave", "other"], ["AutoField", "BigAutoField"]))
    processes = []
    for schema_name, auto_field in pairs:
        label = "backwave_django" if schema_name == "backwave" else "backwave_django_other"
        lines = (
            "import os\n"
            "BACKWAVE = {'SCHEMA_NAME': os.environ['OWN_SCHEMA']}\n"
            "DEFAULT_AUTO_FIELD = 'django.db.models.' + os.environ['OWN_AUTO_FIELD']"
        )
        project.settings(lines)
        processes.append(
            project.start(
                *("-m", "django", "makemigrations", label, "--check", "--dry-run"),
                OWN_SCHEMA=schema_name,
                OWN_AUTO_FIELD=auto_field,
            )
        )
    ended = [(*process.communicate(timeout=60), process.returncode) for process in processes]
    for pair, (output, errors, code) in zip(pairs, ended, strict=True):
        assert (code, errors) == (0, ""), (pair, output)
        assert "No changes detected in app 'backwave_django" in output


TWO = """
import os
from tests.testapp.jobs import nothing
from backwave_django import monitor
from backwave_django.models import Job
mine = os.environ["OWN_SCHEMA"]
call_command("migrate", database="{alias}", verbosity=0)
assert Job._meta.db_table == mine + "_job"
assert len(tables("{alias}", mine + "_")) == COUNT
before = monitor.count_jobs()
nothing.enqueue()
call_command("migrate", database="{alias}", check_unapplied=True, verbosity=0)
print(Job._meta.app_label, len(before), len(monitor.list_jobs()))
"""


def test_10_3_two_installations_share_a_database(fresh: tuple[Project, str]) -> None:
    """Each has tables, migrations and jobs of its own, and taking one away leaves the other."""
    project, alias = fresh
    project.add_settings("import os\nBACKWAVE['SCHEMA_NAME'] = os.environ['OWN_SCHEMA']")
    work = WORK + TWO.format(alias=alias)
    first = project.python(work, OWN_SCHEMA="backwave")
    second = project.python(work, OWN_SCHEMA="reports")
    assert first.split() == ["backwave_django", "0", "1"]
    assert second.split() == ["backwave_django_reports", "0", "1"]
    take_away = f"""
call_command("migrate", "backwave_django_reports", "zero", database="{alias}", verbosity=0)
print(len(tables("{alias}", "reports_")), len(tables("{alias}")) == COUNT)
"""
    assert project.python(WORK + take_away, OWN_SCHEMA="reports").split() == ["0", "True"]


def test_the_app_needs_no_admin_and_no_auth(fresh: tuple[Project, str]) -> None:
    """Checks, migrations, enqueueing and a worker, with nothing else installed."""
    project, alias = fresh
    lines = f"""
import sys
from django.apps import apps
assert not apps.is_installed("django.contrib.admin")
call_command("check", fail_level="ERROR")
call_command("migrate", database="{alias}", verbosity=0)
from backwave_django import monitor
from tests.testapp.jobs import nothing
job_id = nothing.enqueue()
call_command("backwave_worker", groups=["default"], burst=True, verbosity=0)
assert "django.contrib.admin" not in sys.modules
print(monitor.get_job(job_id).state.name)
"""
    assert project.python(WORK + lines).split()[-1] == "SUCCEEDED"


def test_ready_asks_no_database(project: Project) -> None:
    """Starting Django opens no connection and starts no thread."""
    lines: Any = """
import threading
from django.db import connections
assert [c.alias for c in connections.all(initialized_only=True) if c.connection] == []
assert threading.active_count() == 1
from backwave_django.handlers.registry import registry
assert registry.get("nothing") is not None, "jobs.py of an installed app is discovered"
print("quiet")
"""
    assert project.python(lines).strip() == "quiet"
