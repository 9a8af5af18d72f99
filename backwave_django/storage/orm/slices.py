"""Which jobs a filter means, over the ORM."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet

from ...models import Job, JobTag
from ..dialects.base import Dialect
from ..values import JobFilter
from .rows import stored_tag


def matching(dialect: Dialect, wanted: JobFilter) -> QuerySet[Job]:
    """Give the jobs that match all conditions of a filter."""
    exact = {
        "state": wanted.state,
        "queue": wanted.queue,
        "wire_name": wanted.wire_name,
        "schedule_id": wanted.schedule_id,
    }
    jobs = dialect.jobs().filter(**{name: v for name, v in exact.items() if v is not None})
    for tag in wanted.tags:
        key, value = stored_tag(tag)
        rows = JobTag.objects.using(dialect.alias).filter(job=OuterRef("sequence"))
        jobs = jobs.filter(Exists(rows.filter(key=key, value=value)))
    return jobs
