"""Enqueueing over the ORM: which jobs pass, and what state each starts in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from ...core.limits import Limits
from ...core.settlement import parent_cause
from ...core.states import JobState
from ...models import Dependency
from ..dialects.base import Dialect
from ..rules import refusal_of, with_tag_set
from ..values import DependencyMode, EnqueueResult, EnqueueStatus, NewJob
from .rows import CHUNK, NewRow

OK = EnqueueResult(EnqueueStatus.OK)
DUPLICATE = EnqueueResult(EnqueueStatus.DUPLICATE)


def enqueue_many(
    dialect: Dialect, limits: Limits, jobs: Sequence[NewJob], now: datetime
) -> list[EnqueueResult]:
    """Store jobs, an answer per job, in the order given."""
    jobs = [with_tag_set(job) for job in jobs]
    results: list[EnqueueResult | None] = [refusal_of(job, limits) for job in jobs]
    passed = {place: job for place, job in enumerate(jobs) if results[place] is None}
    if not passed:
        pass
    elif any(job.parents for job in passed.values()) or len(passed) > CHUNK:
        # Several statements, which must stand or fall together.
        with dialect.writing(now):
            _store(dialect, passed, results, now)
    else:
        _store(dialect, passed, results, now)
    return [result or OK for result in results]


def _store(
    dialect: Dialect,
    passed: dict[int, NewJob],
    results: list[EnqueueResult | None],
    now: datetime,
) -> None:
    parents = _Parents(dialect, list(passed.values()))
    rows: dict[int, NewRow] = {}
    for place, job in passed.items():
        unknown = parents.unknown(job)
        if parents.is_known(job.job_id):
            results[place] = DUPLICATE
        elif unknown is not None:
            results[place] = EnqueueResult(EnqueueStatus.UNKNOWN_PARENT, unknown)
        else:
            rows[place] = parents.start(job)
    inserted: dict[UUID, int] = {}
    pending = list(rows.values())
    for start in range(0, len(pending), CHUNK):
        inserted |= dialect.insert_jobs(pending[start : start + CHUNK], now)
    for place, row in rows.items():
        if row.job.job_id not in inserted:
            results[place] = DUPLICATE
    parents.write_edges(pending, inserted)


class _Parent(NamedTuple):
    """What is known of a parent; no sequence while it is only in the batch."""

    sequence: int | None
    state: JobState


class _Parents:
    """The parents of a batch, and what they make of their children.

    A parent is there already, or stands earlier in the batch. Those that are there are
    read, and kept from vanishing, before anything is inserted.
    """

    def __init__(self, dialect: Dialect, jobs: list[NewJob]) -> None:
        self._dialect = dialect
        self._known: dict[UUID, _Parent] = {}
        dependents = [job for job in jobs if job.parents]
        if not dependents:
            return
        ids = {parent for job in dependents for parent in job.parents}
        dialect.lock_parents(sorted(ids))
        wanted = [*ids, *(job.job_id for job in jobs)]
        for start in range(0, len(wanted), CHUNK):
            found = dialect.jobs().filter(job_id__in=wanted[start : start + CHUNK])
            for sequence, job_id, state in found.values_list("sequence", "job_id", "state"):
                self._known[job_id] = _Parent(sequence, JobState(state))

    def is_known(self, job_id: UUID) -> bool:
        """Whether a job of this id is there, or stands earlier in the batch."""
        return job_id in self._known

    def unknown(self, job: NewJob) -> UUID | None:
        """Give the first parent that nobody knows."""
        return next((parent for parent in job.parents if parent not in self._known), None)

    def start(self, job: NewJob) -> NewRow:
        """Give the row that a job starts as, and make it known to those after it."""
        row = NewRow(job, JobState.SCHEDULED)
        gating = 0
        for parent_id in dict.fromkeys(job.parents):
            state = self._known[parent_id].state
            if not state.is_terminal:
                gating += 1
            elif job.mode is DependencyMode.ON_SUCCESS and state is not JobState.SUCCEEDED:
                row = NewRow(job, JobState.CANCELLED, 0, parent_cause(parent_id, state))
                break
        else:
            if gating:
                row = NewRow(job, JobState.AWAITING_PARENT, gating)
        self._known[job.job_id] = _Parent(None, row.state)
        return row

    def write_edges(self, rows: list[NewRow], inserted: dict[UUID, int]) -> None:
        """Write an edge from each inserted job to each of its parents."""
        edges = [
            Dependency(
                parent_id=self._sequence(parent_id, inserted),
                child_id=inserted[row.job.job_id],
                open=row.latch > 0 and not self._known[parent_id].state.is_terminal,
            )
            for row in rows
            if row.job.job_id in inserted
            for parent_id in dict.fromkeys(row.job.parents)
        ]
        if edges:
            Dependency.objects.using(self._dialect.alias).bulk_create(edges, batch_size=CHUNK)

    def _sequence(self, parent_id: UUID, inserted: dict[UUID, int]) -> int:
        known = inserted.get(parent_id) or self._known[parent_id].sequence
        if known is None:
            # Another transaction stored this id first, while ours was under way.
            known = self._dialect.jobs().values_list("sequence", flat=True).get(job_id=parent_id)
        return known
