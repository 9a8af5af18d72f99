"""Mutants of chapter 2: answers, batches, parents and tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from ....core.settlement import parent_cause
from ....core.states import JobState, Move
from ....core.tags import Tag
from ....storage.memory import InMemoryStore
from ....storage.values import (
    DependencyMode,
    EnqueueResult,
    EnqueueStatus,
    NewJob,
)
from .registry import Reenqueued, Unlocked, breaks, pause

OK = EnqueueResult(EnqueueStatus.OK)


@breaks("2.1", "2.2")
class ReplacesDuplicates(InMemoryStore):
    """Takes a second job with one id for a newer version of the first."""

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        answer = super()._insert(job, now)
        if answer.status is EnqueueStatus.DUPLICATE:
            row = self._tables.rows[job.job_id]
            row.payload, row.tags, row.trace_context = job.payload, list(job.tags), "newer"
            row.gating |= set(job.parents)
        return answer


@breaks("2.1")
class DelaysWhatIsDue(Reenqueued):
    """Moves due times that lie in the past to now, and all others by a second."""

    def _changed(self, job: NewJob) -> NewJob:
        return replace(job, due_time=job.due_time + timedelta(seconds=1))


@breaks("2.1", "2.2")
class StoresWhatItRefuses(InMemoryStore):
    """Leaves a trace of a refused job."""

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue, also what is refused."""
        answers = super().enqueue_many(jobs, now)
        for job, answer in zip(jobs, answers, strict=True):
            if answer.status not in (EnqueueStatus.OK, EnqueueStatus.DUPLICATE):
                self._insert(replace(job, parents=()), now)
        return answers


@breaks("2.1")
class NamesNoParent(InMemoryStore):
    """Says that a parent is unknown, but not which, and takes a job for its own parent."""

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        parents = tuple(parent for parent in job.parents if parent != job.job_id)
        answer = super()._insert(replace(job, parents=parents), now)
        return answer._replace(parent_id=None)


@breaks("2.1", "2.2")
class KnowsEveryParent(InMemoryStore):
    """Passes over parents that nobody knows."""

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        known = tuple(parent for parent in job.parents if parent in self._tables.rows)
        return super()._insert(replace(job, parents=known), now)


@breaks("2.2")
class RefusesTheWholeBatch(InMemoryStore):
    """Stores nothing of a batch with one refused job in it."""

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue all or nothing."""
        before = set(self._tables.rows)
        answers = super().enqueue_many(jobs, now)
        if any(answer != OK for answer in answers):
            for job_id in set(self._tables.rows) - before:
                del self._tables.rows[job_id]
        return answers


@breaks("2.2")
class StoresABatchFromItsEnd(InMemoryStore):
    """Stores the last job of a batch first."""

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue in reverse."""
        return list(super().enqueue_many(jobs[::-1], now))[::-1]


@breaks("2.2")
class FindsNoParentInTheBatch(InMemoryStore):
    """Looks only for parents that were there before."""

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue without a look at the batch."""
        ids = {job.job_id for job in jobs}
        kept = [
            replace(job, parents=(*job.parents, UUID(int=0))) if ids & set(job.parents) else job
            for job in jobs
        ]
        return super().enqueue_many(kept, now)


@breaks("2.2")
class AnswersAnEmptyBatch(InMemoryStore):
    """Has an answer where nothing was asked, and forgets the last one of many."""

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue, with an answer too many."""
        return super().enqueue_many(jobs, now) if jobs else [OK]


@breaks("2.2", "2.4")
class CancelsTheFirstLevelOnly(InMemoryStore):
    """Takes a parent that was cancelled for one that has succeeded."""

    def _start_of(self, job: NewJob, parents: tuple[UUID, ...]) -> Any:
        alive = tuple(
            parent
            for parent in parents
            if self._tables.rows[parent].state is not JobState.CANCELLED
        )
        return super()._start_of(job, alive)


@breaks("2.3")
class HidesNewJobs(InMemoryStore):
    """Lets a job be claimed a second after it was enqueued at the earliest."""

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        answer = super()._insert(job, now)
        if answer == OK:
            row = self._tables.rows[job.job_id]
            row.due_time = max(row.due_time, now + timedelta(seconds=1))
        return answer


@breaks("2.4")
class CountsParentsTwice(InMemoryStore):
    """Refuses repeated parents, as if each were one more."""

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue, counting every mention of a parent."""
        most = self.limits.max_parents_per_job
        answers = super().enqueue_many([job for job in jobs if len(job.parents) <= most], now)
        left = iter(answers)
        too_many = EnqueueResult(EnqueueStatus.TOO_MANY_PARENTS)
        return [next(left) if len(job.parents) <= most else too_many for job in jobs]


@breaks("2.4")
class WaitsForRepeatedParents(InMemoryStore):
    """Waits once more for a parent that is named again."""

    def _start_of(self, job: NewJob, parents: tuple[UUID, ...]) -> Any:
        move, cause, gating = super()._start_of(job, parents)
        repeated = len(job.parents) > len(set(job.parents))
        return move, cause, gating | {UUID(int=0)} if gating and repeated else gating


@breaks("2.4")
class WaitsForNobody(InMemoryStore):
    """Schedules every job at once."""

    def _start_of(self, job: NewJob, parents: tuple[UUID, ...]) -> Any:
        return Move.ENQUEUE, None, set()


@breaks("2.4")
class WaitsForEveryParent(InMemoryStore):
    """Waits for parents that have ended already, too."""

    def _start_of(self, job: NewJob, parents: tuple[UUID, ...]) -> Any:
        move, cause, _ = super()._start_of(job, parents)
        if move is Move.ENQUEUE_CANCELLED or not parents:
            return move, cause, set()
        return Move.ENQUEUE_WAITING, None, set(parents)


@breaks("2.4")
class CancelsInEveryMode(InMemoryStore):
    """Cancels a job whose parent has failed, whatever its mode, and names no parent."""

    def _start_of(self, job: NewJob, parents: tuple[UUID, ...]) -> Any:
        for parent_id in parents:
            state = self._tables.rows[parent_id].state
            if state.is_terminal and state is not JobState.SUCCEEDED:
                return Move.ENQUEUE_CANCELLED, "a parent failed", set()
        return super()._start_of(replace(job, mode=DependencyMode.ON_SUCCESS), parents)


@breaks("2.4")
class CancelsInTwoSteps(InMemoryStore):
    """Stores a job whose parent has failed, and cancels it afterwards."""

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        for parent_id in job.parents:
            row = self._tables.rows.get(parent_id)
            if row is None or job.mode is DependencyMode.ON_ANY_TERMINAL:
                continue
            if row.state.is_terminal and row.state is not JobState.SUCCEEDED:
                answer = super()._insert(replace(job, parents=()), now)
                cause = parent_cause(parent_id, row.state)
                child = self._tables.rows[job.job_id]
                self._tables.move(child, Move.CANCEL, now, cause=cause)
                return answer
        return super()._insert(job, now)


@breaks("2.4")
class LooksAtParentsTooEarly(Unlocked):
    """Reads the states of the parents, and stores the job some time later."""

    def _start_of(self, job: NewJob, parents: tuple[UUID, ...]) -> Any:
        start = super()._start_of(job, parents)
        if parents:
            pause()
        return start


@breaks("2.4")
class ReleasesEverythingThatWaits(InMemoryStore):
    """Takes every waiting job for one whose parents have ended."""

    def release_waiting(
        self, max_jobs: int, now: datetime, job_ids: Sequence[UUID] | None = None
    ) -> int:
        """Release without a look."""
        waiting = [r for r in self._tables.rows.values() if r.state is JobState.AWAITING_PARENT]
        for row in waiting:
            row.gating.clear()
            self._tables.move(row, Move.RELEASE, now)
        return len(waiting) or int(super().release_waiting(max_jobs, now, job_ids))


@breaks("2.5", "4.5")
class SortsTags(InMemoryStore):
    """Gives tags in alphabetical order."""

    def job_tags(self, job_id: UUID) -> list[Tag]:
        """Read tags, sorted."""
        return sorted(super().job_tags(job_id), key=lambda tag: (tag.key or "", tag.value))


@breaks("2.5")
class KeepsRepeatedTags(InMemoryStore):
    """Keeps a list of tags where it should keep a set."""

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue with all that was given."""
        answers = super().enqueue_many(jobs, now)
        for job, answer in zip(jobs, answers, strict=True):
            if answer == OK:
                self._tables.rows[job.job_id].tags = list(job.tags)
        return answers


@breaks("2.5", "8.2")
class PartsLabelsAtColons(Reenqueued):
    """Takes a label with a colon for a keyed tag."""

    def _changed(self, job: NewJob) -> NewJob:
        parted = [
            Tag(*tag.value.split(":", 1)) if tag.key is None and ":" in tag.value else tag
            for tag in job.tags
        ]
        return replace(job, tags=tuple(parted))


@breaks("2.5", "4.5")
class SharesTags(InMemoryStore):
    """Mixes the tags of jobs that were stored one after the other."""

    def job_tags(self, job_id: UUID) -> list[Tag]:
        """Read the tags of everybody."""
        found = [tag for row in self._tables.rows.values() for tag in row.tags]
        return list(dict.fromkeys(found)) if job_id in self._tables.rows else []
