"""What our migrations are made of, so that a live system can run them.

Migrations name what stands here, so it stays importable for ever.
"""

from __future__ import annotations

from typing import Any

from django.db.migrations import AddIndex


class AddIndexQuietly(AddIndex):
    """Build an index without blocking writes, where the database can (rule 10.2).

    On PostgreSQL ``CREATE INDEX CONCURRENTLY``, which is why its migration must not be
    atomic. What an interrupted build has left behind is removed first:
    https://www.postgresql.org/docs/current/sql-createindex.html#SQL-CREATEINDEX-CONCURRENTLY
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Build the index."""
        connection = schema_editor.connection
        if connection.vendor != "postgresql" or connection.in_atomic_block:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(connection.alias, model):
            name = schema_editor.quote_name(self.index.name)
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            schema_editor.add_index(model, self.index, concurrently=True)
