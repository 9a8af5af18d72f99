"""Migrations on a live system: at once from several nodes, and after an interruption."""

from __future__ import annotations

import pytest

from .conftest import Project

PREPARE = """
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
MigrationRecorder(connections["{alias}"]).ensure_schema()  # which Django does unordered
"""

# All wait for a file, so that none has finished before the others have begun.
AT_ONCE = """
import django, pathlib, sys
django.setup()
from django.core.management import call_command
from tests.support.processes import wait_until
pathlib.Path("ready-" + sys.argv[1]).touch()
wait_until(lambda: len(list(pathlib.Path().glob("ready-*"))) == 3)
call_command("migrate", "backwave_django", database="{alias}", verbosity=0)
print("migrated")
"""


def test_10_2_nodes_that_migrate_at_once_are_ordered(fresh: tuple[Project, str]) -> None:
    """One does the work, the others find nothing to do; nobody fails."""
    project, alias = fresh
    project.python(PREPARE.format(alias=alias))
    program = AT_ONCE.format(alias=alias)
    processes = [project.start("-c", program, str(number)) for number in range(3)]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in processes]
    assert [code for *_, code in ended] == [0, 0, 0], ended
    assert project.manage("migrate", "backwave_django", "--check", "--database", alias)[0] == 0


INTERRUPTED = """
from django.core.management import call_command
from django.db import connections
call_command("migrate", "backwave_django", "0002", database="postgres", verbosity=0)
with connections["postgres"].cursor() as cursor:
    cursor.execute("CREATE INDEX backwave_ended ON backwave_job (state)")
    cursor.execute("UPDATE pg_index SET indisvalid = false "
                   "WHERE indexrelid = 'backwave_ended'::regclass")
    call_command("migrate", database="postgres", verbosity=0)
    cursor.execute("SELECT indisvalid, indnatts FROM pg_index "
                   "WHERE indexrelid = 'backwave_ended'::regclass")
    print(*cursor.fetchone())
"""


@pytest.mark.parametrize("fresh", ["postgres"], indirect=True)
def test_10_2_an_index_whose_build_was_interrupted_is_built_anew(
    fresh: tuple[Project, str],
) -> None:
    """The database leaves an invalid one behind, under the same name."""
    project, _ = fresh
    assert project.python(INTERRUPTED).split() == ["True", "3"]


BUILT_QUIETLY = """
from django.core.management import call_command
call_command("migrate", database="postgres", verbosity=0)
from django.db import connections
from django.test.utils import CaptureQueriesContext
call_command("migrate", "backwave_django", "0002", database="postgres", verbosity=0)
with CaptureQueriesContext(connections["postgres"]) as queries:
    call_command("migrate", database="postgres", verbosity=0)
made = [q["sql"] for q in queries if "CREATE INDEX" in q["sql"] and "_job" in q["sql"]]
print(len(made), all("CONCURRENTLY" in sql for sql in made))
"""


@pytest.mark.parametrize("fresh", ["postgres"], indirect=True)
def test_10_2_an_index_on_a_live_table_is_built_without_blocking_writes(
    fresh: tuple[Project, str],
) -> None:
    """Each index that a later release adds to the job table."""
    project, _ = fresh
    count, quietly = project.python(BUILT_QUIETLY).split()
    assert int(count) >= 3
    assert quietly == "True"
