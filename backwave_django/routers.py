"""The router that keeps the tables of this app on ``BACKWAVE['DATABASE']``."""

from __future__ import annotations

from typing import Any

from .conf import app_label, configuration


class BackwaveRouter:
    """Routes the models of this app, and only those; for ``DATABASE_ROUTERS``."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        """Give the alias of the settings for our models."""
        return configuration().database if model._meta.app_label == app_label() else None

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        """Give the alias of the settings for our models."""
        return self.db_for_read(model)

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        """Let our tables be made there and nowhere else."""
        from .conf import app_label as our_label

        return db == configuration().database if app_label == our_label() else None
