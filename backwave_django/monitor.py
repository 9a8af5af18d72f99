"""Reading jobs: the pull side, for applications and dashboards."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from .core.states import JobState
from .core.tags import TagLike, tag_set
from .deployment import store
from .storage.rules import check_job_id
from .storage.values import JobCount, JobFilter, JobSnapshot, Transition

__all__ = [
    "JobCount",
    "JobSnapshot",
    "Transition",
    "count_jobs",
    "get_job",
    "job_history",
    "list_jobs",
]


def get_job(job_id: UUID) -> JobSnapshot | None:
    """Read one job; ``None`` where there is none of this id."""
    return store().get_job(check_job_id(job_id))


def list_jobs(
    state: JobState | None = None,
    queue: str | None = None,
    wire_name: str | None = None,
    tags: Sequence[TagLike] = (),
    schedule_id: str | None = None,
    after: int | None = None,
    newest_first: bool = False,
    limit: int = 50,
) -> list[JobSnapshot]:
    """Read a page of jobs, by sequence. Conditions join with AND.

    Args:
        state: only jobs in this state.
        queue: only jobs of this queue.
        wire_name: only jobs of this type.
        tags: only jobs that carry all of these.
        schedule_id: only jobs that this schedule minted.
        after: the ``sequence`` of the last job of the page before.
        newest_first: from the highest sequence down.
        limit: at most so many, clamped to ``MaxMonitorPageSize``.
    """
    wanted = JobFilter(state, queue, wire_name, tag_set(tags), schedule_id)
    return store().list_jobs(wanted, after=after, newest_first=newest_first, limit=limit)


def count_jobs() -> list[JobCount]:
    """Count jobs by queue and state, ordered by both; zero counts are left out."""
    return store().count_jobs()


def job_history(job_id: UUID) -> list[Transition]:
    """Read the transition log of a job, oldest first."""
    return store().job_history(check_job_id(job_id))
