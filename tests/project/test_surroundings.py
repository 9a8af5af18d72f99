"""The test project itself: two real databases, which child processes see as well."""

from __future__ import annotations

import os

import pytest
from django.db import connections

from tests.support.processes import child_environment, spawn_python, wait_until
from tests.testapp.models import Effect

ALIASES = ("default", "postgres")
WRITE_AN_EFFECT = """
import sys, django
django.setup()
from django.conf import settings
from tests.testapp.models import Effect
Effect.objects.using(settings.BACKWAVE["DATABASE"]).create(key=sys.argv[1], note="from a child")
print("written", flush=True)
"""


@pytest.mark.django_db(databases=ALIASES)
def test_sqlite_is_a_file_in_wal_mode():
    """Threads and processes share one file, and readers do not stop the writer."""
    connection = connections["default"]
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone() == ("wal",)
    assert os.path.isfile(connection.settings_dict["NAME"])


@pytest.mark.django_db(databases=ALIASES)
def test_postgres_is_real_and_recent():
    """The alias leads to a server, in a database that is this test process's own."""
    connection = connections["postgres"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == (connection.settings_dict["NAME"],)
    assert connection.settings_dict["NAME"].startswith("test_backwave_")
    assert connection.get_database_version() >= (14,)


@pytest.mark.django_db(transaction=True, databases=ALIASES)
@pytest.mark.parametrize("alias", ALIASES)
def test_a_child_process_writes_into_the_same_database(alias):
    """What a child commits in its default database is seen here, in that alias alone."""
    with spawn_python("-c", WRITE_AN_EFFECT, f"child-{alias}", alias=alias) as child:
        child.wait_for_output("written")
        assert child.wait() == 0
    for other in ALIASES:
        keys = set(Effect.objects.using(other).values_list("key", flat=True))
        assert keys == ({f"child-{alias}"} if other == alias else set())


def test_a_child_is_killed_with_its_own_children_when_its_block_ends():
    """A failing test leaves no process behind."""
    nested = "import subprocess,sys; subprocess.run([sys.executable,'-c','input()'],stdin=-1)"
    with spawn_python("-c", f"print('up', flush=True)\n{nested}") as child:
        child.wait_for_output("up")
        assert child.is_running
    assert not child.is_running
    with pytest.raises(ProcessLookupError):
        wait_until(lambda: os.killpg(child.pid, 0), 10)


def test_waiting_in_vain_says_for_what():
    """A wait has a limit and a message."""
    with pytest.raises(AssertionError, match="waited 0 s in vain: the moon"):
        wait_until(lambda: False, 0, "the moon")


def test_output_that_does_not_come_is_shown():
    """A child that ends early fails the test at once, with all that it said."""
    with (
        spawn_python("-c", "print('something else')") as child,
        pytest.raises(AssertionError, match="something else"),
    ):
        child.wait_for_output("hello", 30)


def test_a_child_keeps_its_jobs_where_the_test_says():
    """The alias travels by the environment."""
    assert child_environment("postgres")["BACKWAVE_TEST_DATABASE"] == "postgres"
