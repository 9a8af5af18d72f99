"""The in-memory store: the contract without a database.

The reference that the others are compared with, and the simulator's disk. It is
deterministic, keeps nothing beyond the process, and takes no part in anyone's
transaction. One lock makes each operation atomic: an operation checks first and writes
afterwards, so that nothing in its writing part can fail.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from ..core.commands import ClaimRequest
from ..core.events import Claimed, Renewal, Reported, Verdict
from ..core.limits import Limits
from ..core.outcomes import ClaimedJob, LapsedLease, Lease, Outcome, Succeeded, tags_of
from ..core.settlement import cancel_cause, parent_cause, settlement_of
from ..core.states import JobState, Move
from ..core.tags import Tag, tag_set
from .capabilities import Capabilities
from .contract import ExpiryDecision
from .errors import StoreMisused
from .memory_rows import Row, Tables
from .rules import (
    check_actor,
    check_instant,
    check_limit,
    check_queue,
    check_shares,
    check_worker,
    refusal_of,
    with_tag_set,
)
from .values import (
    CancelResult,
    DependencyMode,
    EnqueueResult,
    EnqueueStatus,
    HistoryPolicy,
    JobCount,
    JobFilter,
    JobSnapshot,
    NewJob,
    Transition,
)


class InMemoryStore:
    """A ``JobStore`` in the memory of one process.

    Args:
        limits: the store's limits.
        history: what the transition log records.
    """

    capabilities = Capabilities(
        durable=False, transactional_enqueue=False, skips_locked_rows=True, cluster_clock=False
    )

    def __init__(
        self,
        limits: Limits | None = None,
        history: HistoryPolicy = HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL,
    ) -> None:
        self.limits = limits or Limits()
        self.history = history
        self._lock = threading.RLock()
        self._tables = Tables(history)

    @property
    def supports_transactional_enqueue(self) -> bool:
        """False: there is no transaction to join."""
        return self.capabilities.transactional_enqueue

    def current_time(self) -> datetime:
        """Refuse: this store has no clock of its own."""
        raise StoreMisused("the in-memory store has no clock; time is always an argument")

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

    def _follow(self, ended: Row, now: datetime) -> None:
        """Move on every job that waited for ``ended``, and so on down the graph."""
        frontier = [ended] if ended.state.is_terminal else []
        while frontier:
            parent = frontier.pop(0)
            for child in self._tables.waiting_for(parent.job_id):
                child.gating.discard(parent.job_id)
                failed = parent.state is not JobState.SUCCEEDED
                if failed and child.mode is DependencyMode.ON_SUCCESS:
                    cause = parent_cause(parent.job_id, parent.state)
                    self._tables.move(child, Move.CANCEL, now, cause=cause)
                    frontier.append(child)
                elif not child.gating:
                    child.due_time = max(child.due_time, now)
                    self._tables.move(child, Move.RELEASE, now)

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

    # -- operators ----------------------------------------------------------------

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel a job, or ask for it; see ``JobStore.cancel``."""
        check_instant(now)
        cause = cancel_cause(check_actor(actor))
        with self._lock:
            row = self._tables.rows.get(job_id)
            if row is None:
                return CancelResult.NOT_FOUND
            if row.state.is_terminal:
                return CancelResult.NOT_CANCELLABLE
            if row.state is JobState.LEASED:
                row.cancel_cause = row.cancel_cause or cause
                return CancelResult.CANCELLATION_REQUESTED
            row.gating.clear()
            self._tables.move(row, Move.CANCEL, now, cause=cause)
            self._follow(row, now)
            return CancelResult.CANCELLED_IMMEDIATELY

    def pause_queue(self, queue: str) -> bool:
        """Pause a queue; see ``JobStore.pause_queue``."""
        with self._lock:
            changed = check_queue(queue) not in self._tables.paused
            self._tables.paused.add(queue)
            return changed

    def resume_queue(self, queue: str) -> bool:
        """Resume a queue; see ``JobStore.resume_queue``."""
        with self._lock:
            changed = check_queue(queue) in self._tables.paused
            self._tables.paused.discard(queue)
            return changed

    def set_concurrency_limit(self, queue: str, limit: int | None) -> bool:
        """Bound a queue; see ``JobStore.set_concurrency_limit``."""
        check_queue(queue)
        check_limit(limit)
        with self._lock:
            changed = self._tables.queue_limits.get(queue) != limit
            if limit is None:
                self._tables.queue_limits.pop(queue, None)
            else:
                self._tables.queue_limits[queue] = limit
            return changed

    # -- reads --------------------------------------------------------------------

    def get_job(self, job_id: UUID) -> JobSnapshot | None:
        """Read one job."""
        with self._lock:
            row = self._tables.rows.get(job_id)
            return None if row is None else row.snapshot()

    def list_jobs(
        self,
        job_filter: JobFilter,
        *,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 50,
    ) -> list[JobSnapshot]:
        """Read a page of jobs; see ``JobStore.list_jobs``."""
        with self._lock:
            rows = sorted(
                self._tables.rows.values(), key=lambda row: row.sequence, reverse=newest_first
            )
            if after is not None:
                rows = [
                    r for r in rows if (r.sequence < after if newest_first else r.sequence > after)
                ]
            limit = max(0, min(limit, self.limits.max_monitor_page_size))
            return [row.snapshot() for row in rows if row.matches(job_filter)][:limit]

    def count_jobs(self) -> list[JobCount]:
        """Count jobs by queue and state."""
        with self._lock:
            counts = Counter((row.queue, row.state) for row in self._tables.rows.values())
        return [JobCount(queue, state, count) for (queue, state), count in sorted(counts.items())]

    def job_history(self, job_id: UUID) -> list[Transition]:
        """Read a job's transition log."""
        with self._lock:
            row = self._tables.rows.get(job_id)
            return [] if row is None else list(row.transitions)

    def job_output(self, job_id: UUID) -> bytes | None:
        """Read a job's output."""
        row = self._tables.rows.get(job_id)
        return None if row is None else row.output

    def job_payload(self, job_id: UUID) -> bytes | None:
        """Read a job's payload."""
        row = self._tables.rows.get(job_id)
        return None if row is None else row.payload

    def job_tags(self, job_id: UUID) -> list[Tag]:
        """Read a job's tags."""
        row = self._tables.rows.get(job_id)
        return [] if row is None else list(row.tags)
