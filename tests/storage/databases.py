"""What the tests of a store over SQL share: looking into tables, and failing on purpose."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from backwave_django.models import (
    AuditRecord,
    DeadDelivery,
    Dependency,
    Job,
    JobContent,
    JobTag,
    Observer,
    Queue,
    QueueGate,
    Schedule,
    SkippedTick,
    Transition,
)

TABLES = (
    Dependency,
    JobContent,
    JobTag,
    Transition,
    Job,
    Queue,
    QueueGate,
    AuditRecord,
    Schedule,
    SkippedTick,
    Observer,
    DeadDelivery,
)
PATIENCE_SECONDS = 20


def rows_of_all_tables(alias: str) -> dict[str, list[tuple[Any, ...]]]:
    """Read every row of every table, as the database has it."""
    connection = connections[alias]
    found = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            name = connection.ops.quote_name(table._meta.db_table)
            cursor.execute(f"SELECT * FROM {name} ORDER BY 1")
            found[table.__name__] = [
                tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
                for row in cursor.fetchall()
            ]
    return found


class Failing:
    """Lets the n-th statement of a connection fail, before it runs or after."""

    def __init__(self, connection: BaseDatabaseWrapper, nth: int, *, after: bool = False) -> None:
        self._connection = connection
        self._left = nth
        self._after = after
        self.has_failed = False

    def __call__(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        self._left -= 1
        if self._left != 0:
            return execute(sql, params, many, context)
        self.has_failed = True
        if self._after and self._connection.in_atomic_block:
            execute(sql, params, many, context)
        raise OperationalError("this statement fails on purpose")

    @contextmanager
    def installed(self) -> Iterator[Failing]:
        """Be in the way of every statement for a while."""
        with self._connection.execute_wrapper(self):
            yield self


class Statements:
    """Collects the statements of a connection, each with its parameters."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self.seen: list[tuple[str, Any]] = []

    def __call__(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        self.seen.append((str(sql), params))
        return execute(sql, params, many, context)

    @contextmanager
    def collected(self) -> Iterator[list[tuple[str, Any]]]:
        """Collect for a while."""
        with self._connection.execute_wrapper(self):
            yield self.seen


@contextmanager
def elsewhere() -> Iterator[Callable[..., Future[Any]]]:
    """Run calls in another thread, which has connections of its own and closes them."""

    def run(call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        try:
            return call(*arguments)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        yield lambda call, *arguments: pool.submit(run, call, arguments)


def there(call: Callable[..., Any], *arguments: Any) -> Any:
    """Make one call in another thread and give its answer."""
    with elsewhere() as start:
        return start(call, *arguments).result(PATIENCE_SECONDS)


def without_waiting(alias: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Make a call in another thread, in which no statement may wait for a lock."""

    def hurried() -> Any:
        with connections[alias].cursor() as cursor:
            cursor.execute("SET lock_timeout = '1s'")
            cursor.execute("SET statement_timeout = '5s'")
        return call(*arguments)

    return there(hurried)


def still_waits(future: Future[Any], *, seconds: float = 0.1) -> bool:
    """Whether a call is not done yet, though it has had some time."""
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    return not done.wait(seconds)
