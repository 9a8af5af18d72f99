"""What operators do, over the ORM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from django.db.models import F

from ...core.settlement import cancel_cause
from ...core.states import LIVE_STATES, REQUEUEABLE_STATES, JobState
from ...models import AuditRecord as AuditRow
from ...models import Job, Queue, QueueGate
from ..rules import can_be_found, check_actor, check_instant, check_limit, check_queue
from ..values import (
    AuditAction,
    AuditRecord,
    BulkResult,
    CancelResult,
    JobFilter,
    RequeueResult,
    RescheduleResult,
)
from . import graph
from .base import StoreBase
from .rows import CHUNK, LogEntry, TransitionLog
from .slices import matching


class _Acting:
    """One transaction of an operator: what it does is audited when it ends."""

    def __init__(self, log: TransitionLog, actor: str | None) -> None:
        self.log = log
        self.now = log.now
        self._actor = actor
        self.records: list[AuditRow] = []

    def audit(self, action: AuditAction, target: object, detail: str = "") -> None:
        """Remember that something was changed."""
        self.records.append(
            AuditRow(
                at=self.now,
                actor=self._actor,
                action=action.value,
                target=str(target),
                detail=detail,
            )
        )


class OperatingOrm(StoreBase):
    """The operating part of the Django store; see ``OperatingStore``."""

    @contextmanager
    def _acting(self, actor: str | None, now: datetime) -> Iterator[_Acting]:
        check_instant(now)
        check_actor(actor)
        with self.faults(), self.dialect.writing(now) as log:
            acting = _Acting(log, actor)
            yield acting
            AuditRow.objects.using(self.alias).bulk_create(acting.records, batch_size=CHUNK)

    def _held(self, job_id: UUID) -> Job | None:
        return self.dialect.locked(self.dialect.jobs().filter(job_id=job_id), wait=True).first()

    # -- jobs ---------------------------------------------------------------------

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel a job, or ask for it."""
        with self._acting(actor, now) as acting:
            job = self._held(job_id)
            if job is None:
                return CancelResult.NOT_FOUND
            state = JobState(job.state)
            if state.is_terminal:
                return CancelResult.NOT_CANCELLABLE
            if state is JobState.LEASED:
                self._request(acting, [job], actor)
                return CancelResult.CANCELLATION_REQUESTED
            self._cancel(acting, [job], actor)
            return CancelResult.CANCELLED_IMMEDIATELY

    def _request(self, acting: _Acting, jobs: Sequence[Job], actor: str | None) -> int:
        """Ask for running jobs to be cancelled; how many were not asked before."""
        fresh = [job for job in jobs if job.cancel_cause is None]
        self.dialect.jobs().filter(sequence__in=[job.sequence for job in fresh]).update(
            cancel_cause=cancel_cause(actor)
        )
        for job in fresh:
            acting.audit(AuditAction.CANCEL, job.job_id, "requested")
        return len(fresh)

    def _cancel(self, acting: _Acting, jobs: Sequence[Job], actor: str | None) -> None:
        """Cancel jobs that do not run, with what waits for their success."""
        self.dialect.jobs().filter(sequence__in=[job.sequence for job in jobs]).update(
            state=JobState.CANCELLED,
            latch=0,
            ordinal=F("ordinal") + 1,
            terminal_at=acting.now,
            terminal_cause=cancel_cause(actor),
        )
        for job in jobs:
            entry = (job.ordinal + 1, JobState.CANCELLED, job.attempt, job.claim_number)
            acting.log.add(LogEntry(job.sequence, *entry))
            acting.audit(AuditAction.CANCEL, job.job_id)
        graph.follow_cancelled(self.dialect, acting.log, jobs)

    def requeue(self, job_id: UUID, actor: str | None, now: datetime) -> RequeueResult:
        """Schedule a failed job again."""
        with self._acting(actor, now) as acting:
            job = self._held(job_id)
            if job is None:
                return RequeueResult.NOT_FOUND
            if job.state not in REQUEUEABLE_STATES:
                return RequeueResult.NOT_REQUEUEABLE
            self._requeue(acting, [job])
            return RequeueResult.REQUEUED

    def _requeue(self, acting: _Acting, jobs: Sequence[Job]) -> None:
        self.dialect.jobs().filter(sequence__in=[job.sequence for job in jobs]).update(
            state=JobState.SCHEDULED,
            attempt=0,
            due_time=acting.now,
            ordinal=F("ordinal") + 1,
            terminal_at=None,
            terminal_cause=None,
        )
        for job in jobs:
            entry = (job.ordinal + 1, JobState.SCHEDULED, 0, job.claim_number)
            acting.log.add(LogEntry(job.sequence, *entry))
            acting.audit(AuditAction.REQUEUE, job.job_id)

    def reschedule(
        self, job_id: UUID, due_time: datetime, actor: str | None, now: datetime
    ) -> RescheduleResult:
        """Move a due time."""
        check_instant(due_time, "due_time")
        with self._acting(actor, now) as acting:
            job = self._held(job_id)
            if job is None:
                return RescheduleResult.NOT_FOUND
            if job.state not in (JobState.SCHEDULED, JobState.AWAITING_PARENT):
                return RescheduleResult.NOT_RESCHEDULABLE
            if job.due_time != due_time:
                self.dialect.jobs().filter(sequence=job.sequence).update(due_time=due_time)
                acting.audit(AuditAction.RESCHEDULE, job_id, f"to {due_time.isoformat()}")
            return RescheduleResult.RESCHEDULED

    # -- jobs in bulk -------------------------------------------------------------

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

        def act(acting: _Acting, jobs: list[Job]) -> int:
            running = [job for job in jobs if job.state == JobState.LEASED]
            idle = [job for job in jobs if job.state != JobState.LEASED]
            changed = self._request(acting, running, actor)
            if idle:
                self._cancel(acting, idle, actor)
            return changed + len(idle)

        return self._in_bulk(act, LIVE_STATES, job_filter, actor, now, after, max_jobs)

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

        def act(acting: _Acting, jobs: list[Job]) -> int:
            self._requeue(acting, jobs)
            return len(jobs)

        return self._in_bulk(act, REQUEUEABLE_STATES, job_filter, actor, now, after, max_jobs)

    def _in_bulk(
        self,
        act: Callable[[_Acting, list[Job]], int],
        states: Sequence[JobState],
        job_filter: JobFilter,
        actor: str | None,
        now: datetime,
        after: int,
        max_jobs: int,
    ) -> BulkResult:
        nothing = BulkResult(0, 0, None)
        if not can_be_found(job_filter):
            return nothing
        with self._acting(actor, now) as acting:
            slice_ = matching(self.dialect, job_filter).filter(state__in=states)
            found = slice_.filter(sequence__gt=after).order_by("sequence")
            sequences = list(found.values_list("sequence", flat=True)[: self.page(max_jobs)])
            if not sequences:
                return nothing
            # Some may have moved on since they were looked up.
            again = self.dialect.jobs().filter(sequence__in=sequences, state__in=states)
            jobs = list(self.dialect.locked(again, wait=True))
            changed = act(acting, jobs) if jobs else 0
            return BulkResult(len(sequences), changed, sequences[-1])

    # -- queues -------------------------------------------------------------------

    def pause_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Pause a queue."""
        return self._set_paused(queue, True, AuditAction.PAUSE_QUEUE, actor, now)

    def resume_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Resume a queue."""
        return self._set_paused(queue, False, AuditAction.RESUME_QUEUE, actor, now)

    def _set_paused(
        self, queue: str, paused: bool, action: AuditAction, actor: str | None, now: datetime
    ) -> bool:
        check_queue(queue)
        with self._acting(actor, now) as acting:
            row = self._held_queue(queue)
            changed = row.paused is not paused
            if changed:
                Queue.objects.using(self.alias).filter(name=queue).update(paused=paused)
                acting.audit(action, queue)
            return changed

    def set_concurrency_limit(
        self, queue: str, limit: int | None, actor: str | None, now: datetime
    ) -> bool:
        """Bound a queue."""
        check_queue(queue)
        check_limit(limit)
        with self._acting(actor, now) as acting:
            QueueGate.objects.using(self.alias).get_or_create(name=queue)
            row = self._held_queue(queue)
            changed = row.concurrency_limit != limit
            if changed:
                rows = Queue.objects.using(self.alias).filter(name=queue)
                rows.update(concurrency_limit=limit)
                detail = "lifted" if limit is None else f"to {limit}"
                acting.audit(AuditAction.SET_CONCURRENCY_LIMIT, queue, detail)
            return changed

    def _held_queue(self, queue: str) -> Queue:
        rows = Queue.objects.using(self.alias)
        rows.get_or_create(name=queue)
        return rows.select_for_update().get(name=queue)

    # -- the audit ----------------------------------------------------------------

    def list_audit(
        self,
        *,
        target: str | None = None,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 50,
    ) -> list[AuditRecord]:
        """Read a page of audit records."""
        rows = AuditRow.objects.using(self.alias).order_by("-id" if newest_first else "id")
        if target is not None:
            if not can_be_found(JobFilter(queue=target)):
                return []
            rows = rows.filter(target=target)
        if after is not None:
            rows = rows.filter(**{"id__lt" if newest_first else "id__gt": after})
        with self.faults():
            return [
                AuditRecord(
                    row.id, row.at, row.actor, AuditAction(row.action), row.target, row.detail
                )
                for row in rows[: self.page(limit)]
            ]
