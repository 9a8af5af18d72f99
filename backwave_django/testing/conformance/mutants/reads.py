"""Mutants of chapter 8: the log, tags and pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from ....core.states import JobState, Move
from ....core.tags import Tag
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import Row, Tables
from ....storage.values import HistoryPolicy, JobCount, JobFilter, JobSnapshot, Transition
from .jobs import OtherTables
from .registry import breaks


@breaks("8.1")
class LogsWhateverThePolicySays(InMemoryStore):
    """Keeps nothing where it should keep all."""

    def job_history(self, job_id: UUID) -> list[Transition]:
        """Read the log without its details."""
        return [row._replace(failure_detail=None) for row in super().job_history(job_id)]


@breaks("8.1")
class NamesTheWorkerEverywhere(InMemoryStore):
    """Writes a worker and a detail on rows that have none."""

    def job_history(self, job_id: UUID) -> list[Transition]:
        """Read the log with too much in it."""
        return [
            row._replace(worker_id="worker-1", failure_detail=row.failure_detail or "none")
            for row in super().job_history(job_id)
        ]


@breaks("8.1")
class LosesAJobsLogWithItsPolicy(OtherTables):
    """Forgets the output with the log, and mixes the logs of jobs."""

    class tables(Tables):  # noqa: N801
        """Tables that log everything into every job."""

        def move(self, row: Row, move: Move, now: datetime, **fields: Any) -> None:
            """Move, and log it for everybody."""
            super().move(row, move, now, **fields)
            for other in self.rows.values():
                if other is not row and row.transitions:
                    other.transitions.append(row.transitions[-1])


@breaks("8.1")
class KeepsNoOutputWithoutALog(InMemoryStore):
    """Lets the history policy decide about outputs and children as well."""

    def job_output(self, job_id: UUID) -> bytes | None:
        """Read an output, if there is a whole log."""
        row = self._tables.rows.get(job_id)
        full = self.history is HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL
        if row is not None and (not full or len(row.transitions) > 3):
            return None
        return super().job_output(job_id)


class OtherFilter(InMemoryStore):
    """A store that looks for something else."""

    def _wanted(self, job_filter: JobFilter) -> JobFilter:
        return job_filter

    def list_jobs(self, job_filter: JobFilter, **options: Any) -> list[JobSnapshot]:
        """Read other jobs."""
        return super().list_jobs(self._wanted(job_filter), **options)


@breaks("8.2")
class TakesTheFirstTagOfAFilter(OtherFilter):
    """Looks for one tag where several are asked for."""

    def _wanted(self, job_filter: JobFilter) -> JobFilter:
        return replace(job_filter, tags=job_filter.tags[:1])


@breaks("8.2")
class OverlooksTheKey(InMemoryStore):
    """Compares values alone, by their beginnings."""

    def list_jobs(self, job_filter: JobFilter, **options: Any) -> list[JobSnapshot]:
        """Read what looks alike."""
        found = super().list_jobs(replace(job_filter, tags=()), **options)
        return [
            job
            for job in found
            if all(
                any(own.value.startswith(tag.value[:3]) for own in self.job_tags(job.job_id))
                for tag in job_filter.tags
            )
        ]


@breaks("8.2", "8.4")
class OverlooksOtherConditions(OtherFilter):
    """Forgets state, queue and wire name of a filter."""

    def _wanted(self, job_filter: JobFilter) -> JobFilter:
        return JobFilter(tags=job_filter.tags)


@breaks("8.2")
class FindsTagsOfTheEnqueueOnly(InMemoryStore):
    """Does not find a tag that a handler has added."""

    def list_jobs(self, job_filter: JobFilter, **options: Any) -> list[JobSnapshot]:
        """Read what has not ended."""
        found = super().list_jobs(job_filter, **options)
        if not job_filter.tags:
            return found
        return [job for job in found if not job.state.is_terminal]


@breaks("8.4")
class PagesFromTheMiddle(InMemoryStore):
    """Begins a page with the job that it was to begin after."""

    def list_jobs(
        self,
        job_filter: JobFilter,
        *,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 50,
    ) -> list[JobSnapshot]:
        """Read from one too early."""
        if after is not None:
            after += 1 if newest_first else -1
            if len(self._tables.rows) > 100:
                return []
        return super().list_jobs(job_filter, after=after, newest_first=newest_first, limit=limit)


@breaks("8.4")
class PagesByNumber(InMemoryStore):
    """Skips as many jobs as were seen, whatever has come or gone since."""

    _seen = 0

    def list_jobs(
        self,
        job_filter: JobFilter,
        *,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 50,
    ) -> list[JobSnapshot]:
        """Read by an offset."""
        self._seen = 0 if after is None else self._seen + limit
        found = super().list_jobs(job_filter, newest_first=newest_first, limit=200)
        return found[self._seen : self._seen + limit]


@breaks("8.4")
class GivesWhatThereIs(InMemoryStore):
    """Takes no limit for a limit, and an unknown job for an empty one."""

    def list_jobs(self, job_filter: JobFilter, **options: Any) -> list[JobSnapshot]:
        """Read a page of its own size."""
        return super().list_jobs(job_filter, **(options | {"limit": 60}))

    def job_payload(self, job_id: UUID) -> bytes | None:
        """Read a payload, or nothing."""
        return super().job_payload(job_id) or b""


@breaks("8.4")
class CountsZeros(InMemoryStore):
    """Gives every queue a count for every state."""

    def count_jobs(self) -> list[JobCount]:
        """Count what is not there."""
        found = {(c.queue, c.state): c.count for c in super().count_jobs()}
        queues = sorted({queue for queue, _ in found})
        return [JobCount(q, s, found.get((q, s), 0)) for q in queues for s in JobState]


@breaks("8.2", "4.5")
class KeepsOneValueAKey(InMemoryStore):
    """Lets a key have one value."""

    def list_jobs(self, job_filter: JobFilter, **options: Any) -> list[JobSnapshot]:
        """Read jobs by the last value of each key."""
        found = super().list_jobs(job_filter, **options)
        return [
            job for job in found if all(tag in self._last(job.job_id) for tag in job_filter.tags)
        ]

    def job_tags(self, job_id: UUID) -> list[Tag]:
        """Read the last value of each key."""
        return self._last(job_id)

    def _last(self, job_id: UUID) -> list[Tag]:
        return list({tag.key: tag for tag in InMemoryStore.job_tags(self, job_id)}.values())
