"""How the end of a job moves the jobs that wait for it.

Pure: the edges and states come in, the moves go out. A store with a database finds the
edges, asks this, and writes the moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from .settlement import parent_cause
from .states import JobState


class Edge(NamedTuple):
    """A parent that still gates a waiting child. Keys are whatever the store uses."""

    key: int
    parent: int
    child: int
    on_success: bool


class Ended(NamedTuple):
    """A job that has come to its end."""

    job_id: UUID
    state: JobState


class Cascade(NamedTuple):
    """What follows from some ends.

    ``cancelled`` maps each child to its cause; ``closed`` lists the edges that gate no
    more, for each child of a cancelled job too; ``met`` counts them per child that goes
    on waiting or is released.
    """

    cancelled: dict[int, str]
    closed: list[Edge]
    met: dict[int, int]


def cascade(
    ended: Mapping[int, Ended],
    edges: Mapping[int, Iterable[Edge]],
    job_ids: Mapping[int, UUID],
) -> Cascade:
    """Follow ``ended`` down the graph.

    Args:
        ended: the jobs that have ended, by key.
        edges: the open edges by parent, for each job that can be reached.
        job_ids: the identity of each child that can be reached, for the causes.
    """
    result = Cascade({}, [], {})
    frontier = dict(ended)
    while frontier:
        following: dict[int, Ended] = {}
        for parent in sorted(frontier):
            end = frontier[parent]
            for edge in edges.get(parent, ()):
                result.closed.append(edge)
                if edge.child in result.cancelled:
                    continue
                if edge.on_success and end.state is not JobState.SUCCEEDED:
                    result.cancelled[edge.child] = parent_cause(end.job_id, end.state)
                    result.met.pop(edge.child, None)
                    following[edge.child] = Ended(job_ids[edge.child], JobState.CANCELLED)
                else:
                    result.met[edge.child] = result.met.get(edge.child, 0) + 1
        frontier = following
    return result
