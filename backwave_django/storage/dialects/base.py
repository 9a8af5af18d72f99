"""The portable dialect: the hot operations through the ORM alone.

Right on every database that Django supports, at several statements an operation. The
dialects of the databases that we know override what they can do in one round trip, and
are held to the same conformance suite as this.

A method here never decides anything: the Core has said what an outcome means, the
store has made the checks. What is decided here is how rows are found, locked and
written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import (
    IntegrityError,
    InterfaceError,
    OperationalError,
    connections,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Max, QuerySet

from ...core.commands import ClaimRequest
from ...core.events import Claimed, Renewal, Reported, Verdict
from ...core.outcomes import LapsedLease, Lease
from ...core.states import JobState
from ...models import Dependency, Job, JobContent, JobTag
from ...models import Transition as TransitionRow
from ..capabilities import Capabilities
from ..errors import StoreMisused
from ..orm.rows import (
    CHUNK,
    LogEntry,
    NewRow,
    Settling,
    TransitionLog,
    job_row,
    lease_of,
    stored_tag,
    transition_row,
)
from ..values import HistoryPolicy
from . import portable_claim
from .log import LogMark
from .portable_claim import tags_of


class Dialect:
    """How one database does the hot operations. One object serves one alias."""

    joins_exchange = False
    """Whether a report and the claim after it are better made in one transaction."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.history = HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL

    # -- the connection -----------------------------------------------------------

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """The calling thread's connection of the alias."""
        return connections[self.alias]

    @property
    def capabilities(self) -> Capabilities:
        """What the database can do; asked of Django, not of a vendor's name."""
        return Capabilities(
            durable=True,
            transactional_enqueue=True,
            skips_locked_rows=self.connection.features.has_select_for_update_skip_locked,
            cluster_clock=False,
            settles_log=False,
        )

    @contextmanager
    def writing(self, now: datetime) -> Iterator[TransitionLog]:
        """Make what happens inside one transaction; its log is written at the end.

        In a caller's transaction it is a savepoint, so that a failure undoes this and
        nothing else.
        """
        with self.store_atomic():
            log = TransitionLog(self.history, now)
            yield log
            self.write_log(log)

    def atomic(self) -> Any:
        """Open a transaction, or a savepoint in the one that is open."""
        return transaction.atomic(using=self.alias)

    def store_atomic(self) -> Any:
        """Open a transaction as the store's own are, or a savepoint in the one that is open."""
        return self.atomic()

    def is_transient(self, error: Exception) -> bool:
        """Whether the same call may succeed later (rule 10.1)."""
        return isinstance(error, OperationalError | InterfaceError)

    def is_conflict(self, error: BaseException | None) -> bool:
        """Whether the database rolled a whole transaction back for the sake of another.

        By the SQLSTATE, where the driver tells it: a serialization failure (40001, of the
        SQL standard) or a deadlock (40P01, PostgreSQL's).
        """
        return getattr(getattr(error, "__cause__", None), "sqlstate", None) in ("40001", "40P01")

    def current_time(self) -> datetime:
        """Read the database's clock; only where ``cluster_clock`` is declared."""
        raise StoreMisused(f"alias {self.alias!r} declares no cluster clock")

    def jobs(self) -> QuerySet[Job]:
        """All jobs, on this alias."""
        return Job.objects.using(self.alias)

    def locked(self, jobs: QuerySet[Job], *, wait: bool = False) -> QuerySet[Job]:
        """Lock rows in order of sequence; without ``wait``, pass locked ones by."""
        features = self.connection.features
        return jobs.order_by("sequence").select_for_update(
            skip_locked=not wait and features.has_select_for_update_skip_locked,
            no_key=features.has_select_for_no_key_update,
            of=("self",) if features.has_select_for_update_of else (),
        )

    def locked_to_delete(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        """Lock rows against everything, in the order given; pass locked ones by."""
        features = self.connection.features
        return jobs.select_for_update(
            skip_locked=features.has_select_for_update_skip_locked,
            of=("self",) if features.has_select_for_update_of else (),
        )

    def is_ancestor(self, ancestor: int, of: int) -> bool:
        """Whether one job gates another, however far up; by sequence."""
        edges = Dependency.objects.using(self.alias)
        seen: set[int] = set()
        frontier = {of}
        while frontier and ancestor not in seen:
            found: set[int] = set()
            below = sorted(frontier)
            for start in range(0, len(below), CHUNK):
                chunk = edges.filter(child_id__in=below[start : start + CHUNK])
                found.update(chunk.values_list("parent_id", flat=True))
            frontier = found - seen
            seen |= found
        return ancestor in seen

    def lock_parents(self, job_ids: Sequence[UUID]) -> None:
        """Keep these jobs from vanishing until the transaction ends, where it can."""

    # -- enqueue ------------------------------------------------------------------

    def insert_jobs(self, rows: Sequence[NewRow], now: datetime) -> dict[UUID, int]:
        """Insert jobs with their content, tags and log; give sequences by id.

        An id that exists already is left out of the answer, and nothing is written for
        it. Sequences follow the order given.
        """
        with self.writing(now) as log:
            there = set(
                self.jobs()
                .filter(job_id__in=[row.job.job_id for row in rows])
                .values_list("job_id", flat=True)
            )
            rows = [row for row in rows if row.job.job_id not in there]
            inserted = self._insert_absent(rows, now)
            self._insert_content(rows, inserted)
            log.extend(
                LogEntry(inserted[row.job.job_id], 1, row.state, 0, 0)
                for row in rows
                if row.job.job_id in inserted
            )
        return inserted

    def _insert_absent(self, rows: Sequence[NewRow], now: datetime) -> dict[UUID, int]:
        try:
            with self.atomic():
                self._insert_chunked(Job, [job_row(row, now) for row in rows])
            done = list(rows)
        except IntegrityError:
            # Someone else has committed one of the ids since we looked.
            done = [row for row in rows if self._insert_alone(row, now)]
        return dict(
            self.jobs()
            .filter(job_id__in=[row.job.job_id for row in done])
            .values_list("job_id", "sequence")
        )

    def _insert_alone(self, row: NewRow, now: datetime) -> bool:
        try:
            with self.atomic():
                job_row(row, now).save(using=self.alias, force_insert=True)
        except IntegrityError:
            if self.jobs().filter(job_id=row.job.job_id).exists():
                return False
            raise
        return True

    def _insert_content(self, rows: Sequence[NewRow], inserted: dict[UUID, int]) -> None:
        contents, tags = [], []
        for row in rows:
            sequence = inserted.get(row.job.job_id)
            if sequence is not None:
                contents.append(JobContent(job_id=sequence, payload=row.job.payload))
                tags += [(sequence, *stored_tag(tag)) for tag in row.job.tags]
        self._insert_chunked(JobContent, contents)
        self._insert_chunked(JobTag, [JobTag(job_id=s, key=k, value=v) for s, k, v in tags])

    def _insert_chunked(self, model: Any, rows: Sequence[Any]) -> None:
        model.objects.using(self.alias).bulk_create(rows, batch_size=CHUNK)

    def write_log(self, log: TransitionLog) -> None:
        """Write the entries of a log."""
        entries = log.take()
        if entries:
            self._insert_chunked(TransitionRow, [transition_row(e, log.now) for e in entries])

    # -- the log ------------------------------------------------------------------

    def log_end(self) -> int:
        """Give the position of the newest log entry."""
        newest = TransitionRow.objects.using(self.alias).aggregate(Max("id"))["id__max"]
        return int(newest or 0)

    def look_at_log(self) -> LogMark:
        """Look where the log ends, before the transaction writes anything."""
        return LogMark(self.log_end(), 0)

    def settled(self, seen: LogMark, _mark: LogMark | None) -> tuple[int, LogMark | None]:
        """Say up to where the log is settled, and what to remember for the next time.

        ``seen`` is what ``look_at_log`` gave in this transaction, the other what was
        remembered. A database with one writer at a time has no open transaction beside.
        """
        return seen.position, None

    # -- claim --------------------------------------------------------------------

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Lease due jobs; ``request.max_jobs`` is within the limits."""
        with self.writing(now) as log:
            return self.claim_in(log, worker_id, request)

    def claim_in(self, log: TransitionLog, worker_id: str, request: ClaimRequest) -> Claimed:
        """Claim inside an open transaction."""
        return portable_claim.claim_in(self, log, worker_id, request)

    # -- heartbeat ----------------------------------------------------------------

    def renew(
        self, leases: Sequence[Lease], duration: timedelta, now: datetime
    ) -> Sequence[Renewal]:
        """Renew leases, an answer per lease."""
        with self.atomic():
            held, alive = self._held([lease.job_id for lease in leases])
            renewals, live = [], []
            for lease in leases:
                job = held.get(lease.job_id)
                if job is None and alive.get(lease.job_id) == lease:
                    renewals.append(Renewal.BUSY)
                elif job is None or lease_of(job) != lease:
                    renewals.append(Renewal.LOST)
                else:
                    asked = job.cancel_cause is not None
                    renewals.append(Renewal.CANCEL_REQUESTED if asked else Renewal.RENEWED)
                    live.append(job.sequence)
            self.jobs().filter(sequence__in=live).update(lease_expires_at=now + duration)
        return renewals

    def _held(self, job_ids: list[UUID]) -> tuple[dict[UUID, Job], dict[UUID, Lease]]:
        """Lock what can be locked of the leased among these; also say what is leased."""
        leased = self.jobs().filter(job_id__in=job_ids, state=JobState.LEASED)
        held = {job.job_id: job for job in self.locked(leased)}
        alive = {}
        if len(held) < len(set(job_ids)):
            alive = {job.job_id: lease_of(job) for job in leased}
        return held, alive

    # -- outcomes -----------------------------------------------------------------

    def settle(
        self, batch: Sequence[Settling], now: datetime, *, ends_too: bool = False
    ) -> list[Reported | None]:
        """Write outcomes under their fences, an answer per outcome.

        ``None``: the outcome ends a job that others wait for, and was not written; the
        store comes back with ``ends_too`` once it holds what the end will touch.
        """
        with self.writing(now) as log:
            return self.settle_in(log, batch, ends_too=ends_too)

    def exchange(
        self, batch: Sequence[Settling], worker_id: str, request: ClaimRequest, now: datetime
    ) -> tuple[list[Reported | None], Claimed | None]:
        """Settle like ``settle``, and claim in the same breath where that saves anything.

        The claim has ``request.max_jobs`` less the busy outcomes of room. ``None`` for
        it: nothing was claimed, and the store is to claim once all is settled.
        """
        return self.settle(batch, now), None

    def settle_in(
        self, log: TransitionLog, batch: Sequence[Settling], *, ends_too: bool = False
    ) -> list[Reported | None]:
        """Settle inside an open transaction."""
        held, alive = self._held([item.lease.job_id for item in batch])
        gating = set() if ends_too else self._gating([job.sequence for job in held.values()])
        answers: list[Reported | None] = []
        for item in batch:
            job = held.get(item.lease.job_id)
            if job is None or lease_of(job) != item.lease or job.state != JobState.LEASED:
                busy = job is None and alive.get(item.lease.job_id) == item.lease
                answers.append(Reported(Verdict.BUSY if busy else Verdict.STALE))
                continue
            cancelled = item.settlement.yields_to_cancel and job.cancel_cause is not None
            if (item.ends_job or cancelled) and job.sequence in gating:
                answers.append(None)
                continue
            self._write_settlement(log, job, item, cancelled=cancelled)
            answers.append(Reported(Verdict.APPLIED, JobState(job.state)))
        return answers

    def _gating(self, sequences: list[int]) -> set[int]:
        edges = Dependency.objects.using(self.alias).filter(parent_id__in=sequences, open=True)
        return set(edges.values_list("parent_id", flat=True))

    def _write_settlement(
        self, log: TransitionLog, job: Job, item: Settling, *, cancelled: bool
    ) -> None:
        settlement = item.settlement
        state = JobState.CANCELLED if cancelled else settlement.state
        if cancelled:
            job.terminal_cause = job.cancel_cause
        else:
            job.terminal_cause = settlement.cause
            job.due_time = settlement.due_time or job.due_time
            job.attempt -= settlement.gives_attempt_back
        job.state = state
        job.ordinal += 1
        job.lease_owner = job.lease_expires_at = job.cancel_cause = None
        job.terminal_at = log.now if state.is_terminal else None
        job.save(using=self.alias, force_update=True)
        if settlement.output is not None:
            contents = JobContent.objects.using(self.alias).filter(job_id=job.sequence)
            contents.update(output=settlement.output)
        known = {(key, value) for _, key, value in tags_of(self, [job.sequence])}
        fresh = [stored_tag(tag) for tag in item.tags if stored_tag(tag) not in known]
        self._insert_chunked(
            JobTag, [JobTag(job_id=job.sequence, key=k, value=v) for k, v in fresh]
        )
        log.add(
            LogEntry(
                job.sequence, job.ordinal, state, job.attempt, job.claim_number,
                detail=settlement.detail,
            )
        )  # fmt: skip

    # -- sweeps -------------------------------------------------------------------

    def lapsed(
        self, queues: Sequence[str] | None, max_jobs: int, now: datetime, *, lock: bool
    ) -> list[LapsedLease]:
        """Find leases past their end, by sequence."""
        jobs = self.jobs().filter(state=JobState.LEASED, lease_expires_at__lte=now)
        if queues is not None:
            jobs = jobs.filter(queue__in=queues)
        jobs = self.locked(jobs) if lock else jobs.order_by("sequence")
        return [
            LapsedLease(lease_of(job), job.wire_name, job.queue, job.lease_expires_at)
            for job in jobs[:max_jobs]
        ]
