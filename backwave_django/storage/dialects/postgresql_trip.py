"""One round trip to PostgreSQL: the statements of one transaction, sent together.

A trip is ``BEGIN``, the settings below, the statements, ``COMMIT``; the answers are read
when all of it is on its way. Either all of it holds or nothing does.

Source, for what a trip relies on:

* pipelines: https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html and
  https://www.postgresql.org/docs/current/libpq-pipeline-mode.html
* prepared statements, and the poolers that lose them:
  https://www.psycopg.org/psycopg3/docs/advanced/prepare.html
* https://docs.djangoproject.com/en/stable/ref/databases/#transaction-pooling-and-server-side-cursors
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.psycopg_any import is_psycopg3

if is_psycopg3:
    import psycopg

LOCK_TIMEOUT = "5s"
"""How long a statement waits for a lock, say of a migration that rewrites a table."""

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""The statements count on seeing what was committed before each of them, whatever the
alias or the server has for its default."""

SETTINGS = f"""SELECT set_config('lock_timeout', '{LOCK_TIMEOUT}', true),
       set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true)"""
"""For this transaction alone, so that nothing of it is left behind a pooler.

A plan is made for each execution, because the tables change faster than their
statistics: a plan that was right for an empty table would read a full one from end to
end. Compiling one costs more than running it.
"""

LOST_STATEMENT = ("26000", "42P05")
"""SQLSTATE: a prepared statement is not there, or is there already. Both mean a pooler
that moves transactions between the server's sessions."""

Rows = list[tuple[Any, ...]]


class Statement(NamedTuple):
    """The text of a statement, and what is put into it."""

    text: str
    parameters: Any = None


def can_pipeline(connection: BaseDatabaseWrapper) -> bool:
    """Whether a trip of its own is possible here.

    Not in an open transaction, which is the caller's, and not with a driver or a client
    library that knows no pipelines.
    """
    outside = not connection.in_atomic_block and connection.get_autocommit()
    return outside and is_psycopg3 and psycopg.Pipeline.is_supported()


def may_prepare(connection: BaseDatabaseWrapper) -> bool:
    """Whether the server's session is ours from one transaction to the next.

    Told by the setting with which a project says that it has a transaction pooler.
    """
    return not connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS", False)


def send(
    connection: BaseDatabaseWrapper, statements: Sequence[Statement], *, prepare: bool
) -> list[Rows]:
    """Run statements as one transaction in one round trip; give the rows of each."""
    with connection.cursor() as cursor:  # connects, and checks what Django checks
        raw = cursor.connection
    # As Django makes its own: what wraps executions, or logs them, is told of these too.
    make: Any = (
        connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    )
    cursors = []
    threshold = raw.prepare_threshold  # Django's ``None`` would overrule a cursor's wish
    with connection.wrap_database_errors:
        try:
            raw.prepare_threshold = 0
            with raw.pipeline():
                make(_Unprepared(raw)).execute(BEGIN)
                for text, parameters in (Statement(SETTINGS), *statements):
                    cursors.append(make(_Prepared(raw) if prepare else _Unprepared(raw)))
                    cursors[-1].execute(text, parameters)
                make(_Unprepared(raw)).execute("COMMIT")
        except BaseException:
            with suppress(psycopg.Error):  # where it is lost, the server has rolled back
                raw.rollback()
            raise
        finally:
            raw.prepare_threshold = threshold
        return [cursor.fetchall() for cursor in cursors[1:]]


def send_one_by_one(connection: BaseDatabaseWrapper, statements: Sequence[Statement]) -> list[Rows]:
    """Run statements in the transaction that is open, else in one of their own."""
    joins = connection.in_atomic_block
    answers = []
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if not joins:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute(SETTINGS)
        for text, parameters in statements:
            cursor.execute(text, parameters)
            answers.append(cursor.fetchall())
    return answers


if is_psycopg3:

    class _Prepared(psycopg.Cursor[Any]):
        """Sends parameters apart from the text, which the server reads once."""

        def execute(self, query: Any, params: Any = None, **_options: Any) -> Any:
            return super().execute(query, params, prepare=True)

    class _Unprepared(psycopg.Cursor[Any]):
        """Sends parameters apart from the text, which the server forgets."""

        def execute(self, query: Any, params: Any = None, **_options: Any) -> Any:
            return super().execute(query, params, prepare=False)
