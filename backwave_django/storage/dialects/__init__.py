"""What each database does its own way: the only place that knows a database's name."""

from __future__ import annotations

from django.db import connections

from .base import Dialect


def dialect_for(alias: str) -> Dialect:
    """Give the dialect of an alias; the portable one where there is none of its own."""
    vendor = connections[alias].vendor
    if vendor == "postgresql":
        from .postgresql import PostgresDialect

        return PostgresDialect(alias)
    if vendor == "sqlite":
        from .sqlite import SQLiteDialect

        return SQLiteDialect(alias)
    return Dialect(alias)
