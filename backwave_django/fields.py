"""The two column types of this package.

Migrations name them, so they stay importable for ever.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models

from .core.instants import from_micros, to_micros

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.expressions import Combinable

    _BigInteger = models.BigIntegerField[Any, Any]
    _Char = models.CharField[Any, Any]
else:
    _BigInteger = models.BigIntegerField
    _Char = models.CharField


class InstantField(_BigInteger):
    """An instant, kept as whole microseconds since 1970 UTC.

    The same number on every database, whatever ``USE_TZ``, ``DATABASES['TIME_ZONE']``
    or the session's time zone say; ordered as time is. In Python it is an aware UTC
    ``datetime``. See ``docs/decisions/0004-instants-are-whole-microseconds.md``.
    """

    if TYPE_CHECKING:  # what django-stubs reads: aware datetimes, not numbers
        _pyi_private_set_type: datetime | Combinable  # type: ignore[assignment]
        _pyi_private_get_type: datetime  # type: ignore[assignment]

    def from_db_value(self, value: int | None, *_: object) -> datetime | None:
        """Give the aware instant of a stored number."""
        return None if value is None else from_micros(value)

    def to_python(self, value: Any) -> Any:
        """Leave instants alone; make one of a number."""
        return from_micros(value) if isinstance(value, int) else value

    def get_prep_value(self, value: Any) -> Any:
        """Give the number that is stored for an aware instant."""
        return to_micros(value) if isinstance(value, datetime) else super().get_prep_value(value)


class NameField(_Char):
    """A name that compares by code point on every database (rule 0.6)."""

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        """Add the collation that compares by code point."""
        parameters = super().db_parameters(connection)
        parameters["collation"] = _CODE_POINT_COLLATIONS.get(connection.vendor)
        return parameters


_CODE_POINT_COLLATIONS = {
    # SQLite's own default, BINARY, compares by code point already.
    "postgresql": "C",
    # Source: https://learn.microsoft.com/sql/relational-databases/collations
    "microsoft": "Latin1_General_100_BIN2",
}
