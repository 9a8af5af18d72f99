"""Jobs that come in, run and end, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from ...core.commands import ClaimRequest
from ...core.events import Claimed, Renewal, Reported, Verdict
from ...core.outcomes import ClaimedJob, LapsedLease, Lease, Outcome, Succeeded, tags_of
from ...core.settlement import parent_cause, settlement_of
from ...core.states import JobState, Move
from ...core.tags import tag_set
from ..contract import ExpiryDecision
from ..rules import (
    check_instant,
    check_shares,
    check_worker,
    refusal_of,
    with_tag_set,
)
from ..values import (
    DependencyMode,
    EnqueueResult,
    EnqueueStatus,
    NewJob,
)
from .base import MemoryBase
from .rows import Row


class RunningMemory(MemoryBase):
    """The running part of the in-memory store."""

    # -- enqueue ------------------------------------------------------------------

    def enqueue(self, job: NewJob, now: datetime) -> EnqueueResult:
        """Store one job; see ``JobStore.enqueue``."""
        return self.enqueue_many([job], now)[0]

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Store jobs, an answer per job; see ``JobStore.enqueue_many``."""
        check_instant(now)
        jobs = [with_tag_set(job) for job in jobs]
        refusals = [refusal_of(job, self.limits) for job in jobs]
        with self._lock:
            return [
                refusal or self._insert(job, now)
                for job, refusal in zip(jobs, refusals, strict=True)
            ]

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        rows = self._tables.rows
        if job.job_id in rows:
            return EnqueueResult(EnqueueStatus.DUPLICATE)
        parents = tuple(dict.fromkeys(job.parents))
        for parent_id in parents:
            if parent_id not in rows:
                return EnqueueResult(EnqueueStatus.UNKNOWN_PARENT, parent_id)
        move, cause, gating = self._start_of(job, parents)
        row = self._tables.insert(job, now, gating)
        self._tables.move(row, move, now, cause=cause)
        return EnqueueResult(EnqueueStatus.OK)

    def _start_of(
        self, job: NewJob, parents: tuple[UUID, ...]
    ) -> tuple[Move, str | None, set[UUID]]:
        gating = set()
        for parent_id in parents:
            state = self._tables.rows[parent_id].state
            if not state.is_terminal:
                gating.add(parent_id)
            elif job.mode is DependencyMode.ON_SUCCESS and state is not JobState.SUCCEEDED:
                return Move.ENQUEUE_CANCELLED, parent_cause(parent_id, state), set()
        return (Move.ENQUEUE_WAITING if gating else Move.ENQUEUE), None, gating

    # -- claim --------------------------------------------------------------------

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Lease due jobs; see ``JobStore.claim``."""
        check_instant(now)
        check_worker(worker_id)
        check_shares(request)
        room = min(request.max_jobs, self.limits.max_claim_batch)
        with self._lock:
            rows = self._chosen(request, room, now)
            for row in rows:
                row.attempt += 1
                row.claim_number += 1
                row.lease_owner = worker_id
                row.lease_expires_at = now + request.lease_duration
                self._tables.move(row, Move.CLAIM, now)
            if rows:
                return Claimed([self._claimed(row) for row in rows])
            return Claimed((), self._next_due([share.queue for share in request.shares], now))

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        ready = {share.queue: self._tables.ready(share.queue, now) for share in request.shares}
        taken: Counter[str] = Counter()
        for share in request.shares:
            taken[share.queue] = min(share.most, len(ready[share.queue]), room - taken.total())
        for share in request.shares:
            rest = len(ready[share.queue]) - taken[share.queue]
            taken[share.queue] += min(rest, room - taken.total())
        return [row for share in request.shares for row in ready[share.queue][: taken[share.queue]]]

    def _claimed(self, row: Row) -> ClaimedJob:
        return ClaimedJob(
            row.lease(), row.wire_name, row.queue, row.payload, tuple(row.tags),
            row.schedule_id, row.tick, row.trace_context,
        )  # fmt: skip

    def _next_due(self, queues: Sequence[str], now: datetime) -> datetime | None:
        due_times = [
            row.due_time
            for row in self._tables.rows.values()
            if row.state is JobState.SCHEDULED
            and row.queue in queues
            and row.queue not in self._tables.paused
        ]
        return max(min(due_times), now) if due_times else None

    # -- heartbeat, report, sweeps ------------------------------------------------

    def heartbeat(
        self, leases: Sequence[Lease], lease_duration: timedelta, now: datetime
    ) -> Sequence[Renewal]:
        """Renew leases; see ``JobStore.heartbeat``."""
        check_instant(now)
        with self._lock:
            return [self._renewed(lease, now + lease_duration) for lease in leases]

    def _renewed(self, lease: Lease, until: datetime) -> Renewal:
        row = self._tables.live(lease)
        if row is None:
            return Renewal.LOST
        row.lease_expires_at = until
        return Renewal.RENEWED if row.cancel_cause is None else Renewal.CANCEL_REQUESTED

    def report(self, outcomes: Sequence[Outcome], now: datetime) -> Sequence[Reported]:
        """Record outcomes under their fences; see ``JobStore.report``."""
        check_instant(now)
        with self._lock:
            return [self._recorded(outcome, now) for outcome in outcomes]

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        result = outcome.result
        if (
            isinstance(result, Succeeded)
            and len(result.output or b"") > self.limits.max_output_bytes
        ):
            return Reported(Verdict.OUTPUT_TOO_LARGE)
        row = self._tables.live(outcome.lease)
        if row is None:
            return Reported(Verdict.STALE)
        settlement = settlement_of(result, self.limits, now)
        row.tags = list(tag_set(row.tags, tags_of(result)))
        if (settlement.yields_to_cancel or swept) and row.cancel_cause is not None:
            self._tables.move(
                row, Move.CANCEL, now, cause=row.cancel_cause, detail=settlement.detail
            )
        else:
            row.output = settlement.output
            row.due_time = settlement.due_time or row.due_time
            row.attempt -= settlement.gives_attempt_back
            self._tables.move(
                row, settlement.move, now, cause=settlement.cause, detail=settlement.detail
            )
        self._follow(row, now)
        return Reported(Verdict.APPLIED, row.state)

    def exchange(
        self,
        worker_id: str,
        outcomes: Sequence[Outcome],
        request: ClaimRequest | None,
        now: datetime,
    ) -> tuple[Sequence[Reported], Claimed | None]:
        """Report, then claim; see ``JobStore.exchange``."""
        with self._lock:
            reports = self.report(outcomes, now)
            if request is None:
                return reports, None
            kept = sum(r.verdict in (Verdict.BUSY, Verdict.OUTPUT_TOO_LARGE) for r in reports)
            room = request.max_jobs - kept
            if room < 1:
                return reports, Claimed((), now)
            return reports, self.claim(worker_id, request._replace(max_jobs=room), now)

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Dispose of lapsed leases; see ``JobStore.expire_leases``."""
        check_instant(now)
        with self._lock:
            lapsed = [
                LapsedLease(row.lease(), row.wire_name, row.queue, row.lease_expires_at)
                for row in self._tables.rows.values()
                if row.lease_expires_at is not None
                and row.lease_expires_at <= now
                and (queues is None or row.queue in queues)
            ][:max_jobs]
            outcomes = [Outcome(lease.lease, decide(lease)) for lease in lapsed]
            return len([self._recorded(outcome, now, swept=True) for outcome in outcomes])

    def release_waiting(
        self, max_jobs: int, now: datetime, job_ids: Sequence[UUID] | None = None
    ) -> int:
        """Do nothing: one lock means that no end goes unseen here."""
        check_instant(now)
        return 0
