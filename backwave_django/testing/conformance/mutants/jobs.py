"""Mutants of chapter 1: fields, moves, and what belongs to which state."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from ....core.events import Reported
from ....core.outcomes import Lease, Outcome
from ....core.states import JobState, Move
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import Row, Tables
from ....storage.values import CancelResult, EnqueueResult, JobSnapshot, NewJob, Transition
from .registry import Reenqueued, breaks


class OtherTables(InMemoryStore):
    """A store over other tables."""

    tables: type[Tables] = Tables

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._tables = self.tables(self.history)


class OtherSnapshots(InMemoryStore):
    """A store that shows another job than it has."""

    def _shown(self, found: JobSnapshot) -> JobSnapshot:
        return found

    def get_job(self, job_id: UUID) -> JobSnapshot | None:
        """Read one job, badly."""
        found = super().get_job(job_id)
        return None if found is None else self._shown(found)


@breaks("1.1", "0.6")
class ForgetsTheTrace(Reenqueued):
    """Stores no trace context."""

    def _changed(self, job: NewJob) -> NewJob:
        return replace(job, trace_context=None)


@breaks("1.1")
class ShowsTheEnqueueAsTheDueTime(OtherSnapshots):
    """Mixes two instants up."""

    def _shown(self, found: JobSnapshot) -> JobSnapshot:
        return replace(found, due_time=found.enqueued_at)


@breaks("1.1", "2.2", "8.4")
class NumbersByDueTime(InMemoryStore):
    """Gives sequences that do not grow."""

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        answer = super()._insert(job, now)
        row = self._tables.rows.get(job.job_id)
        if row is not None and row.sequence > 0:
            row.sequence = -row.sequence
        return answer


@breaks("1.1")
class NumbersByCounting(InMemoryStore):
    """Takes the number of jobs with the same queue for the next sequence."""

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        answer = super()._insert(job, now)
        row = self._tables.rows[job.job_id] if answer.parent_id is None else None
        if row is not None:
            row.sequence = min(row.sequence, 2)
        return answer


@breaks("1.1", "3.1", "4.3")
class CountsNoAttempts(OtherTables):
    """Leaves the attempt at 1."""

    class tables(Tables):  # noqa: N801
        """Tables whose claims do not count."""

        def move(self, row: Row, move: Move, now: datetime, **fields: Any) -> None:
            """Move, and forget the count."""
            row.attempt = min(row.attempt, 1)
            super().move(row, move, now, **fields)


@breaks("1.1", "4.7")
class ForgetsThePayloadOfARetry(InMemoryStore):
    """Empties a job that goes back to its queue, and makes it due at once for all time."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        answer = super()._recorded(outcome, now, swept=swept)
        if answer.state is JobState.SCHEDULED:
            row = self._tables.rows[outcome.lease.job_id]
            row.payload, row.due_time = b"", row.enqueued_at
        return answer


@breaks("1.2", "8.1")
class LogsAClaimTwice(OtherTables):
    """Writes two rows for a claim."""

    class tables(Tables):  # noqa: N801
        """Tables that log too much."""

        def move(self, row: Row, move: Move, now: datetime, **fields: Any) -> None:
            """Move, and log a claim again."""
            super().move(row, move, now, **fields)
            if move is Move.CLAIM and row.transitions:
                row.transitions.append(row.transitions[-1])


@breaks("1.2", "2.4")
class WaitsForTheDead(InMemoryStore):
    """Lets a job wait for a parent that has failed already, for ever."""

    def _start_of(self, job: NewJob, parents: tuple[UUID, ...]) -> Any:
        move, cause, gating = super()._start_of(job, parents)
        if move is Move.ENQUEUE_CANCELLED:
            return Move.ENQUEUE_WAITING, None, set(parents)
        return move, cause, gating


@breaks("1.2", "5.1")
class CancelsTheDead(InMemoryStore):
    """Cancels a job that has ended, whatever its end was."""

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel anything."""
        row = self._tables.rows.get(job_id)
        if row is not None and row.state.is_terminal:
            row.state, row.terminal_cause = JobState.CANCELLED, "cancelled"
            return CancelResult.CANCELLED_IMMEDIATELY
        return super().cancel(job_id, actor, now)


@breaks("1.2", "4.2")
class AsksForNoLease(OtherTables):
    """Takes an outcome for any job, leased or not."""

    class tables(Tables):  # noqa: N801
        """Tables that take everything for alive."""

        def live(self, lease: Lease) -> Row | None:
            """Give the row, whatever its state."""
            row = self.rows.get(lease.job_id)
            if row is not None and row.state is not JobState.LEASED:
                row.state, row.lease_owner, row.lease_expires_at = (
                    JobState.LEASED, "w", row.due_time,
                )  # fmt: skip
            return row


@breaks("1.2", "3.2", "2.4")
class ClaimsEverything(OtherTables):
    """Claims jobs that wait or run already."""

    class tables(Tables):  # noqa: N801
        """Tables in which every live job is ready."""

        def ready(self, queue: str, now: datetime) -> list[Row]:
            """Give every live job of the queue."""
            rows = [r for r in self.rows.values() if not r.state.is_terminal and r.queue == queue]
            for row in rows:
                row.state = JobState.SCHEDULED
            return rows


@breaks("1.2", "8.1")
class ReadsTheLogBackwards(InMemoryStore):
    """Gives the newest entry first."""

    def job_history(self, job_id: UUID) -> list[Transition]:
        """Read the log from its end."""
        return super().job_history(job_id)[::-1]


@breaks("1.3")
class KeepsTheLease(OtherSnapshots):
    """Shows the last owner of a job for ever."""

    owner = "worker-1"

    def _shown(self, found: JobSnapshot) -> JobSnapshot:
        return replace(found, lease_owner="worker-1") if found.attempt else found


@breaks("1.3")
class EndsWithoutACause(OtherSnapshots):
    """Keeps no causes."""

    def _shown(self, found: JobSnapshot) -> JobSnapshot:
        return replace(found, terminal_cause=None)


@breaks("1.3")
class GivesEveryJobAnEnd(OtherSnapshots):
    """Shows an end on jobs that live."""

    def _shown(self, found: JobSnapshot) -> JobSnapshot:
        return replace(found, terminal_at=found.terminal_at or found.due_time)


@breaks("1.3", "5.1")
class KeepsTheRequest(OtherSnapshots):
    """Shows a request to cancel for ever once it was made."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._asked: set[UUID] = set()

    def _shown(self, found: JobSnapshot) -> JobSnapshot:
        return replace(found, cancel_requested=found.job_id in self._asked)

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel, and never forget it."""
        self._asked.add(job_id)
        return super().cancel(job_id, actor, now)
