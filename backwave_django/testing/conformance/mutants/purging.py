"""Mutants of chapter 8: purge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ....core.states import JobState
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import Row
from .registry import NoLock, breaks, pause


class OtherPurge(InMemoryStore):
    """A store that purges by other arguments."""

    def _asked(
        self, before: Mapping[JobState, datetime], queues: Any, but: Any
    ) -> tuple[Mapping[JobState, datetime], Any, Any]:
        return before, queues, but

    def purge(
        self,
        before: Mapping[JobState, datetime],
        max_jobs: int,
        now: datetime,
        *,
        queues: Sequence[str] | None = None,
        but_queues: Sequence[str] = (),
    ) -> int:
        """Purge something else."""
        before, queues, but_queues = self._asked(before, queues, but_queues)
        return super().purge(before, max_jobs, now, queues=queues, but_queues=but_queues)


@breaks("8.3")
class PurgesAtTheCutoff(OtherPurge):
    """Takes what ended at the very instant, too."""

    def _asked(self, before: Any, queues: Any, but: Any) -> Any:
        return {s: at + timedelta(microseconds=1) for s, at in before.items()}, queues, but


@breaks("8.3")
class HasOneCutoff(OtherPurge):
    """Takes the latest cutoff for every end."""

    def _asked(self, before: Any, queues: Any, but: Any) -> Any:
        ends = [state for state in JobState if state.is_terminal]
        return dict.fromkeys(ends, max(before.values())) if before else {}, queues, but


@breaks("8.3")
class PurgesEveryQueue(OtherPurge):
    """Asks for no queue."""

    def _asked(self, before: Any, queues: Any, but: Any) -> Any:
        return before, None, ()


@breaks("8.3")
class PurgesNothingButTheJob(InMemoryStore):
    """Leaves what hangs on a job to the next one of its id."""

    def purge(self, *arguments: Any, **options: Any) -> int:
        """Purge the rows, and bring their tags back."""
        before = dict(self._tables.rows)
        count = super().purge(*arguments, **options)
        for job_id in before.keys() - self._tables.rows.keys():
            row = before[job_id]
            row.queue = row.wire_name = "gone"
            self._tables.rows[job_id] = row
            row.state, row.terminal_at, row.terminal_cause = JobState.LEASED, None, None
        return count


@breaks("8.3")
class PurgesWithoutBound(InMemoryStore):
    """Takes all at once."""

    def purge(
        self, before: Mapping[JobState, datetime], max_jobs: int, now: datetime, **options: Any
    ) -> int:
        """Purge everything."""
        count = 0
        while gone := super().purge(before, 500, now, **options):
            count += gone
        return count


@breaks("8.3")
class KnowsNoLimitOfABatch(InMemoryStore):
    """Purges as many as it is asked for."""

    def purge(
        self, before: Mapping[JobState, datetime], max_jobs: int, now: datetime, **options: Any
    ) -> int:
        """Purge in two batches."""
        first = super().purge(before, max_jobs, now, **options)
        return first + (super().purge(before, max_jobs - first, now, **options) if first else 0)


@breaks("8.3")
class TearsWorkflowsApart(InMemoryStore):
    """Purges a member for itself."""

    def _whole(self, row: Row, before: Mapping[JobState, datetime], now: datetime) -> list[Row]:
        return [row]


@breaks("8.3")
class ChecksNoCutoff(InMemoryStore):
    """Purges what lives, if it is asked to."""

    def purge(
        self, before: Mapping[JobState, datetime], max_jobs: int, now: datetime, **options: Any
    ) -> int:
        """Purge what it can."""
        ended = {state: at for state, at in before.items() if state.is_terminal and at.tzinfo}
        return super().purge(ended, max_jobs, now, **options)


@breaks("8.3")
class PurgesTwice(InMemoryStore):
    """Counts a job for each sweep that has seen it."""

    def purge(self, *arguments: Any, **options: Any) -> int:
        """Purge without taking turns."""
        lock, self._lock = self._lock, NoLock()  # type: ignore[assignment]
        seen = len(self._tables.rows)
        pause()
        with lock:
            super().purge(*arguments, **options)
            return seen - len(self._tables.rows)
