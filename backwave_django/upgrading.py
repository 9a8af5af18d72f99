"""What our migrations are made of, so that a live system can run them (rule 10.2).

Migrations name what stands here, so it stays importable for ever.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.migrations import AddIndex, Migration
from django.db.migrations.recorder import MigrationRecorder

from .conf import table_prefix

PAUSE_SECONDS = 0.2
"""Between two tries to get the lock of a migration that is not one transaction."""


class OrderedMigration(Migration):
    """A migration that several nodes may run at once: one does it, the others wait.

    ``migrate`` makes its plan before it takes any lock, so the others come with a plan
    that is out of date; they find the migration recorded, and do nothing but note it.
    """

    def apply(self, project_state: Any, schema_editor: Any, collect_sql: bool = False) -> Any:
        """Take turns, and apply what nobody has applied meanwhile."""
        if collect_sql:
            return super().apply(project_state, schema_editor, collect_sql)
        connection = schema_editor.connection
        with in_turn(connection):
            if (self.app_label, self.name) in MigrationRecorder(connection).applied_migrations():
                return self.mutate_state(project_state)
            state = super().apply(project_state, schema_editor, collect_sql)
            # Django records a migration in its own transaction only if nothing is left to do.
            for statement in schema_editor.deferred_sql:
                schema_editor.execute(statement, None)
            schema_editor.deferred_sql.clear()
            return state


@contextmanager
def in_turn(connection: Any) -> Iterator[None]:
    """Hold the lock of this installation's migrations, for a transaction or a while."""
    if connection.vendor == "postgresql":
        with _advisory_lock(connection):
            yield
    elif connection.vendor == "sqlite":
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            # It changes nothing, and takes the write lock before anything has been read.
            table = connection.ops.quote_name(MigrationRecorder.Migration._meta.db_table)
            cursor.execute(f"DELETE FROM {table} WHERE 0")
            yield
    else:
        yield


@contextmanager
def _advisory_lock(connection: Any) -> Iterator[None]:
    key = zlib.crc32(f"migrations of {table_prefix()}".encode())
    with connection.cursor() as cursor:
        if connection.in_atomic_block:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])
            yield
            return
        # Asked again and again: a statement that waits has a snapshot, for which a
        # concurrent build of an index waits in turn.
        while True:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
            if cursor.fetchone()[0]:
                break
            threading.Event().wait(PAUSE_SECONDS)
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [key])


class AddIndexQuietly(AddIndex):
    """Build an index without blocking writes, where the database can.

    On PostgreSQL ``CREATE INDEX CONCURRENTLY``, which is why its migration must not be
    atomic. What an interrupted build has left behind is invalid, and removed first:
    https://www.postgresql.org/docs/current/sql-createindex.html#SQL-CREATEINDEX-CONCURRENTLY
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Build the index, unless it is there."""
        connection = schema_editor.connection
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(connection.alias, model):
            return
        if connection.vendor != "postgresql":
            if not self._is_there(connection, model._meta.db_table):
                schema_editor.add_index(model, self.index)
            return
        is_valid = self._is_valid(connection)
        if is_valid:
            return
        concurrently = not connection.in_atomic_block
        if is_valid is False:
            name = schema_editor.quote_name(self.index.name)
            quietly = "CONCURRENTLY " * concurrently
            schema_editor.execute(f"DROP INDEX {quietly}{name}")
        schema_editor.add_index(model, self.index, concurrently=concurrently)

    def _is_there(self, connection: Any, table: str) -> bool:
        with connection.cursor() as cursor:
            return self.index.name in connection.introspection.get_constraints(cursor, table)

    def _is_valid(self, connection: Any) -> bool | None:
        """Whether the index can be used; ``None`` where there is none."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
                [connection.ops.quote_name(self.index.name)],
            )
            row = cursor.fetchone()
            return None if row is None else row[0]
