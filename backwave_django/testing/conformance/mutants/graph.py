"""Mutants of chapters 5 and 6: what operators do, and what follows from an end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from ....core.events import Reported
from ....core.outcomes import Failed, Outcome, Released, Succeeded, Unroutable
from ....core.settlement import parent_cause
from ....core.states import JobState, Move
from ....storage.contract import ExpiryDecision
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import Row
from ....storage.values import CancelResult, DependencyMode
from .registry import Unlocked, breaks, pause


@breaks("5.1", "1.3", "0.4")
class OnlyAsksToCancel(InMemoryStore):
    """Takes every job for one that runs."""

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Ask, whatever the state."""
        row = self._tables.rows.get(job_id)
        if row is not None and not row.state.is_terminal:
            row.cancel_cause = "asked"
            return CancelResult.CANCELLATION_REQUESTED
        return super().cancel(job_id, actor, now)


@breaks("5.1")
class CancelsWhatRuns(InMemoryStore):
    """Ends a running job under the hands of its worker."""

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel by force."""
        row = self._tables.rows.get(job_id)
        if row is not None and row.state is JobState.LEASED:
            self._tables.move(row, Move.CANCEL, now, cause=f"cancelled by {actor}")
            return CancelResult.CANCELLED_IMMEDIATELY
        return super().cancel(job_id, actor, now)


@breaks("5.1", "6.1", "6.2")
class CancelsOneJobAlone(InMemoryStore):
    """Leaves the descendants of a cancelled job waiting."""

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel, and look no further."""
        row = self._tables.rows.get(job_id)
        if row is None or row.state.is_terminal or row.state is JobState.LEASED:
            return super().cancel(job_id, actor, now)
        self._tables.move(row, Move.CANCEL, now, cause=f"cancelled by {actor}")
        return CancelResult.CANCELLED_IMMEDIATELY


@breaks("5.1")
class CancelsForAMoment(InMemoryStore):
    """Lets a waiting job that was cancelled be released by its parent."""

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel, until the parent ends."""
        row = self._tables.rows.get(job_id)
        gating = set(row.gating) if row is not None else set()
        answer = super().cancel(job_id, actor, now)
        if row is not None and gating:
            row.gating = gating
            row.terminal_cause = "for now"
        return answer

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        super()._follow(ended, now, *others)
        for row in self._tables.rows.values():
            if row.terminal_cause == "for now" and ended.job_id in row.gating:
                row.state = JobState.SCHEDULED


@breaks("5.1")
class LetsTheLastRequestCount(InMemoryStore):
    """Names who asked last, or nobody, and logs the request."""

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel, and forget who asked before."""
        row = self._tables.rows.get(job_id)
        if row is not None:
            row.cancel_cause = None
            if row.state is JobState.LEASED and row.transitions:
                row.transitions.append(row.transitions[-1])
        answer = super().cancel(job_id, actor, now)
        if row is not None and actor is None and row.state is JobState.CANCELLED:
            row.terminal_cause = None
        return answer


@breaks("5.1")
class FindsEveryJob(InMemoryStore):
    """Says that a job which nobody knows was cancelled, and so for one that has ended."""

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel what is not there."""
        answer = super().cancel(job_id, actor, now)
        if answer in (CancelResult.NOT_FOUND, CancelResult.NOT_CANCELLABLE):
            return CancelResult.CANCELLED_IMMEDIATELY
        return answer


@breaks("5.1")
class ForgetsTheRequest(InMemoryStore):
    """Tries a job again that was to be cancelled."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        row = self._tables.live(outcome.lease)
        if row is not None and isinstance(outcome.result, Failed | Released):
            row.cancel_cause = None
        return super()._recorded(outcome, now, swept=swept)


@breaks("5.1")
class ObeysTheRequestAlways(InMemoryStore):
    """Cancels a job that has done its work, because somebody had asked."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        row = self._tables.live(outcome.lease)
        final = isinstance(outcome.result, Succeeded | Unroutable) or (
            isinstance(outcome.result, Failed) and outcome.result.retry_at is None
        )
        if row is not None and final and row.cancel_cause is not None:
            outcome = outcome._replace(result=Released(started=True))
        return super()._recorded(outcome, now, swept=swept)


@breaks("5.1")
class DropsTheDiagnosisOfTheCancelled(InMemoryStore):
    """Keeps neither diagnosis nor tags of an attempt whose job was to be cancelled."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        row = self._tables.live(outcome.lease)
        if row is not None and row.cancel_cause is not None and isinstance(outcome.result, Failed):
            outcome = outcome._replace(result=outcome.result._replace(detail="", tags=()))
        return super()._recorded(outcome, now, swept=swept)


@breaks("5.1")
class SweepsWithoutTheRequest(InMemoryStore):
    """Tries a lapsed job again that was to be cancelled."""

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Sweep, and forget the requests."""
        for row in self._tables.rows.values():
            row.cancel_cause = None
        return super().expire_leases(queues, decide, max_jobs, now)


@breaks("5.1")
class CancelsSlowly(Unlocked):
    """Reads the state of a job, and cancels it some time later as if nothing had happened."""

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel with a pause."""
        row = self._tables.rows.get(job_id)
        state = row.state if row is not None else None
        pause()
        if row is not None and state is JobState.SCHEDULED:
            row.state = JobState.SCHEDULED
        return super().cancel(job_id, actor, now)


@breaks("6.3")
class ReleasesWhatItSawBefore(Unlocked):
    """Finds the children that wait, and releases them some time later, cancelled or not."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        children = self._tables.waiting_for(ended.job_id)
        if children:
            pause()
        for child in children:
            child.state, child.gating = JobState.AWAITING_PARENT, {ended.job_id}
        super()._follow(ended, now, *others)


@breaks("5.4")
class ChangesEveryTime(InMemoryStore):
    """Says that each setting was a change."""

    def pause_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Pause, again."""
        return super().pause_queue(queue, actor, now) or True

    def set_concurrency_limit(
        self, queue: str, limit: int | None, actor: str | None, now: datetime
    ) -> bool:
        """Bound, again."""
        return super().set_concurrency_limit(queue, limit, actor, now) or True


@breaks("5.4", "3.4")
class KeepsTheFirstLimit(InMemoryStore):
    """Never changes a limit, and takes what is no number for one."""

    def set_concurrency_limit(
        self, queue: str, limit: int | None, actor: str | None, now: datetime
    ) -> bool:
        """Bound, once."""
        if not isinstance(limit, int) or limit < 1:
            return False
        return queue not in self._tables.queue_limits and super().set_concurrency_limit(
            queue, limit, actor, now
        )


@breaks("5.4", "3.3")
class ResumesWithALimit(InMemoryStore):
    """Forgets a pause when a limit is set, and a limit when a queue is resumed."""

    def set_concurrency_limit(
        self, queue: str, limit: int | None, actor: str | None, now: datetime
    ) -> bool:
        """Bound, and resume."""
        self._tables.paused.discard(queue)
        return super().set_concurrency_limit(queue, limit, actor, now)

    def resume_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Resume, never."""
        return False


@breaks("6.1", "6.3", "6.4")
class ReleasesAtTheFirstEnd(InMemoryStore):
    """Lets a child go as soon as one of its parents has ended."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        for child in self._tables.waiting_for(ended.job_id):
            child.gating = {ended.job_id}
        super()._follow(ended, now, *others)


@breaks("6.1", "6.3", "6.4", "4.6")
class ReleasesInEveryMode(InMemoryStore):
    """Asks only whether parents have ended."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        for child in self._tables.rows.values():
            child.mode = DependencyMode.ON_ANY_TERMINAL
        super()._follow(ended, now, *others)


@breaks("6.1", "6.3", "6.2")
class CancelsInEveryMode(InMemoryStore):
    """Cancels a child that waits for any end."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        for child in self._tables.rows.values():
            child.mode = DependencyMode.ON_SUCCESS
        super()._follow(ended, now, *others)


@breaks("6.1", "4.4", "8.1", "5.1")
class NamesTheRootForTheParent(InMemoryStore):
    """Gives every cancelled descendant the same cause, and logs the cascade nowhere."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        super()._follow(ended, now, *others)
        for row in self._tables.rows.values():
            if row.state is JobState.CANCELLED and row.terminal_at == now and row is not ended:
                row.terminal_cause = "an ancestor failed"
                row.transitions = row.transitions[:1]


@breaks("6.1")
class GoesOneLevelDown(InMemoryStore):
    """Cancels children, and leaves grandchildren waiting; follows a retry like an end."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        for child in self._tables.waiting_for(ended.job_id):
            child.gating.discard(ended.job_id)
            if child.mode is DependencyMode.ON_SUCCESS and ended.state is not JobState.SUCCEEDED:
                cause = parent_cause(ended.job_id, ended.state)
                self._tables.move(child, Move.CANCEL, now, cause=cause)
            elif not child.gating:
                self._tables.move(child, Move.RELEASE, now)


@breaks("6.1")
class ReleasesGrandchildren(InMemoryStore):
    """Takes a released job for one that has ended."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        released = [c for c in self._tables.waiting_for(ended.job_id) if len(c.gating) == 1]
        super()._follow(ended, now, *others)
        for child in released:
            for grandchild in self._tables.waiting_for(child.job_id):
                grandchild.gating.clear()
                self._tables.move(grandchild, Move.RELEASE, now)


@breaks("6.2")
class ReleasesAtOnce(InMemoryStore):
    """Makes a released job due now, whatever its own due time is."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        children = self._tables.waiting_for(ended.job_id)
        super()._follow(ended, now, *others)
        for child in children:
            if child.state is JobState.SCHEDULED:
                child.due_time = now


@breaks("6.2")
class ReleasesIntoThePast(InMemoryStore):
    """Leaves a due time that has passed as it was."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        due = {child.job_id: child.due_time for child in self._tables.waiting_for(ended.job_id)}
        super()._follow(ended, now, *others)
        for job_id, due_time in due.items():
            self._tables.rows[job_id].due_time = due_time


@breaks("6.3", "6.4", "2.4")
class LosesALatch(Unlocked):
    """Reads what a child still waits for, and writes it back some time later."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        children = self._tables.waiting_for(ended.job_id) if ended.state.is_terminal else []
        seen = {child.job_id: set(child.gating) for child in children}
        if children:
            pause()
        for child in children:
            child.gating = seen[child.job_id]
        super()._follow(ended, now, *others)


@breaks("6.3", "8.1")
class LogsEveryWay(InMemoryStore):
    """Writes a row for each way by which a cascade comes."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        before = [r for r in self._tables.rows.values() if r.state is JobState.AWAITING_PARENT]
        super()._follow(ended, now, *others)
        for row in before:
            if row.state is not JobState.AWAITING_PARENT and row.transitions:
                row.transitions.append(row.transitions[-1])


@breaks("6.4")
class ForgetsAChildNowAndThen(InMemoryStore):
    """Overlooks the last child of a parent that has several."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        children = self._tables.waiting_for(ended.job_id)
        if len(children) > 2:
            children[-1].gating.add(UUID(int=0))
        super()._follow(ended, now, *others)
