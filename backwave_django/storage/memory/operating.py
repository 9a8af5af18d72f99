"""What operators do, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from ...core.settlement import cancel_cause
from ...core.states import LIVE_STATES, REQUEUEABLE_STATES, JobState, Move
from ..rules import check_actor, check_instant, check_limit, check_queue
from ..values import (
    AuditAction,
    AuditRecord,
    BulkResult,
    CancelResult,
    JobFilter,
    RequeueResult,
    RescheduleResult,
)
from .base import MemoryBase
from .rows import Row


class OperatingMemory(MemoryBase):
    """The operating part of the in-memory store; see ``OperatingStore``."""

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel a job, or ask for it."""
        check_instant(now)
        check_actor(actor)
        with self._lock:
            row = self._tables.rows.get(job_id)
            if row is None:
                return CancelResult.NOT_FOUND
            if row.state.is_terminal:
                return CancelResult.NOT_CANCELLABLE
            is_leased = row.state is JobState.LEASED
            self._cancel([row], actor, now)
            return (
                CancelResult.CANCELLATION_REQUESTED
                if is_leased
                else CancelResult.CANCELLED_IMMEDIATELY
            )

    def _cancel(self, rows: Sequence[Row], actor: str | None, now: datetime) -> int:
        """Cancel, or ask for it; give how many jobs that changed."""
        idle = [row for row in rows if row.state is not JobState.LEASED]
        asked = [r for r in rows if r.state is JobState.LEASED and r.cancel_cause is None]
        for row in asked:
            row.cancel_cause = cancel_cause(actor)
            self._audit(AuditAction.CANCEL, row.job_id, actor, now, "requested")
        for row in idle:
            self._tables.move(row, Move.CANCEL, now, cause=cancel_cause(actor))
            self._audit(AuditAction.CANCEL, row.job_id, actor, now, "")
        if idle:
            self._follow(idle[0], now, *idle[1:])
        return len(asked) + len(idle)

    def requeue(self, job_id: UUID, actor: str | None, now: datetime) -> RequeueResult:
        """Schedule a failed job again."""
        check_instant(now)
        check_actor(actor)
        with self._lock:
            row = self._tables.rows.get(job_id)
            if row is None:
                return RequeueResult.NOT_FOUND
            if row.state not in REQUEUEABLE_STATES:
                return RequeueResult.NOT_REQUEUEABLE
            self._requeue([row], actor, now)
            return RequeueResult.REQUEUED

    def _requeue(self, rows: Sequence[Row], actor: str | None, now: datetime) -> int:
        for row in rows:
            row.attempt = 0
            row.due_time = now
            self._tables.move(row, Move.REQUEUE, now)
            self._audit(AuditAction.REQUEUE, row.job_id, actor, now, "")
        return len(rows)

    def reschedule(
        self, job_id: UUID, due_time: datetime, actor: str | None, now: datetime
    ) -> RescheduleResult:
        """Move a due time."""
        check_instant(now)
        check_instant(due_time, "due_time")
        check_actor(actor)
        with self._lock:
            row = self._tables.rows.get(job_id)
            if row is None:
                return RescheduleResult.NOT_FOUND
            if row.state not in (JobState.SCHEDULED, JobState.AWAITING_PARENT):
                return RescheduleResult.NOT_RESCHEDULABLE
            if row.due_time != due_time:
                row.due_time = due_time
                detail = f"to {due_time.isoformat()}"
                self._audit(AuditAction.RESCHEDULE, job_id, actor, now, detail)
            return RescheduleResult.RESCHEDULED

    def cancel_many(
        self,
        job_filter: JobFilter,
        actor: str | None,
        now: datetime,
        *,
        after: int = 0,
        max_jobs: int = 100,
    ) -> BulkResult:
        """Cancel a batch."""
        return self._in_bulk(self._cancel, LIVE_STATES, job_filter, actor, now, after, max_jobs)

    def requeue_many(
        self,
        job_filter: JobFilter,
        actor: str | None,
        now: datetime,
        *,
        after: int = 0,
        max_jobs: int = 100,
    ) -> BulkResult:
        """Requeue a batch."""
        return self._in_bulk(
            self._requeue, REQUEUEABLE_STATES, job_filter, actor, now, after, max_jobs
        )

    def _in_bulk(
        self,
        act: Callable[[Sequence[Row], str | None, datetime], int],
        states: Sequence[JobState],
        job_filter: JobFilter,
        actor: str | None,
        now: datetime,
        after: int,
        max_jobs: int,
    ) -> BulkResult:
        check_instant(now)
        check_actor(actor)
        with self._lock:
            found = sorted(
                (
                    row
                    for row in self._tables.rows.values()
                    if row.sequence > after and row.state in states and row.matches(job_filter)
                ),
                key=lambda row: row.sequence,
            )[: self._page(max_jobs)]
            if not found:
                return BulkResult(0, 0, None)
            return BulkResult(len(found), act(found, actor, now), found[-1].sequence)

    def pause_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Pause a queue."""
        return self._set_paused(queue, True, AuditAction.PAUSE_QUEUE, actor, now)

    def resume_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Resume a queue."""
        return self._set_paused(queue, False, AuditAction.RESUME_QUEUE, actor, now)

    def _set_paused(
        self, queue: str, paused: bool, action: AuditAction, actor: str | None, now: datetime
    ) -> bool:
        check_instant(now)
        check_queue(queue)
        check_actor(actor)
        with self._lock:
            changed = (queue in self._tables.paused) is not paused
            if changed:
                (self._tables.paused.add if paused else self._tables.paused.discard)(queue)
                self._audit(action, queue, actor, now, "")
            return changed

    def set_concurrency_limit(
        self, queue: str, limit: int | None, actor: str | None, now: datetime
    ) -> bool:
        """Bound a queue."""
        check_instant(now)
        check_queue(queue)
        check_limit(limit)
        check_actor(actor)
        with self._lock:
            changed = self._tables.queue_limits.get(queue) != limit
            if changed:
                self._tables.queue_limits.pop(queue, None)
                if limit is not None:
                    self._tables.queue_limits[queue] = limit
                detail = "lifted" if limit is None else f"to {limit}"
                self._audit(AuditAction.SET_CONCURRENCY_LIMIT, queue, actor, now, detail)
            return changed

    def list_audit(
        self,
        *,
        target: str | None = None,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 50,
    ) -> list[AuditRecord]:
        """Read a page of audit records."""
        with self._lock:
            records = [r for r in self._tables.audit if target in (None, r.target)]
        if newest_first:
            records = [r for r in reversed(records) if after is None or r.number < after]
        else:
            records = [r for r in records if after is None or r.number > after]
        return records[: self._page(limit)]
