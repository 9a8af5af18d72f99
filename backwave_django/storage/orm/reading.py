"""The reads of the contract, over the ORM."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Lower

from ...core.states import JobState
from ...core.tags import Tag
from ...core.text import ascii_folded, visible
from ...models import Dependency, Job, JobContent, JobTag
from ...models import Transition as TransitionRow
from ..rules import can_be_found
from ..values import (
    AncestorOutput,
    DependencyEdges,
    JobCount,
    JobFilter,
    JobSnapshot,
    TagFacet,
    Transition,
)
from .base import StoreBase, guarded
from .rows import snapshot_of, tag_from_row
from .slices import matching


class ReadingOrm(StoreBase):
    """The reading part of the Django store; see ``ReadingStore``."""

    @guarded
    def get_job(self, job_id: UUID) -> JobSnapshot | None:
        """Read one job."""
        job = self.dialect.jobs().filter(job_id=job_id).first()
        return None if job is None else snapshot_of(job)

    @guarded
    def list_jobs(
        self,
        job_filter: JobFilter,
        *,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 50,
    ) -> list[JobSnapshot]:
        """Read a page of jobs by sequence."""
        if not can_be_found(job_filter):
            return []
        jobs = matching(self.dialect, job_filter)
        if after is not None:
            jobs = jobs.filter(**{"sequence__lt" if newest_first else "sequence__gt": after})
        jobs = jobs.order_by("-sequence" if newest_first else "sequence")
        return [snapshot_of(job) for job in jobs[: self.page(limit)]]

    @guarded
    def count_jobs(self) -> list[JobCount]:
        """Count jobs by queue and state."""
        rows = self.dialect.jobs().order_by("queue", "state").values_list("queue", "state")
        return [JobCount(q, JobState(s), n) for q, s, n in rows.annotate(Count("sequence"))]

    @guarded
    def job_history(self, job_id: UUID) -> list[Transition]:
        """Read a job's transition log, oldest first."""
        rows = TransitionRow.objects.using(self.alias).filter(job__job_id=job_id)
        newest = rows.order_by("-ordinal")[: self.limits.max_transitions_per_job]
        return [
            Transition(
                row.ordinal, row.at, JobState(row.state), row.attempt, row.claim_number,
                row.worker_id, row.failure_detail,
            )
            for row in reversed(newest)
        ]  # fmt: skip

    def job_output(self, job_id: UUID) -> bytes | None:
        """Read a job's output."""
        return self._bytes(job_id, "output")

    def job_payload(self, job_id: UUID) -> bytes | None:
        """Read a job's payload."""
        return self._bytes(job_id, "payload")

    @guarded
    def _bytes(self, job_id: UUID, column: str) -> bytes | None:
        rows = JobContent.objects.using(self.alias).filter(job__job_id=job_id)
        value = rows.values_list(column, flat=True).first()
        return None if value is None else bytes(value)

    @guarded
    def job_tags(self, job_id: UUID) -> list[Tag]:
        """Read a job's tags in first-seen order."""
        rows = JobTag.objects.using(self.alias).filter(job__job_id=job_id).order_by("id")
        return [tag_from_row(row) for row in rows.values_list("key", "value")]

    # -- tags ---------------------------------------------------------------------

    @guarded
    def tag_facets(
        self,
        job_filter: JobFilter,
        key: str | None,
        *,
        after: TagFacet | None = None,
        limit: int = 50,
    ) -> list[TagFacet]:
        """Count the jobs of a slice per value."""
        if not can_be_found(job_filter) or not _can_be_tag(key or ""):
            return []
        rows = JobTag.objects.using(self.alias).filter(key=key or "")
        if job_filter != JobFilter():
            rows = rows.filter(job__in=matching(self.dialect, job_filter))
        # A job has a value of a key once, so rows are jobs.
        counts = rows.values("value").annotate(jobs=Count("id"))
        if after is not None:
            level = Q(jobs=after.count, value__gt=after.tag.value)
            counts = counts.filter(Q(jobs__lt=after.count) | level)
        found = counts.order_by("-jobs", "value").values_list("value", "jobs")
        return [TagFacet(Tag(key, value), count) for value, count in found[: self.page(limit)]]

    @guarded
    def suggest_tags(
        self, prefix: str, key: str | None, *, after: str | None = None, limit: int = 50
    ) -> list[str]:
        """Complete a label, or a value of a key."""
        rows = JobTag.objects.using(self.alias).filter(key=key or "")
        return self._completed(rows, "value", (key or "", prefix, after or ""), limit)

    @guarded
    def suggest_tag_keys(
        self, prefix: str, *, after: str | None = None, limit: int = 50
    ) -> list[str]:
        """Complete a key."""
        rows = JobTag.objects.using(self.alias).exclude(key="")
        return self._completed(rows, "key", ("", prefix, after or ""), limit)

    def _completed(
        self, rows: QuerySet[JobTag], column: str, asked: tuple[str, str, str], limit: int
    ) -> list[str]:
        _, prefix, after = asked
        if not all(_can_be_tag(text) for text in asked):
            return []
        # The columns compare by code point, so lower() touches ASCII alone, as the fold does.
        found = rows.alias(folded=Lower(column)).filter(
            **{"folded__startswith": ascii_folded(prefix), f"{column}__gt": after}
        )
        texts: Any = found.order_by(column).values_list(column, flat=True).distinct()
        return list(texts[: self.page(limit)])

    # -- the graph ----------------------------------------------------------------

    @guarded
    def get_dependency_edges(self, job_id: UUID) -> DependencyEdges | None:
        """Read where a job stands in its graph."""
        sequence = self._sequence(job_id)
        if sequence is None:
            return None
        edges = Dependency.objects.using(self.alias)
        gating = edges.filter(child_id=sequence, open=True).order_by("parent_id")
        children = edges.filter(parent_id=sequence).order_by("child_id")
        return DependencyEdges(
            tuple(gating.values_list("parent__job_id", flat=True)),
            tuple(children.values_list("child__job_id", flat=True)),
        )

    @guarded
    def read_output(self, reader_id: UUID, ancestor_id: UUID) -> AncestorOutput | None:
        """Read what an ancestor left."""
        reader, ancestor = self._sequence(reader_id), self._sequence(ancestor_id)
        if reader is None or ancestor is None:
            return None
        if not self.dialect.is_ancestor(ancestor, reader):
            return None
        job: Job = self.dialect.jobs().select_related("content").get(sequence=ancestor)
        output = job.content.output
        return AncestorOutput(JobState(job.state), None if output is None else bytes(output))

    def _sequence(self, job_id: UUID) -> int | None:
        found = self.dialect.jobs().filter(job_id=job_id)
        return found.values_list("sequence", flat=True).first()


def _can_be_tag(text: str) -> bool:
    """Whether any stored text could be, or begin with, this one."""
    return visible(text) == text
