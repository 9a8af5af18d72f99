"""SQLite: one writer at a time, so few statements and short transactions.

Every write transaction starts with ``BEGIN IMMEDIATE``: it waits for its turn at its
start, where waiting is harmless, and never fails halfway for want of the lock. An
exchange is one such transaction: its report and its claim pay for one commit.

Source, for what the statements rely on:

* transactions and the busy time-out: https://www.sqlite.org/lang_transaction.html
* ``UPDATE … FROM``: https://www.sqlite.org/lang_update.html#update_from
* ``RETURNING``, whose order is arbitrary: https://www.sqlite.org/lang_returning.html
* result codes: https://www.sqlite.org/rescode.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from ...core.commands import ClaimRequest
from ...core.events import Claimed, Renewal, Reported, Verdict
from ...core.instants import from_micros, to_micros
from ...core.outcomes import ClaimedJob, LapsedLease, Lease
from ...core.states import JobState
from ..capabilities import Capabilities
from ..orm.rows import (
    LogEntry,
    NewRow,
    Settling,
    TransitionLog,
    queue_order,
    stored_tag,
    tag_from_row,
)
from . import sqlite_sql as statements
from .base import Dialect
from .graph_sql import IS_ANCESTOR

Item = TypeVar("Item")

_TRANSIENT_CODES = {
    5,  # SQLITE_BUSY
    6,  # SQLITE_LOCKED
    7,  # SQLITE_NOMEM
    10,  # SQLITE_IOERR
    13,  # SQLITE_FULL: room may be made
    14,  # SQLITE_CANTOPEN
    15,  # SQLITE_PROTOCOL
}


class SQLiteDialect(Dialect):
    """SQLite 3.35 and later, as a file."""

    joins_exchange = True

    def __init__(self, alias: str) -> None:
        super().__init__(alias)
        self._quiet = False

    @property
    def capabilities(self) -> Capabilities:
        """One writer at a time: an open write transaction makes every other write wait."""
        return Capabilities(
            durable=True,
            transactional_enqueue=True,
            skips_locked_rows=False,
            cluster_clock=False,
            settles_log=True,
        )

    def is_transient(self, error: Exception) -> bool:
        """Tell by the primary result code."""
        code = getattr(error.__cause__, "sqlite_errorcode", None)
        return code is not None and code & 0xFF in _TRANSIENT_CODES

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Open a transaction with the write lock in hand, or a savepoint."""
        connection: Any = self.connection
        if connection.in_atomic_block:
            with super().atomic():
                yield
            return
        connection.ensure_connection()  # which is what sets the mode
        if not connection.get_autocommit() and not connection.connection.in_transaction:
            # Without this, the savepoint below would be the transaction, and its release
            # a commit: https://www.sqlite.org/lang_savepoint.html
            with connection.cursor() as cursor:
                cursor.execute("BEGIN IMMEDIATE")
        mode = connection.transaction_mode
        connection.transaction_mode = "IMMEDIATE"
        try:
            with super().atomic():
                yield
        finally:
            connection.transaction_mode = mode

    def _rows(self, text: str, parameters: Any) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(text, parameters)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def is_ancestor(self, ancestor: int, of: int) -> bool:
        """Whether one job gates another, however far up, in one statement."""
        return bool(self._rows(IS_ANCESTOR, [of, ancestor]))

    # -- enqueue ------------------------------------------------------------------

    def insert_jobs(self, rows: Sequence[NewRow], now: datetime) -> dict[UUID, int]:
        """Insert jobs in a statement per table; see ``Dialect.insert_jobs``."""
        if not rows:
            return {}
        with self.writing(now) as log:
            found = self._rows(
                statements.insert_jobs(len(rows)),
                [value for row in rows for value in _job_values(row, to_micros(now))],
            )
            inserted = {UUID(hex=job_id): sequence for sequence, job_id in found}
            done = [row for row in rows if row.job.job_id in inserted]
            if done:
                self._insert_hanging(done, inserted)
            log.extend(LogEntry(inserted[row.job.job_id], 1, row.state, 0, 0) for row in done)
        return inserted

    def _insert_hanging(self, rows: list[NewRow], inserted: dict[UUID, int]) -> None:
        contents = [(inserted[row.job.job_id], row.job.payload) for row in rows]
        self._insert(statements.CONTENT, contents)
        self._insert_tags((inserted[row.job.job_id], tag) for row in rows for tag in row.job.tags)

    def _insert_tags(self, tags: Any) -> None:
        self._insert(statements.TAG, [(sequence, *stored_tag(tag)) for sequence, tag in tags])

    def _insert(self, target: tuple[str, str], rows: Sequence[tuple[Any, ...]]) -> None:
        step = statements.PARAMETERS_MAX // max(1, len(rows[0]) if rows else 1)
        for start in range(0, len(rows), step):
            chunk = rows[start : start + step]
            text = statements.insert(target, len(chunk), len(chunk[0]))
            with self.connection.cursor() as cursor:
                cursor.execute(text, [value for row in chunk for value in row])

    def write_log(self, log: TransitionLog) -> None:
        """Write the entries of a log in one statement."""
        at = to_micros(log.now)
        self._insert(
            statements.TRANSITION,
            [
                (e.sequence, e.ordinal, at, e.state.value, e.attempt, e.claim_number,
                 e.worker_id, e.detail)
                for e in log.take()
            ],
        )  # fmt: skip

    # -- claim --------------------------------------------------------------------

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Lease due jobs; an idle claim only reads, and leaves the write lock alone."""
        if self._quiet:
            next_due = self._earliest_due(request, now)
            if next_due is None or next_due > now:
                return Claimed((), next_due)
        with self.writing(now) as log:
            return self.claim_in(log, worker_id, request)

    def claim_in(self, log: TransitionLog, worker_id: str, request: ClaimRequest) -> Claimed:
        """Lease due jobs inside an open transaction."""
        queues = [share.queue for share in request.shares]
        second = any(share.most < request.max_jobs for share in request.shares)
        parameters: dict[str, Any] = {
            "now": to_micros(log.now),
            "room": request.max_jobs,
            "worker": worker_id,
            "expires": to_micros(log.now + request.lease_duration),
        }
        for place, share in enumerate(request.shares):
            parameters[f"queue{place}"] = share.queue
            parameters[f"most{place}"] = min(share.most, request.max_jobs)
        rows = self._rows(statements.claim(len(queues), second_pass=second), parameters)
        self._quiet = not rows
        if not rows:
            return Claimed((), self._earliest_due(request, log.now))
        order = queue_order(queues)
        rows.sort(key=lambda row: (order[row[3]], row[7], row[0]))
        for sequence, _, _, _, attempt, claim_number, ordinal, *_rest in rows:
            entry = (ordinal, JobState.LEASED, attempt, claim_number, worker_id)
            log.add(LogEntry(sequence, *entry))
        return Claimed([_claimed_job(row, worker_id) for row in rows])

    def _earliest_due(self, request: ClaimRequest, now: datetime) -> datetime | None:
        queues = [share.queue for share in request.shares]
        earliest = self._rows(statements.next_due(len(queues)), queues)[0][0]
        return None if earliest is None else max(now, from_micros(earliest))

    # -- heartbeat ----------------------------------------------------------------

    def renew(
        self, leases: Sequence[Lease], duration: timedelta, now: datetime
    ) -> Sequence[Renewal]:
        """Renew leases in one statement."""
        return [
            renewal
            for batch in unambiguous(leases, lambda lease: lease.job_id)
            for renewal in self._renew(batch, now + duration)
        ]

    def _renew(self, leases: Sequence[Lease], until: datetime) -> list[Renewal]:
        asked = _json([_lease_values(lease) for lease in leases])
        rows = self._rows(statements.RENEW, [to_micros(until), asked])
        causes = {UUID(hex=job_id): cause for job_id, cause in rows}
        answers = {True: Renewal.RENEWED, False: Renewal.CANCEL_REQUESTED}
        return [
            answers[causes[lease.job_id] is None] if lease.job_id in causes else Renewal.LOST
            for lease in leases
        ]

    # -- outcomes -----------------------------------------------------------------

    def settle_in(
        self, log: TransitionLog, batch: Sequence[Settling], *, ends_too: bool = False
    ) -> list[Reported | None]:
        """Write outcomes with a statement for the jobs, and one each for tags and outputs."""
        return [
            answer
            for part in unambiguous(batch, lambda item: item.lease.job_id)
            for answer in self._settle_in(log, part, ends_too=ends_too)
        ]

    def _settle_in(
        self, log: TransitionLog, batch: Sequence[Settling], *, ends_too: bool
    ) -> list[Reported | None]:
        values = _json([_settling_values(item) for item in batch])
        rows = self._rows(statements.settle(ends_too=ends_too), [to_micros(log.now), values])
        applied = {UUID(hex=row[1]): row for row in rows}
        pending = set() if ends_too or len(applied) == len(batch) else self._alive(batch)
        answers: list[Reported | None] = []
        for item in batch:
            row = applied.get(item.lease.job_id)
            if row is not None:
                sequence, _, state, attempt, claim_number, ordinal = row
                entry = (ordinal, JobState(state), attempt, claim_number)
                log.add(LogEntry(sequence, *entry, detail=item.settlement.detail))
                answers.append(Reported(Verdict.APPLIED, JobState(state)))
            else:
                answers.append(None if item.lease in pending else Reported(Verdict.STALE))
        written = [
            (applied[item.lease.job_id][0], item)
            for item, answer in zip(batch, answers, strict=True)
            if answer is not None and answer.state is not None
        ]
        self._insert_tags((sequence, tag) for sequence, item in written for tag in item.tags)
        outputs = [(s, i.settlement.output) for s, i in written if i.settlement.output is not None]
        self._insert(statements.OUTPUT, [(s, b"", output) for s, output in outputs])
        return answers

    def lapsed(
        self, queues: Sequence[str] | None, max_jobs: int, now: datetime, *, lock: bool
    ) -> list[LapsedLease]:
        """Find leases past their end; the state is a literal, so the partial index applies."""
        text = statements.lapsed(None if queues is None else len(queues))
        rows = self._rows(text, [to_micros(now), *(queues or ()), max_jobs])
        return [
            LapsedLease(Lease(UUID(hex=job_id), *rest), wire_name, queue, from_micros(expires_at))
            for job_id, *rest, wire_name, queue, expires_at in rows
        ]

    def _alive(self, batch: Sequence[Settling]) -> set[Lease]:
        """Give the leases of a batch that are alive, though their outcome was not written."""
        rows = self._rows(statements.alive(len(batch)), [item.lease.job_id.hex for item in batch])
        return {Lease(UUID(hex=job_id), *rest) for job_id, *rest in rows}


def unambiguous(items: Sequence[Item], key: Callable[[Item], UUID]) -> Iterator[list[Item]]:
    """Split a batch so that no part names a job twice.

    ``RETURNING`` tells which rows an update met, not which of the items met them. Almost
    every batch is one part.
    """
    part: dict[UUID, Item] = {}
    for item in items:
        if key(item) in part:
            yield list(part.values())
            part = {}
        part[key(item)] = item
    if part:
        yield list(part.values())


def _json(rows: list[list[Any]]) -> str:
    return msgspec.json.encode(rows).decode()


def _job_values(row: NewRow, now: int) -> tuple[Any, ...]:
    job = row.job
    return (
        job.job_id.hex, job.wire_name, job.queue, row.state.value, to_micros(job.due_time), now,
        now if row.state.is_terminal else None, row.cause, job.mode.value, row.latch,
        job.trace_context, job.schedule_id, None if job.tick is None else to_micros(job.tick),
        None if job.workflow_id is None else job.workflow_id.hex,
    )  # fmt: skip


def _lease_values(lease: Lease) -> list[Any]:
    return [lease.job_id.hex, lease.worker_id, lease.attempt, lease.claim_number]


def _settling_values(item: Settling) -> list[Any]:
    settlement = item.settlement
    return [
        *_lease_values(item.lease),
        settlement.state.value,
        None if settlement.due_time is None else to_micros(settlement.due_time),
        settlement.cause,
        int(settlement.gives_attempt_back),
        int(settlement.yields_to_cancel),
    ]


def _claimed_job(row: tuple[Any, ...], worker_id: str) -> ClaimedJob:
    _, job_id, wire_name, queue, attempt, claim_number, _, _, *rest = row
    schedule_id, tick, trace_context, payload, tags = rest
    return ClaimedJob(
        Lease(UUID(hex=job_id), worker_id, attempt, claim_number),
        wire_name,
        queue,
        bytes(payload),
        tuple(map(tag_from_row, msgspec.json.decode(tags))) if tags else (),
        schedule_id,
        None if tick is None else from_micros(tick),
        trace_context,
    )
