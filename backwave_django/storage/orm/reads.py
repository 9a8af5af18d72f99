"""The reads of the contract, over the ORM."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Count, Exists, OuterRef

from ...core.states import JobState
from ...core.tags import Tag
from ...models import JobContent, JobTag
from ...models import Transition as TransitionRow
from ..dialects.base import Dialect
from ..values import JobCount, JobFilter, JobSnapshot, Transition
from .rows import snapshot_of, stored_tag, tag_from_row


def get_job(dialect: Dialect, job_id: UUID) -> JobSnapshot | None:
    """Read one job."""
    job = dialect.jobs().filter(job_id=job_id).first()
    return None if job is None else snapshot_of(job)


def list_jobs(
    dialect: Dialect, wanted: JobFilter, after: int | None, newest_first: bool, limit: int
) -> list[JobSnapshot]:
    """Read a page of jobs by sequence."""
    jobs = dialect.jobs().order_by("-sequence" if newest_first else "sequence")
    exact = {
        "state": wanted.state,
        "queue": wanted.queue,
        "wire_name": wanted.wire_name,
        "schedule_id": wanted.schedule_id,
    }
    jobs = jobs.filter(**{name: value for name, value in exact.items() if value is not None})
    for tag in wanted.tags:
        key, value = stored_tag(tag)
        rows = JobTag.objects.using(dialect.alias).filter(job=OuterRef("sequence"))
        jobs = jobs.filter(Exists(rows.filter(key=key, value=value)))
    if after is not None:
        jobs = jobs.filter(**{"sequence__lt" if newest_first else "sequence__gt": after})
    return [snapshot_of(job) for job in jobs[:limit]]


def count_jobs(dialect: Dialect) -> list[JobCount]:
    """Count jobs by queue and state."""
    rows = dialect.jobs().order_by("queue", "state").values_list("queue", "state")
    return [JobCount(q, JobState(s), count) for q, s, count in rows.annotate(Count("sequence"))]


def job_history(dialect: Dialect, job_id: UUID) -> list[Transition]:
    """Read a job's transition log, oldest first."""
    rows = TransitionRow.objects.using(dialect.alias).filter(job__job_id=job_id)
    return [
        Transition(
            row.ordinal, row.at, JobState(row.state), row.attempt, row.claim_number,
            row.worker_id, row.failure_detail,
        )
        for row in rows.order_by("ordinal")
    ]  # fmt: skip


def job_bytes(dialect: Dialect, job_id: UUID, column: str) -> bytes | None:
    """Read the payload or the output of a job."""
    rows = JobContent.objects.using(dialect.alias).filter(job__job_id=job_id)
    value = rows.values_list(column, flat=True).first()
    return None if value is None else bytes(value)


def job_tags(dialect: Dialect, job_id: UUID) -> list[Tag]:
    """Read a job's tags in first-seen order."""
    rows = JobTag.objects.using(dialect.alias).filter(job__job_id=job_id).order_by("id")
    return [tag_from_row(row) for row in rows.values_list("key", "value")]
