"""Operator actions over the ORM."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import F

from ...core.settlement import cancel_cause
from ...core.states import JobState
from ...models import Job, Queue, QueueGate
from ..dialects.base import Dialect
from ..values import CancelResult
from . import graph
from .rows import LogEntry, TransitionLog


def cancel(dialect: Dialect, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
    """Cancel a job that does not run, or note the request on one that does."""
    with dialect.writing(now) as log:
        found = dialect.locked(dialect.jobs().filter(job_id=job_id), wait=True).first()
        if found is None:
            return CancelResult.NOT_FOUND
        state = JobState(found.state)
        if state.is_terminal:
            return CancelResult.NOT_CANCELLABLE
        cause = cancel_cause(actor)
        if state is JobState.LEASED:
            dialect.jobs().filter(sequence=found.sequence, cancel_cause=None).update(
                cancel_cause=cause
            )
            return CancelResult.CANCELLATION_REQUESTED
        _cancel_now(dialect, log, found, cause)
        return CancelResult.CANCELLED_IMMEDIATELY


def _cancel_now(dialect: Dialect, log: TransitionLog, job: Job, cause: str) -> None:
    dialect.jobs().filter(sequence=job.sequence).update(
        state=JobState.CANCELLED,
        latch=0,
        ordinal=F("ordinal") + 1,
        terminal_at=log.now,
        terminal_cause=cause,
    )
    entry = (job.ordinal + 1, JobState.CANCELLED, job.attempt, job.claim_number)
    log.add(LogEntry(job.sequence, *entry))
    graph.follow_cancelled(dialect, log, job)


def set_paused(dialect: Dialect, queue: str, *, paused: bool) -> bool:
    """Pause or resume a queue; whether that changed anything."""
    with dialect.atomic():
        row = _locked_queue(dialect, queue)
        changed = row.paused != paused
        if changed:
            Queue.objects.using(dialect.alias).filter(name=queue).update(paused=paused)
        return changed


def set_limit(dialect: Dialect, queue: str, limit: int | None) -> bool:
    """Set or lift a concurrency limit; whether that changed anything."""
    with dialect.atomic():
        QueueGate.objects.using(dialect.alias).get_or_create(name=queue)
        row = _locked_queue(dialect, queue)
        changed = row.concurrency_limit != limit
        if changed:
            Queue.objects.using(dialect.alias).filter(name=queue).update(concurrency_limit=limit)
        return changed


def _locked_queue(dialect: Dialect, queue: str) -> Queue:
    rows = Queue.objects.using(dialect.alias)
    rows.get_or_create(name=queue)
    return rows.select_for_update().get(name=queue)
