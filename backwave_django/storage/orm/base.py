"""What every part of the Django store stands on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Concatenate, ParamSpec, TypeVar

from django.db import DatabaseError, InterfaceError

from ...core.limits import Limits
from ..capabilities import Capabilities
from ..dialects import dialect_for
from ..dialects.base import Dialect
from ..errors import StoreRejected, StoreUnavailable
from ..values import HistoryPolicy

S = TypeVar("S", bound="StoreBase")
P = ParamSpec("P")
R = TypeVar("R")


class StoreBase:
    """An alias, its dialect, and what becomes of database errors.

    Args:
        alias: the database alias, resolved once and for all.
        limits: the store's limits.
        history: what the transition log records.
        dialect: how the database does the hot operations; by default the alias's own.
    """

    def __init__(
        self,
        alias: str = "default",
        limits: Limits | None = None,
        history: HistoryPolicy = HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL,
        dialect: Dialect | None = None,
    ) -> None:
        self.alias = alias
        self.limits = limits or Limits()
        self.history = history
        self.dialect = dialect or dialect_for(alias)
        self.dialect.history = history

    @property
    def capabilities(self) -> Capabilities:
        """What the database can do."""
        return self.dialect.capabilities

    @property
    def supports_transactional_enqueue(self) -> bool:
        """Whether an enqueue joins the application's own transaction.

        True on the alias that holds the application's tables, taken to be ``default``.
        """
        return self.alias == "default"

    def current_time(self) -> datetime:
        """Read the database's clock; see ``JobStore.current_time``."""
        with self.faults():
            return self.dialect.current_time()

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Turn database errors into ``StoreUnavailable`` or ``StoreRejected``.

        In a caller's open transaction they pass unchanged: it is the caller's to retry.
        Outside, a connection found dead is dropped, so that the next call opens a new
        one.
        """
        try:
            yield
        except (DatabaseError, InterfaceError) as error:
            connection = self.dialect.connection
            connected = connection.connection is not None
            if connection.in_atomic_block or (connected and not connection.autocommit):
                raise
            transient = self.dialect.is_transient(error)
            if connected:
                connection.close_if_unusable_or_obsolete()
            kind = StoreUnavailable if transient else StoreRejected
            raise kind(f"database {self.alias!r}: {error}".strip()) from error

    def page(self, limit: int) -> int:
        """Clamp a wish to the limit of a page."""
        return max(0, min(limit, self.limits.max_monitor_page_size))


def guarded(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Let a method of a store raise what ``faults`` makes of database errors."""

    @functools.wraps(method)
    def inner(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.faults():
            return method(self, *args, **kwargs)

    return inner
