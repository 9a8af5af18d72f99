"""What the contract lets anyone read."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from ...core.tags import Tag
from ..values import (
    AncestorOutput,
    DependencyEdges,
    JobCount,
    JobFilter,
    JobSnapshot,
    TagFacet,
    Transition,
)


class ReadingStore(Protocol):
    """Reads; none of them locks anything."""

    def get_job(self, job_id: UUID) -> JobSnapshot | None:
        """Read one job."""
        ...

    def list_jobs(
        self,
        job_filter: JobFilter,
        *,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 50,
    ) -> list[JobSnapshot]:
        """Read a page of jobs by sequence, beyond ``after``; clamped to the page limit (8.4)."""
        ...

    def count_jobs(self) -> list[JobCount]:
        """Count jobs by queue and state, ordered by both; zero counts are left out."""
        ...

    def job_history(self, job_id: UUID) -> list[Transition]:
        """Read a job's transition log, oldest first; the newest ``MaxTransitionsPerJob`` (8.1)."""
        ...

    def job_output(self, job_id: UUID) -> bytes | None:
        """Read the output that a succeeded job left, if it left one."""
        ...

    def job_payload(self, job_id: UUID) -> bytes | None:
        """Read a job's payload; ``None`` where there is no such job."""
        ...

    def job_tags(self, job_id: UUID) -> list[Tag]:
        """Read a job's tags in first-seen order; the key is ``None`` for a label."""
        ...

    def tag_facets(
        self,
        job_filter: JobFilter,
        key: str | None,
        *,
        after: TagFacet | None = None,
        limit: int = 50,
    ) -> list[TagFacet]:
        """Count the distinct jobs of a slice per value of ``key`` (8.2).

        Args:
            job_filter: which jobs to count.
            key: the key whose values are wanted; ``None`` for labels.
            after: the last facet of the page before.
            limit: clamped to ``MaxMonitorPageSize``.

        Returns:
            Highest count first, then by value in code-point order.
        """
        ...

    def suggest_tags(
        self, prefix: str, key: str | None, *, after: str | None = None, limit: int = 50
    ) -> list[str]:
        """Complete a label, or a value of ``key`` (8.2).

        ``prefix`` is literal text, compared without regard to ASCII case. Values come
        in code-point order, each once, beyond ``after``; clamped to the page limit.
        """
        ...

    def suggest_tag_keys(
        self, prefix: str, *, after: str | None = None, limit: int = 50
    ) -> list[str]:
        """Complete the key of a keyed tag, as ``suggest_tags`` does values (8.2)."""
        ...

    def get_dependency_edges(self, job_id: UUID) -> DependencyEdges | None:
        """Read where a job stands in its graph; ``None`` where there is no such job (6.5)."""
        ...

    def read_output(self, reader_id: UUID, ancestor_id: UUID) -> AncestorOutput | None:
        """Read what a transitive ancestor of ``reader_id`` left (6.6).

        ``None`` refuses: the other job is no ancestor, or one of the two is not there.
        """
        ...
