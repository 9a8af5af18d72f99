"""Letting go of what has ended, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from ...core.states import JobState
from ..rules import check_cutoffs
from .base import MemoryBase
from .rows import Row


class RetainingMemory(MemoryBase):
    """The retaining part of the in-memory store; see ``RetainingStore``."""

    def purge(
        self,
        before: Mapping[JobState, datetime],
        max_jobs: int,
        *,
        queues: Sequence[str] | None = None,
        but_queues: Sequence[str] = (),
    ) -> int:
        """Delete ended jobs."""
        check_cutoffs(before)
        room = max(0, min(max_jobs, self.limits.max_purge_batch))
        gone: set[UUID] = set()
        with self._lock:
            candidates = [
                row
                for row in self._tables.rows.values()
                if self._is_due(row, before)
                and (queues is None or row.queue in queues)
                and row.queue not in but_queues
            ]
            for row in sorted(candidates, key=_order):
                if len(gone) < room:
                    gone |= {member.job_id for member in self._whole(row, before)}
            for job_id in gone:
                del self._tables.rows[job_id]
        return len(gone)

    def _is_due(self, row: Row, before: Mapping[JobState, datetime]) -> bool:
        """Whether a job has ended long enough ago, and no live job depends on it."""
        cutoff = before.get(row.state)
        ended = cutoff is not None and row.terminal_at is not None and row.terminal_at < cutoff
        return ended and not self._tables.has_live_dependent(row.job_id)

    def _whole(self, row: Row, before: Mapping[JobState, datetime]) -> list[Row]:
        """Give what goes with a job: its workflow, if all of that is due."""
        if row.workflow_id is None:
            return [row]
        members = [r for r in self._tables.rows.values() if r.workflow_id == row.workflow_id]
        return members if all(self._is_due(member, before) for member in members) else []


def _order(row: Row) -> tuple[object, ...]:
    return row.queue, row.state, row.terminal_at, row.sequence
