"""Mutants of chapter 5: second chances, the audit, and actions on many jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from ....core.outcomes import Lease
from ....core.states import JobState, Move
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import Row, Tables
from ....storage.values import (
    AuditAction,
    AuditRecord,
    BulkResult,
    CancelResult,
    JobFilter,
    RequeueResult,
    RescheduleResult,
)
from .jobs import OtherTables
from .registry import Unlocked, breaks, pause


class AfterRequeue(InMemoryStore):
    """A store that does something to a job once it has requeued it."""

    def _spoil(self, row: Row, now: datetime) -> None:
        raise NotImplementedError

    def _requeue(self, rows: Sequence[Row], actor: str | None, now: datetime) -> int:
        count = super()._requeue(rows, actor, now)
        for row in rows:
            self._spoil(row, now)
        return count


@breaks("5.2")
class KeepsTheAttempts(AfterRequeue):
    """Lets a requeued job go on counting."""

    def _spoil(self, row: Row, now: datetime) -> None:
        row.attempt = 5


@breaks("5.2")
class RequeuesForLater(AfterRequeue):
    """Lets a requeued job wait."""

    def _spoil(self, row: Row, now: datetime) -> None:
        row.due_time = now.replace(year=now.year + 1)


@breaks("5.2")
class CountsClaimsFromTheStart(AfterRequeue):
    """Gives a requeued job its old claim numbers again."""

    def _spoil(self, row: Row, now: datetime) -> None:
        row.claim_number = 0


@breaks("5.2")
class BringsTheChildrenBack(AfterRequeue):
    """Requeues what the failure had cancelled."""

    def _spoil(self, row: Row, now: datetime) -> None:
        for child in self._tables.rows.values():
            if row.job_id in child.parents and child.state is JobState.CANCELLED:
                child.state = JobState.SCHEDULED
                child.terminal_at = child.terminal_cause = None


@breaks("5.2")
class LogsNoRequeue(AfterRequeue):
    """Writes nothing about it."""

    def _spoil(self, row: Row, now: datetime) -> None:
        del row.transitions[-1:]


@breaks("5.2")
class RequeuesDeadLettersAlone(InMemoryStore):
    """Leaves the quarantined where they are."""

    def requeue(self, job_id: UUID, actor: str | None, now: datetime) -> RequeueResult:
        """Requeue some."""
        row = self._tables.rows.get(job_id)
        if row is not None and row.state is JobState.QUARANTINED:
            return RequeueResult.NOT_REQUEUEABLE
        return super().requeue(job_id, actor, now)


@breaks("5.2")
class RequeuesWhateverIsThere(InMemoryStore):
    """Makes any job a due one."""

    def requeue(self, job_id: UUID, actor: str | None, now: datetime) -> RequeueResult:
        """Requeue all."""
        row = self._tables.rows.get(job_id)
        if row is None:
            return RequeueResult.NOT_REQUEUEABLE
        row.state, row.terminal_at, row.terminal_cause = JobState.DEAD_LETTERED, now, "x"
        return super().requeue(job_id, actor, now)


@breaks("5.2")
class TakesARequeuedJobForDead(InMemoryStore):
    """Remembers the first end of a job for ever, for those that come to depend on it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._failed: set[UUID] = set()

    def requeue(self, job_id: UUID, actor: str | None, now: datetime) -> RequeueResult:
        """Requeue, and remember the failure."""
        self._failed.add(job_id)
        return super().requeue(job_id, actor, now)

    def _start_of(self, job: Any, parents: tuple[UUID, ...]) -> Any:
        if self._failed.intersection(parents):
            return Move.ENQUEUE_CANCELLED, "parent failed", set()
        return super()._start_of(job, parents)


@breaks("5.2")
class KnowsNoClaimNumbers(OtherTables):
    """Takes any lease of this attempt for alive."""

    class tables(Tables):  # noqa: N801
        """Tables that look at the attempt alone."""

        def live(self, lease: Lease) -> Row | None:
            """Compare worker and attempt."""
            row = self.rows.get(lease.job_id)
            alive = row is not None and row.state is JobState.LEASED
            return row if row is not None and alive and row.attempt == lease.attempt else None


@breaks("5.2")
class RequeuesTwice(Unlocked):
    """Looks first and writes later."""

    def _requeue(self, rows: Sequence[Row], actor: str | None, now: datetime) -> int:
        pause()
        for row in rows:
            row.state, row.attempt, row.due_time = JobState.SCHEDULED, 0, now
            row.terminal_at = row.terminal_cause = None
        return len(rows)


class OtherReschedule(InMemoryStore):
    """A store that moves due times otherwise."""

    movable: tuple[JobState, ...] = (JobState.SCHEDULED, JobState.AWAITING_PARENT)

    def _move(self, row: Row, due_time: datetime, now: datetime) -> None:
        row.due_time = due_time

    def reschedule(
        self, job_id: UUID, due_time: datetime, actor: str | None, now: datetime
    ) -> RescheduleResult:
        """Move, badly."""
        row = self._tables.rows.get(job_id)
        if row is None or row.state not in self.movable:
            return RescheduleResult.NOT_RESCHEDULABLE
        self._move(row, due_time, now)
        return RescheduleResult.RESCHEDULED


@breaks("5.3")
class MovesTheScheduledAlone(OtherReschedule):
    """Leaves a waiting job at its time."""

    movable = (JobState.SCHEDULED,)


@breaks("5.3")
class MovesWhatRuns(OtherReschedule):
    """Moves any job."""

    movable = tuple(JobState)


@breaks("5.3")
class MovesLaterOnly(OtherReschedule):
    """Takes no earlier time, and checks nothing."""

    def _move(self, row: Row, due_time: datetime, now: datetime) -> None:
        row.due_time = max(row.due_time, due_time) if due_time.tzinfo else due_time


@breaks("5.3")
class ReleasesWhatItMoves(OtherReschedule):
    """Makes a waiting job a scheduled one, and a step of every move."""

    def _move(self, row: Row, due_time: datetime, now: datetime) -> None:
        row.due_time, row.state = due_time, JobState.SCHEDULED
        row.transitions += row.transitions[-1:]


@breaks("5.5")
class RemembersNothing(InMemoryStore):
    """Keeps no audit."""

    def _audit(
        self, action: AuditAction, target: object, actor: str | None, now: datetime, detail: str
    ) -> None:
        """Forget it."""


@breaks("5.5")
class RemembersEveryTry(InMemoryStore):
    """Records what was refused."""

    def requeue(self, job_id: UUID, actor: str | None, now: datetime) -> RequeueResult:
        """Requeue, and record it anyway."""
        answer = super().requeue(job_id, actor, now)
        if answer is not RequeueResult.REQUEUED:
            self._audit(AuditAction.REQUEUE, job_id, actor, now, "")
        return answer


@breaks("5.5")
class RecordsTheCascade(InMemoryStore):
    """Blames the actor for what follows."""

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel, and record the children too."""
        before = {row.job_id for row in self._tables.rows.values() if row.state.is_terminal}
        answer = super().cancel(job_id, actor, now)
        for row in self._tables.rows.values():
            if row.state.is_terminal and row.job_id not in before | {job_id}:
                self._audit(AuditAction.CANCEL, row.job_id, actor, now, "")
        return answer


@breaks("5.5")
class ReadsTheAuditFromItsEnd(InMemoryStore):
    """Gives the newest first, always."""

    def list_audit(self, **asked: Any) -> list[AuditRecord]:
        """Read the other way."""
        return super().list_audit(**asked)[::-1]


@breaks("5.5")
class TakesAnyActor(InMemoryStore):
    """Asks nobody for a name."""

    def pause_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Pause for anyone."""
        return super().pause_queue(queue, None, now)


class OtherBulk(InMemoryStore):
    """A store that acts on other jobs than it was asked for."""

    def _bulk(self, answer: BulkResult) -> BulkResult:
        return answer

    def cancel_many(
        self, job_filter: JobFilter, actor: str | None, now: datetime, **page: Any
    ) -> BulkResult:
        """Cancel in bulk, badly."""
        return self._bulk(super().cancel_many(job_filter, actor, now, **page))

    def requeue_many(
        self, job_filter: JobFilter, actor: str | None, now: datetime, **page: Any
    ) -> BulkResult:
        """Requeue in bulk, badly."""
        return self._bulk(super().requeue_many(job_filter, actor, now, **page))


@breaks("5.5")
class CountsTheAskedAsChanged(OtherBulk):
    """Says that it changed all that it looked at."""

    def _bulk(self, answer: BulkResult) -> BulkResult:
        return answer._replace(changed=answer.looked_at)


@breaks("5.5")
class FiltersNothing(InMemoryStore):
    """Acts on every job, whatever the filter says."""

    def cancel_many(
        self, job_filter: JobFilter, actor: str | None, now: datetime, **page: Any
    ) -> BulkResult:
        """Cancel everything."""
        return super().cancel_many(JobFilter(), actor, now, **page)

    def requeue_many(
        self, job_filter: JobFilter, actor: str | None, now: datetime, **page: Any
    ) -> BulkResult:
        """Requeue everything."""
        return super().requeue_many(JobFilter(), actor, now, **page)


@breaks("5.5")
class KnowsNoBatches(InMemoryStore):
    """Acts on all at once."""

    def _page(self, limit: int) -> int:
        return 10_000


@breaks("5.5")
class LetsTheParentSpeak(InMemoryStore):
    """Cancels a child in the batch by its parent, one after the other."""

    def _cancel(self, rows: Sequence[Row], actor: str | None, now: datetime) -> int:
        return sum(
            super(LetsTheParentSpeak, self)._cancel([row], actor, now)
            for row in rows
            if not row.state.is_terminal
        )
