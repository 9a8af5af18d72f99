"""Reads, in memory."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from ...core.tags import Tag
from ...core.text import ascii_folded
from ..values import (
    AncestorOutput,
    DependencyEdges,
    JobCount,
    JobFilter,
    JobSnapshot,
    TagFacet,
    Transition,
)
from .base import MemoryBase


class ReadingMemory(MemoryBase):
    """The reading part of the in-memory store; see ``ReadingStore``."""

    def get_job(self, job_id: UUID) -> JobSnapshot | None:
        """Read one job."""
        with self._lock:
            row = self._tables.rows.get(job_id)
            return None if row is None else row.snapshot()

    def list_jobs(
        self,
        job_filter: JobFilter,
        *,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 50,
    ) -> list[JobSnapshot]:
        """Read a page of jobs."""
        with self._lock:
            rows = sorted(
                self._tables.rows.values(), key=lambda row: row.sequence, reverse=newest_first
            )
            if after is not None:
                rows = [
                    r for r in rows if (r.sequence < after if newest_first else r.sequence > after)
                ]
            found = [row.snapshot() for row in rows if row.matches(job_filter)]
            return found[: self._page(limit)]

    def count_jobs(self) -> list[JobCount]:
        """Count jobs by queue and state."""
        with self._lock:
            counts = Counter((row.queue, row.state) for row in self._tables.rows.values())
        return [JobCount(queue, state, count) for (queue, state), count in sorted(counts.items())]

    def job_history(self, job_id: UUID) -> list[Transition]:
        """Read a job's transition log."""
        with self._lock:
            row = self._tables.rows.get(job_id)
            return [] if row is None else list(row.transitions)

    def job_output(self, job_id: UUID) -> bytes | None:
        """Read a job's output."""
        row = self._tables.rows.get(job_id)
        return None if row is None else row.output

    def job_payload(self, job_id: UUID) -> bytes | None:
        """Read a job's payload."""
        row = self._tables.rows.get(job_id)
        return None if row is None else row.payload

    def job_tags(self, job_id: UUID) -> list[Tag]:
        """Read a job's tags."""
        row = self._tables.rows.get(job_id)
        return [] if row is None else list(row.tags)

    # -- tags ---------------------------------------------------------------------

    def tag_facets(
        self,
        job_filter: JobFilter,
        key: str | None,
        *,
        after: TagFacet | None = None,
        limit: int = 50,
    ) -> list[TagFacet]:
        """Count the jobs of a slice per value."""
        with self._lock:
            slice_ = [row for row in self._tables.rows.values() if row.matches(job_filter)]
            counts = Counter(tag for row in slice_ for tag in row.tags if tag.key == key)
        facets = [TagFacet(tag, count) for tag, count in counts.items()]
        facets.sort(key=_facet_order)
        if after is not None:
            facets = [facet for facet in facets if _facet_order(facet) > _facet_order(after)]
        return facets[: self._page(limit)]

    def suggest_tags(
        self, prefix: str, key: str | None, *, after: str | None = None, limit: int = 50
    ) -> list[str]:
        """Complete a label, or a value of a key."""
        return self._completed(
            {tag.value for tag in self._all_tags() if tag.key == key}, prefix, after, limit
        )

    def suggest_tag_keys(
        self, prefix: str, *, after: str | None = None, limit: int = 50
    ) -> list[str]:
        """Complete a key."""
        keys = {tag.key for tag in self._all_tags() if tag.key is not None}
        return self._completed(keys, prefix, after, limit)

    def _all_tags(self) -> set[Tag]:
        with self._lock:
            return {tag for row in self._tables.rows.values() for tag in row.tags}

    def _completed(self, texts: set[str], prefix: str, after: str | None, limit: int) -> list[str]:
        wanted = ascii_folded(prefix)
        found = sorted(
            text
            for text in texts
            if ascii_folded(text).startswith(wanted) and (after is None or text > after)
        )
        return found[: self._page(limit)]

    # -- the graph ----------------------------------------------------------------

    def get_dependency_edges(self, job_id: UUID) -> DependencyEdges | None:
        """Read where a job stands in its graph."""
        with self._lock:
            rows = self._tables.rows
            row = rows.get(job_id)
            if row is None:
                return None
            gating = sorted(row.gating, key=lambda parent: rows[parent].sequence)
            children = [child.job_id for child in rows.values() if job_id in child.parents]
            return DependencyEdges(tuple(gating), tuple(children))

    def read_output(self, reader_id: UUID, ancestor_id: UUID) -> AncestorOutput | None:
        """Read what an ancestor left."""
        with self._lock:
            rows = self._tables.rows
            seen: set[UUID] = set()
            frontier = [reader_id]
            while frontier:
                row = rows.get(frontier.pop())
                fresh = [parent for parent in row.parents if parent not in seen] if row else []
                seen.update(fresh)
                frontier += fresh
            ancestor = rows.get(ancestor_id) if ancestor_id in seen else None
            return None if ancestor is None else AncestorOutput(ancestor.state, ancestor.output)


def _facet_order(facet: TagFacet) -> tuple[int, str]:
    return -facet.count, facet.tag.value
