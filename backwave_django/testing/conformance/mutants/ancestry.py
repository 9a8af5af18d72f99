"""Mutants of chapter 6: edges and outputs of ancestors."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ....core.states import JobState
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import Tables
from ....storage.values import AncestorOutput, DependencyEdges
from .jobs import OtherTables
from .registry import breaks


class OtherEdges(InMemoryStore):
    """A store that shows other edges than it has."""

    def _shown(self, job_id: UUID, found: DependencyEdges) -> DependencyEdges:
        return found

    def get_dependency_edges(self, job_id: UUID) -> DependencyEdges | None:
        """Read the edges, badly."""
        found = super().get_dependency_edges(job_id)
        return None if found is None else self._shown(job_id, found)


@breaks("6.5")
class ShowsEveryParent(OtherEdges):
    """Names those that have ended, too."""

    def _shown(self, job_id: UUID, found: DependencyEdges) -> DependencyEdges:
        return found._replace(gating=self._tables.rows[job_id].parents)


@breaks("6.5")
class ShowsWaitingChildrenAlone(OtherEdges):
    """Forgets those that have gone on."""

    def _shown(self, job_id: UUID, found: DependencyEdges) -> DependencyEdges:
        rows = self._tables.rows
        waiting = [c for c in found.children if rows[c].state is JobState.AWAITING_PARENT]
        return found._replace(children=tuple(waiting))


@breaks("6.5")
class ShowsEdgesOfNobody(InMemoryStore):
    """Gives a job that is not there no edges."""

    def get_dependency_edges(self, job_id: UUID) -> DependencyEdges | None:
        """Answer in any case."""
        return super().get_dependency_edges(job_id) or DependencyEdges((), ())


class OtherOutputs(InMemoryStore):
    """A store that lets other jobs be read."""

    def _may_read(self, reader_id: UUID, ancestor_id: UUID) -> bool:
        raise NotImplementedError

    def read_output(self, reader_id: UUID, ancestor_id: UUID) -> AncestorOutput | None:
        """Read by another rule."""
        rows = self._tables.rows
        if reader_id not in rows or ancestor_id not in rows:
            return None
        if not self._may_read(reader_id, ancestor_id):
            return None
        return AncestorOutput(rows[ancestor_id].state, rows[ancestor_id].output)


@breaks("6.6")
class LetsAnyoneRead(OtherOutputs):
    """Refuses nobody."""

    def _may_read(self, reader_id: UUID, ancestor_id: UUID) -> bool:
        return True


@breaks("6.6")
class LetsParentsBeRead(OtherOutputs):
    """Goes up one step only."""

    def _may_read(self, reader_id: UUID, ancestor_id: UUID) -> bool:
        return ancestor_id in self._tables.rows[reader_id].parents


@breaks("6.6")
class TakesNoBytesForNothing(InMemoryStore):
    """Shows an empty output as none, and none of a job that failed."""

    def read_output(self, reader_id: UUID, ancestor_id: UUID) -> AncestorOutput | None:
        """Read what is there."""
        found = super().read_output(reader_id, ancestor_id)
        return None if found is None else found._replace(output=found.output or None)


@breaks("6.6")
class ReadsSuccessesAlone(InMemoryStore):
    """Refuses an ancestor that left nothing."""

    def read_output(self, reader_id: UUID, ancestor_id: UUID) -> AncestorOutput | None:
        """Read what succeeded."""
        found = super().read_output(reader_id, ancestor_id)
        return found if found is not None and found.state is JobState.SUCCEEDED else None


@breaks("6.4")
class PurgesParentsOfTheLiving(OtherTables):
    """Asks nobody who still depends on a job."""

    class tables(Tables):  # noqa: N801
        """Tables in which nobody lives."""

        def has_live_dependent(self, parent_id: UUID) -> bool:
            """Say no."""
            return False


@breaks("6.4")
class StopsAtAParentThatStays(InMemoryStore):
    """Purges nothing while one job cannot go."""

    def purge(self, *arguments: Any, **options: Any) -> int:
        """Purge all or nothing."""
        if any(self._tables.has_live_dependent(job_id) for job_id in self._tables.rows):
            return 0
        return super().purge(*arguments, **options)
