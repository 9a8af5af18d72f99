"""PostgreSQL: one statement for each hot operation, one round trip for a whole exchange.

Source, for what the statements rely on:

* ``SKIP LOCKED`` and the strengths of row locks:
  https://www.postgresql.org/docs/current/explicit-locking.html#LOCKING-ROWS
* a locking read gives the newest version of the row and checks its conditions again:
  https://www.postgresql.org/docs/current/transaction-iso.html#XACT-READ-COMMITTED
* all parts of one ``WITH`` see one snapshot, and talk by ``RETURNING`` alone:
  https://www.postgresql.org/docs/current/queries-with.html#QUERIES-WITH-MODIFYING
* error codes: https://www.postgresql.org/docs/current/errcodes-appendix.html

A claim picks its rows as ``= ANY (ARRAY (SELECT … LIMIT n))`` and not by a join: a join
with a limited subselect can become a hash join over the whole table once the batch is
large. A report joins by the whole fence, four columns wide, which the planner takes for
so selective that it looks each row up by its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from ...core.commands import ClaimRequest
from ...core.events import Claimed, Renewal, Reported, Verdict
from ...core.instants import from_micros, to_micros
from ...core.outcomes import Lease
from ..capabilities import Capabilities
from ..orm.rows import NewRow, Settling, TransitionLog, queue_order, stored_tag
from ..values import HistoryPolicy
from . import postgresql_log
from . import postgresql_sql as statements
from .base import Dialect
from .graph_sql import IS_ANCESTOR
from .log import LogMark
from .postgresql_rows import APPLIED, RENEWALS, claimed_job, leases_json, outcomes_json
from .postgresql_trip import (
    LOST_STATEMENT,
    Rows,
    Statement,
    can_pipeline,
    may_prepare,
    send,
    send_one_by_one,
)

_TRANSIENT_CLASSES = ("08", "53", "57")
"""Connection exceptions, insufficient resources, operator intervention."""

_TRANSIENT_STATES = {
    "25006",  # read-only transaction: a standby, or a server that fails over
    "40001",  # serialization failure
    "40P01",  # deadlock
    "55P03",  # lock not available
    "58030",  # input/output error
}


class PostgresDialect(Dialect):
    """PostgreSQL 14 and later."""

    def __init__(self, alias: str) -> None:
        super().__init__(alias)
        self._limited: frozenset[str] = frozenset()
        self._prepares = True

    @property
    def capabilities(self) -> Capabilities:
        """All of them."""
        return Capabilities(
            durable=True,
            transactional_enqueue=True,
            skips_locked_rows=True,
            cluster_clock=True,
            settles_log=True,
        )

    def is_transient(self, error: Exception) -> bool:
        """Tell by the SQLSTATE; an error without one is a lost connection."""
        state = getattr(error.__cause__, "sqlstate", None)
        if state is None:
            return super().is_transient(error)
        return state[:2] in _TRANSIENT_CLASSES or state in _TRANSIENT_STATES

    def current_time(self) -> datetime:
        """Read the server's clock, not the start of a transaction."""
        rows = self._rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", [])
        return from_micros(rows[0][0])

    @contextmanager
    def store_atomic(self) -> Iterator[None]:
        """Make a transaction at READ COMMITTED, whatever the alias or the server says.

        The statements here count on seeing what was committed before each of them. A
        lock is waited for as long as on the hot path. In a caller's transaction both are
        the caller's.
        """
        joins = self.connection.in_atomic_block
        with self.atomic():
            if not joins:
                self._execute(statements.OWN_TRANSACTION, None)
            yield

    def look_at_log(self) -> LogMark:
        """Read the end of the log, and draw a transaction id; see ``postgresql_log``."""
        joins = self.connection.savepoint_ids  # one more block than the store's own
        return postgresql_log.look(self._rows, in_callers_transaction=bool(joins))

    def settled(self, seen: LogMark, mark: LogMark | None) -> tuple[int, LogMark | None]:
        """Compare what was seen, or remembered, with the oldest that may still add to it."""
        return postgresql_log.settled(self._rows, seen, mark)

    def is_ancestor(self, ancestor: int, of: int) -> bool:
        """Whether one job gates another, however far up, in one statement."""
        return bool(self._rows(IS_ANCESTOR, [of, ancestor]))

    def lock_parents(self, job_ids: Sequence[UUID]) -> None:
        """Take the weakest row lock: it lets the parents run, end and be cancelled."""
        self._execute(statements.LOCK_PARENTS, [list(job_ids)])

    def _send(self, *sent: Statement) -> list[Rows]:
        """Run statements as one transaction, in one round trip where that is possible."""
        connection = self.connection
        if not can_pipeline(connection):
            return send_one_by_one(connection, sent)
        prepare = self._prepares and may_prepare(connection)
        try:
            return send(connection, sent, prepare=prepare)
        except DatabaseError as error:
            if not prepare or getattr(error.__cause__, "sqlstate", None) not in LOST_STATEMENT:
                raise
        # A pooler lost a statement, so nothing was done. Do without from now on.
        self._prepares = False
        return send(connection, sent, prepare=False)

    def _rows(self, text: str, parameters: Any) -> Rows:
        with self.connection.cursor() as cursor:
            cursor.execute(text, parameters)
            rows: Rows = cursor.fetchall()
            return rows

    def _execute(self, text: str, parameters: Sequence[Any] | None) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text, parameters)

    # -- enqueue ------------------------------------------------------------------

    def insert_jobs(self, rows: Sequence[NewRow], now: datetime) -> dict[UUID, int]:
        """Insert everything in one statement; see ``Dialect.insert_jobs``."""
        if not rows:
            return {}
        tags = [(row.job.job_id, *stored_tag(tag)) for row in rows for tag in row.job.tags]
        linked = any(row.job.is_linked for row in rows)
        text = statements.insert_jobs(logged=self._logged, tagged=bool(tags), linked=linked)
        parameters: list[Any] = [
            [row.job.job_id for row in rows],
            [row.job.wire_name for row in rows],
            [row.job.queue for row in rows],
            [row.job.payload for row in rows],
            [to_micros(row.job.due_time) for row in rows],
            [row.state.value for row in rows],
            [row.latch for row in rows],
            [row.job.mode.value for row in rows],
            [row.cause for row in rows],
            [row.job.trace_context for row in rows],
        ]
        if linked:
            ticks = [row.job.tick for row in rows]
            parameters += [
                [row.job.schedule_id for row in rows],
                [None if tick is None else to_micros(tick) for tick in ticks],
                [row.job.workflow_id for row in rows],
            ]
        parameters += [to_micros(now), to_micros(now)]
        if self._logged:
            parameters.append(to_micros(now))
        if tags:
            parameters += [list(column) for column in zip(*tags, strict=True)]
        return {job_id: sequence for sequence, job_id in self._rows(text, parameters)}

    @property
    def _logged(self) -> bool:
        return self.history is not HistoryPolicy.OFF

    # -- claim --------------------------------------------------------------------

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Lease due jobs in one round trip, or by turns where a queue has a limit.

        Which it is, the first statement finds out itself; what is remembered of the
        limits only saves the attempt.
        """
        if not self._is_limited(request):
            (rows,) = self._send(self._claim_statement(worker_id, request, now, gated=False))
            claimed = self._claimed(rows, worker_id, request)
            if claimed is not None:
                return claimed
        with self.writing(now) as log:
            return self.claim_in(log, worker_id, request)

    def claim_in(self, log: TransitionLog, worker_id: str, request: ClaimRequest) -> Claimed:
        """Take turns with the other claimers of limited queues, then claim."""
        queues = [share.queue for share in request.shares]
        found = self._rows(statements.LOCK_GATES, [queues])
        self._limited = frozenset(name for name, limit in found if limit is not None)
        rows = self._rows(*self._claim_statement(worker_id, request, log.now, gated=True))
        claimed = self._claimed(rows, worker_id, request) or Claimed()
        if claimed.jobs or not self._limited:
            return claimed
        # Due work that only a limit held back means: look again at once.
        held_back = self._rows(statements.HELD_BACK, [sorted(self._limited), to_micros(log.now)])
        return Claimed((), log.now) if held_back else claimed

    def _is_limited(self, request: ClaimRequest) -> bool:
        return not self._limited.isdisjoint(share.queue for share in request.shares)

    def _claim_statement(
        self,
        worker_id: str,
        request: ClaimRequest,
        now: datetime,
        *,
        gated: bool,
        reported: bool = False,
    ) -> Statement:
        text = statements.claim(
            len(request.shares),
            second_pass=any(share.most < request.max_jobs for share in request.shares),
            gated=gated,
            logged=self._logged,
            reported=reported,
        )
        parameters: dict[str, Any] = {
            "queues": [share.queue for share in request.shares],
            "now": to_micros(now),
            "room": request.max_jobs,
            "worker": worker_id,
            "expires": to_micros(now + request.lease_duration),
        }
        for place, share in enumerate(request.shares):
            parameters[f"queue{place}"] = share.queue
            parameters[f"most{place}"] = min(share.most, request.max_jobs)
        return Statement(text, parameters)

    def _claimed(self, rows: Rows, worker_id: str, request: ClaimRequest) -> Claimed | None:
        """Give what was claimed; ``None`` where a limit asks for turns."""
        queues = [share.queue for share in request.shares]
        if rows[0][0]:
            self._limited = frozenset(queues)
            return None
        if rows[0][2] is None:
            next_due = rows[0][1]
            return Claimed((), None if next_due is None else from_micros(next_due))
        order = queue_order(queues)
        rows.sort(key=lambda row: (order[row[5]], row[8], row[2]))
        return Claimed([claimed_job(row[3:], worker_id) for row in rows])

    # -- heartbeat ----------------------------------------------------------------

    def renew(
        self, leases: Sequence[Lease], duration: timedelta, now: datetime
    ) -> Sequence[Renewal]:
        """Renew leases in one round trip."""
        asked = leases_json(enumerate(leases, start=1))
        (rows,) = self._send(Statement(statements.RENEW, [asked, to_micros(now + duration)]))
        return [RENEWALS[answer] for _, answer in sorted(rows)]

    # -- outcomes -----------------------------------------------------------------

    def exchange(
        self, batch: Sequence[Settling], worker_id: str, request: ClaimRequest, now: datetime
    ) -> tuple[list[Reported | None], Claimed | None]:
        """Settle, then claim, in one transaction and one round trip; see ``Dialect``."""
        if self._is_limited(request):
            return self.settle(batch, now), None
        settled, rows = self._send(
            self._settle_statement(batch, now, notes_all=True),
            self._claim_statement(worker_id, request, now, gated=False, reported=True),
        )
        answers = self._answers(batch, settled)
        if any(answer is None or answer.verdict is not Verdict.APPLIED for answer in answers):
            return answers, None  # the claim had no room
        return answers, self._claimed(rows, worker_id, request)

    def settle(
        self, batch: Sequence[Settling], now: datetime, *, ends_too: bool = False
    ) -> list[Reported | None]:
        """Write outcomes in one statement, with their log, tags and outputs."""
        (rows,) = self._send(self._settle_statement(batch, now, ends_too=ends_too))
        return self._answers(batch, rows)

    def _answers(self, batch: Sequence[Settling], rows: Rows) -> list[Reported | None]:
        """Give an answer per outcome; look again for those that were not found."""
        states = {row[0]: row[1] for row in rows}
        missing = [place for place in range(1, len(batch) + 1) if place not in states]
        alive = set()
        if missing:
            asked = leases_json((place, batch[place - 1].lease) for place in missing)
            alive = {place for (place,) in self._rows(statements.ALIVE, [asked])}
        answers: list[Reported | None] = []
        for place in range(1, len(batch) + 1):
            if place not in states:
                answers.append(Reported(Verdict.BUSY if place in alive else Verdict.STALE))
            elif states[place] is None:
                answers.append(None)
            else:
                answers.append(APPLIED[states[place]])
        return answers

    def _settle_statement(
        self,
        batch: Sequence[Settling],
        now: datetime,
        *,
        ends_too: bool = False,
        notes_all: bool = False,
    ) -> Statement:
        tags = [
            (place, *stored_tag(tag))
            for place, item in enumerate(batch, start=1)
            for tag in item.tags
        ]
        outputs = [
            (place, item.settlement.output)
            for place, item in enumerate(batch, start=1)
            if item.settlement.output is not None
        ]
        text = statements.settle(
            logged=self._logged,
            tagged=bool(tags),
            with_output=bool(outputs),
            ends_too=ends_too,
            notes_all=notes_all,
        )
        wants_detail = self.history is HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL
        asked = outcomes_json(batch, wants_detail=wants_detail)
        parameters: list[Any] = [asked, to_micros(now)]
        if self._logged:
            parameters.append(to_micros(now))
        if outputs:
            parameters += [list(column) for column in zip(*outputs, strict=True)]
        if tags:
            parameters += [list(column) for column in zip(*tags, strict=True)]
        if notes_all:
            parameters.append(len(batch))
        return Statement(text, parameters)

    def settle_in(
        self, log: TransitionLog, batch: Sequence[Settling], *, ends_too: bool = False
    ) -> list[Reported | None]:
        """Settle inside an open transaction; the statement writes the log itself."""
        return self.settle(batch, log.now, ends_too=ends_too) if batch else []
