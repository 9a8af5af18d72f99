"""Letting go of what has ended, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from ...core.states import JobState
from ..rules import check_cutoffs, check_instant
from .base import MemoryBase
from .rows import Row


class RetainingMemory(MemoryBase):
    """The retaining part of the in-memory store; see ``RetainingStore``."""

    def purge(
        self,
        before: Mapping[JobState, datetime],
        max_jobs: int,
        now: datetime,
        *,
        queues: Sequence[str] | None = None,
        but_queues: Sequence[str] = (),
    ) -> int:
        """Delete ended jobs."""
        check_instant(now)
        check_cutoffs(before)
        room = max(0, min(max_jobs, self.limits.max_purge_batch))
        gone: set[UUID] = set()
        with self._lock:
            candidates = [
                row
                for row in self._tables.rows.values()
                if self._is_due(row, before, now)
                and (queues is None or row.queue in queues)
                and row.queue not in but_queues
            ]
            for row in sorted(candidates, key=_order):
                if len(gone) < room:
                    gone |= {member.job_id for member in self._whole(row, before, now)}
            for job_id in gone:
                self._tables.count_lost(self._tables.rows.pop(job_id).log)
        return len(gone)

    def _is_due(self, row: Row, before: Mapping[JobState, datetime], now: datetime) -> bool:
        """Whether a job has ended long enough ago, and nobody has a use for it."""
        cutoff = before.get(row.state)
        ended = cutoff is not None and row.terminal_at is not None and row.terminal_at < cutoff
        is_undelivered = any(self._tables.is_undelivered(entry, now) for entry in row.log)
        return ended and not is_undelivered and not self._tables.has_live_dependent(row.job_id)

    def _whole(self, row: Row, before: Mapping[JobState, datetime], now: datetime) -> list[Row]:
        """Give what goes with a job: its workflow, if all of that is due."""
        if row.workflow_id is None:
            return [row]
        members = [r for r in self._tables.rows.values() if r.workflow_id == row.workflow_id]
        return members if all(self._is_due(member, before, now) for member in members) else []


def _order(row: Row) -> tuple[object, ...]:
    return row.queue, row.state, row.terminal_at, row.sequence
