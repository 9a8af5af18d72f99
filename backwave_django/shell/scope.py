"""What Django does around a request, around an attempt.

An attempt meets only connections that are alive and clean, and leaves none behind that
the next one could trip over:

* at its start, connections of the thread that are dead or too old are closed, and the
  query log of ``DEBUG`` is emptied;
* at its end, a connection with an open transaction, a changed autocommit or a broken
  atomic block is thrown away, with a warning; one that persists (``CONN_MAX_AGE``, a
  pool) and was used is reset, or closed where the database has no reset.

Django keeps connections per thread, so all of this happens in the thread that ran the
handler, and never touches the pump's own. An attempt that uses no database pays nothing.

Source: https://docs.djangoproject.com/en/5.2/ref/databases/#connection-management
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from asgiref.sync import SyncToAsync, sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from . import telemetry


class _Thread(threading.local):
    """Whether this thread has connected to any database since its scope was last empty.

    Asking Django for a thread's connections costs more than a short job, so threads that
    have never connected are not asked.
    """

    has_connected = False


_thread = _Thread()


def _note_connection(**_: object) -> None:
    _thread.has_connected = True


connection_created.connect(_note_connection, dispatch_uid="backwave_django.scope")


class ConnectionScope:
    """The connections of one attempt, in the thread that runs it."""

    __slots__ = ("_kept", "_wire_name")

    def __init__(self, wire_name: str) -> None:
        self._wire_name = wire_name
        self._kept: dict[str, _Watch] = {}

    def open(self) -> None:
        """Close what is dead or old; watch what is kept open from before."""
        if not _thread.has_connected:
            return
        for connection in connections.all(initialized_only=True):
            connection.queries_log.clear()
            connection.close_if_unusable_or_obsolete()
            if connection.connection is not None:
                watch = self._kept[connection.alias] = _Watch()
                connection.execute_wrappers.append(watch)

    def close(self) -> None:
        """Leave every connection of the thread clean, or gone."""
        if not _thread.has_connected:
            return
        _thread.has_connected = False
        for connection in connections.all(initialized_only=True):
            watch = self._kept.get(connection.alias)
            if watch is not None and watch in connection.execute_wrappers:
                connection.execute_wrappers.remove(watch)
            try:
                self._leave(connection, used=watch is None or watch.used)
            except Exception as error:  # noqa: BLE001 — whatever it is, the connection goes
                self._discard(connection, f"{type(error).__name__} while closing it")
            else:
                _thread.has_connected |= connection.connection is not None

    async def aclose(self) -> None:
        """Do the same for the thread in which this context ran its sync code, if any."""
        context = SyncToAsync.thread_sensitive_context.get(None)
        if context is not None and context in SyncToAsync.context_to_thread_executor:
            await sync_to_async(self.close, thread_sensitive=True)()

    def _leave(self, connection: BaseDatabaseWrapper, *, used: bool) -> None:
        dirt = dirt_of(connection)
        if dirt:
            self._discard(connection, dirt)
        elif connection.connection is not None:
            if used and _persists(connection) and not _reset(connection):
                connection.close()
            connection.close_if_unusable_or_obsolete()

    def _discard(self, connection: BaseDatabaseWrapper, dirt: str) -> None:
        telemetry.connection_left_dirty(connection.alias, dirt, self._wire_name)
        raw = connection.connection
        # Forget the wrapper with all that it believes; the next use makes a new one.
        del connections[connection.alias]
        with suppress(Exception):  # it is thrown away, and may well be broken
            _give_up(connection, raw)


class _Watch:
    """Notes whether a connection was used; an ``execute_wrapper``."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = False

    def __call__(self, execute: Callable[..., Any], *args: Any) -> Any:
        self.used = True
        return execute(*args)


def dirt_of(connection: BaseDatabaseWrapper) -> str:
    """Say what a handler left on a connection; empty if it is clean."""
    if connection.in_atomic_block or connection.closed_in_transaction:
        return "an atomic block was left open"
    if connection.needs_rollback:
        return "a broken transaction"
    raw = connection.connection
    if raw is None:
        return ""
    if connection.get_autocommit() != connection.settings_dict["AUTOCOMMIT"]:
        return "autocommit was changed"
    if connection.settings_dict["AUTOCOMMIT"] and _in_transaction(raw):
        return "a transaction was left open"
    if connection.execute_wrappers:
        return "an execute wrapper was left behind"
    return ""


def _in_transaction(raw: Any) -> bool:
    """Ask the driver: raw SQL can begin a transaction that Django knows nothing of."""
    if hasattr(raw, "in_transaction"):  # sqlite3
        return bool(raw.in_transaction)
    info = getattr(raw, "info", None)
    status = getattr(info, "transaction_status", None)  # psycopg
    return status is not None and bool(status.value)


def _persists(connection: BaseDatabaseWrapper) -> bool:
    options = connection.settings_dict.get("OPTIONS", {})
    return connection.settings_dict["CONN_MAX_AGE"] != 0 or bool(options.get("pool"))


def _reset(connection: BaseDatabaseWrapper) -> bool:
    """Undo what a session can carry over (settings, locks, temporary tables), if possible.

    Source: https://www.postgresql.org/docs/current/sql-discard.html
    """
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute("DISCARD ALL")
    connection.init_connection_state()  # Django's own session settings went with the rest
    return True


def _give_up(connection: BaseDatabaseWrapper, raw: Any) -> None:
    pool = getattr(connection, "pool", None) if _has_pool(connection) else None
    if raw is not None:
        raw.close()
        if pool is not None:
            pool.putconn(raw)  # a closed one: the pool replaces it


def _has_pool(connection: BaseDatabaseWrapper) -> bool:
    return bool(connection.settings_dict.get("OPTIONS", {}).get("pool"))
