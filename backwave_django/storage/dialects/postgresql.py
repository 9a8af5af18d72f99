"""PostgreSQL: one statement for each hot operation.

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

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import msgspec

from ...core.commands import ClaimRequest
from ...core.events import Claimed, Renewal, Reported, Verdict
from ...core.instants import from_micros, to_micros
from ...core.outcomes import ClaimedJob, Lease
from ...core.states import JobState
from ..capabilities import Capabilities
from ..orm.rows import NewRow, Settling, TransitionLog, queue_order, stored_tag, tag_from_row
from ..values import HistoryPolicy
from . import postgresql_sql as statements
from .base import Dialect

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

    @property
    def capabilities(self) -> Capabilities:
        """All of them."""
        return Capabilities(
            durable=True, transactional_enqueue=True, skips_locked_rows=True, cluster_clock=True
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
    def writing(self, now: datetime) -> Iterator[TransitionLog]:
        """Make a transaction at READ COMMITTED, whatever the alias or the server says.

        The statements here count on seeing what was committed before each of them.
        """
        joins = self.connection.in_atomic_block
        with super().writing(now) as log:
            if not joins:
                self._execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", [])
            yield log

    def lock_parents(self, job_ids: Sequence[UUID]) -> None:
        """Take the weakest row lock: it lets the parents run, end and be cancelled."""
        self._execute(statements.LOCK_PARENTS, [list(job_ids)])

    def _rows(self, text: str, parameters: Any) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(text, parameters)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def _execute(self, text: str, parameters: Sequence[Any]) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text, parameters)

    # -- enqueue ------------------------------------------------------------------

    def insert_jobs(self, rows: Sequence[NewRow], now: datetime) -> dict[UUID, int]:
        """Insert everything in one statement; see ``Dialect.insert_jobs``."""
        if not rows:
            return {}
        tags = [(row.job.job_id, *stored_tag(tag)) for row in rows for tag in row.job.tags]
        text = statements.insert_jobs(logged=self._logged, tagged=bool(tags))
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
            to_micros(now),
            to_micros(now),
        ]
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
        """Lease due jobs in one statement, or by turns where a queue has a limit.

        Which it is, the first statement finds out itself; what is remembered of the
        limits only saves the attempt.
        """
        queues = [share.queue for share in request.shares]
        if self._limited.isdisjoint(queues):
            claimed = self._claim(worker_id, request, now, gated=False)
            if claimed is not None:
                return claimed
        with self.writing(now) as log:
            return self.claim_in(log, worker_id, request)

    def claim_in(self, log: TransitionLog, worker_id: str, request: ClaimRequest) -> Claimed:
        """Take turns with the other claimers of limited queues, then claim."""
        queues = [share.queue for share in request.shares]
        found = self._rows(statements.LOCK_GATES, [queues])
        self._limited = frozenset(name for name, limit in found if limit is not None)
        claimed = self._claim(worker_id, request, log.now, gated=True) or Claimed()
        if claimed.jobs or not self._limited:
            return claimed
        # Due work that only a limit held back means: look again at once.
        held_back = self._rows(statements.HELD_BACK, [sorted(self._limited), to_micros(log.now)])
        return Claimed((), log.now) if held_back else claimed

    def _claim(
        self, worker_id: str, request: ClaimRequest, now: datetime, *, gated: bool
    ) -> Claimed | None:
        """Give what was claimed; ``None`` where a limit asks for turns."""
        queues = [share.queue for share in request.shares]
        at = to_micros(now)
        second = any(share.most < request.max_jobs for share in request.shares)
        text = statements.claim(len(queues), second_pass=second, gated=gated, logged=self._logged)
        parameters: dict[str, Any] = {
            "queues": queues,
            "now": at,
            "room": request.max_jobs,
            "worker": worker_id,
            "expires": to_micros(now + request.lease_duration),
        }
        for place, share in enumerate(request.shares):
            parameters[f"queue{place}"] = share.queue
            parameters[f"most{place}"] = min(share.most, request.max_jobs)
        rows = self._rows(text, parameters)
        if rows[0][0]:
            self._limited = frozenset(queues)
            return None
        if rows[0][2] is None:
            next_due = rows[0][1]
            return Claimed((), None if next_due is None else from_micros(next_due))
        order = queue_order(queues)
        rows.sort(key=lambda row: (order[row[5]], row[8], row[2]))
        return Claimed([_claimed_job(row[3:], worker_id) for row in rows])

    # -- heartbeat ----------------------------------------------------------------

    def renew(
        self, leases: Sequence[Lease], duration: timedelta, now: datetime
    ) -> Sequence[Renewal]:
        """Renew leases in one statement."""
        rows = self._rows(
            statements.RENEW,
            [_json(map(_lease_object, count(1), leases)), to_micros(now + duration)],
        )
        return [_RENEWALS[answer] for _, answer in sorted(rows)]

    # -- outcomes -----------------------------------------------------------------

    def settle(
        self, batch: Sequence[Settling], now: datetime, *, ends_too: bool = False
    ) -> list[Reported | None]:
        """Write outcomes in one statement, with their log, tags and outputs."""
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
            logged=self._logged, tagged=bool(tags), with_output=bool(outputs), ends_too=ends_too
        )
        wants_detail = self.history is HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL
        asked = (
            _settling_object(place, item, wants_detail=wants_detail)
            for place, item in enumerate(batch, start=1)
        )
        parameters: list[Any] = [_json(asked), to_micros(now)]
        if self._logged:
            parameters.append(to_micros(now))
        if outputs:
            parameters += [list(column) for column in zip(*outputs, strict=True)]
        if tags:
            parameters += [list(column) for column in zip(*tags, strict=True)]
        return [_answer(*row[1:]) for row in sorted(self._rows(text, parameters))]

    def settle_in(
        self, log: TransitionLog, batch: Sequence[Settling], *, ends_too: bool = False
    ) -> list[Reported | None]:
        """Settle inside an open transaction; the statement writes the log itself."""
        return self.settle(batch, log.now, ends_too=ends_too) if batch else []


_RENEWALS = {
    0: Renewal.LOST,
    1: Renewal.BUSY,
    2: Renewal.RENEWED,
    3: Renewal.CANCEL_REQUESTED,
}


def _json(objects: Iterable[dict[str, Any]]) -> str:
    return msgspec.json.encode(list(objects)).decode()


def _lease_object(place: int, lease: Lease) -> dict[str, Any]:
    return {
        "ord": place,
        "job_id": lease.job_id,
        "worker_id": lease.worker_id,
        "attempt": lease.attempt,
        "claim_number": lease.claim_number,
    }


def _settling_object(place: int, item: Settling, *, wants_detail: bool) -> dict[str, Any]:
    settlement = item.settlement
    due_time = settlement.due_time
    return {
        **_lease_object(place, item.lease),
        "state": settlement.state.value,
        "due_time": None if due_time is None else to_micros(due_time),
        "cause": settlement.cause,
        "detail": settlement.detail if wants_detail else None,
        "gives_back": int(settlement.gives_attempt_back),
        "yields": settlement.yields_to_cancel,
    }


def _answer(code: int, state: int | None) -> Reported | None:
    match code:
        case 0:
            return Reported(Verdict.STALE)
        case 1:
            return Reported(Verdict.BUSY)
        case 2:
            return None
    return Reported(Verdict.APPLIED, _STATES[state])


_STATES: dict[int | None, JobState] = {state.value: state for state in JobState}


def _claimed_job(row: tuple[Any, ...], worker_id: str) -> ClaimedJob:
    job_id, wire_name, queue, attempt, claim, _, payload, tags, schedule, tick, trace = row
    return ClaimedJob(
        Lease(job_id, worker_id, attempt, claim),
        wire_name,
        queue,
        bytes(payload),
        tuple(map(tag_from_row, msgspec.json.decode(tags))) if tags else (),
        schedule,
        None if tick is None else from_micros(tick),
        trace,
    )
