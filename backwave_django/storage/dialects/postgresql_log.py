"""How far the transition log is settled on PostgreSQL (rule 9.2).

Two questions tell it. The cheap one asks for the oldest open transaction of the whole
server, and most often that is young enough. When it is not, it may be anybody's: a long
report of another database, a migration. So the second asks who holds a lock that a
writer of the log holds until its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .log import LogMark
from .sql import sql

Ask = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]

LOG_END = sql(
    "SELECT coalesce(pg_sequence_last_value("
    "pg_get_serial_sequence('{transition}', 'id')::regclass), 0)"
)
"""The last id that was drawn, whether its row has been committed or not."""

DRAW_TRANSACTION_ID = "SELECT pg_current_xact_id()::text::bigint"

OLDEST_OPEN_TRANSACTION = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
"""Of all transactions that have an id; this one at most.

Source: https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-SNAPSHOT
"""

OLDEST_OPEN_WRITER = sql("""
    SELECT coalesce(min(pg_current_xact_id()::text::bigint - age(own.transactionid)),
                    pg_current_xact_id()::text::bigint)
      FROM pg_locks AS log
      JOIN pg_locks AS own USING (virtualtransaction)
     WHERE log.locktype = 'relation' AND log.mode = 'RowExclusiveLock'
       AND log.relation = '{transition}'::regclass
       AND log.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND own.locktype = 'transactionid' AND own.mode = 'ExclusiveLock'
""")
"""Of the transactions that have written to the log, or may be about to; this one at most.

Whoever inserts holds ROW EXCLUSIVE on the table from before it draws a log id until its
rows can be seen, and an exclusive lock on its own transaction id.
Source: https://www.postgresql.org/docs/current/view-pg-locks.html
"""


def look(ask: Ask, *, in_callers_transaction: bool) -> LogMark:
    """Read the end of the log first, and draw a transaction id then.

    Whoever had drawn a log id by then had a transaction id as well, and a lower one:
    each of our statements writes the job before its log. In a caller's transaction,
    which may have had its id for long, nothing is known but the end.
    """
    ((end,),) = ask(LOG_END, [])
    if in_callers_transaction:
        return LogMark(end, 0)
    ((transaction_id,),) = ask(DRAW_TRANSACTION_ID, [])
    return LogMark(end, transaction_id)


def settled(ask: Ask, seen: LogMark, mark: LogMark | None) -> tuple[int, LogMark | None]:
    """Say up to where the log is settled, and what to remember for the next time."""
    if not seen.transaction_id:
        return seen.position, mark
    for oldest_open in (OLDEST_OPEN_TRANSACTION, OLDEST_OPEN_WRITER):
        ((oldest,),) = ask(oldest_open, [])
        if oldest >= seen.transaction_id:
            return seen.position, None
        if mark is not None and oldest >= mark.transaction_id:
            return mark.position, seen
    return 0, mark or seen
