"""Routes the jobs to the alias of the settings, and lets both aliases have the tables."""

from __future__ import annotations

from typing import Any

from backwave_django.routers import BackwaveRouter


class TestRouter(BackwaveRouter):
    """``BackwaveRouter``, but every alias gets the tables: the tests use both."""

    __test__ = False

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        """Leave it to others."""
        return None
