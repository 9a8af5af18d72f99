"""The cascade, compared with a brute-force reckoning on graphs that chance draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from backwave_django.core.graph import Edge, Ended, cascade
from backwave_django.core.settlement import parent_cause
from backwave_django.core.states import TERMINAL_STATES, JobState

SIZE = 12
NAMES = {number: UUID(int=number) for number in range(SIZE)}

# Children have higher numbers than their parents, so that there is no circle.
pairs = st.tuples(st.integers(0, SIZE - 2), st.integers(1, SIZE - 1))
graphs = st.sets(pairs.filter(lambda pair: pair[0] < pair[1]), max_size=40)
modes = st.lists(st.booleans(), min_size=SIZE, max_size=SIZE)
ends_of_jobs = st.dictionaries(
    st.integers(0, SIZE - 1), st.sampled_from(TERMINAL_STATES), max_size=4
)


def reckoned(
    ends: Mapping[int, JobState], edges: list[Edge]
) -> tuple[set[int], set[int], dict[int, int]]:
    """Go round all edges until nothing changes: cancelled, closed and met."""
    states = dict(ends)
    while True:
        failed = {
            edge.child
            for edge in edges
            if edge.on_success and states.get(edge.parent, JobState.SUCCEEDED) > JobState.SUCCEEDED
        } - states.keys()
        if not failed:
            break
        states |= dict.fromkeys(failed, JobState.CANCELLED)
    closed = [edge for edge in edges if edge.parent in states]
    cancelled = states.keys() - ends.keys()
    met = Counter(edge.child for edge in closed if edge.child not in cancelled)
    return set(cancelled), {edge.key for edge in closed}, dict(met)


def edges_of(graph: set[tuple[int, int]], modes: list[bool], ends: Mapping[int, JobState]):
    """Make the open edges: an ended job waits for nobody any more."""
    return [
        Edge(key, parent, child, modes[child])
        for key, (parent, child) in enumerate(sorted(graph))
        if child not in ends
    ]


def followed(ends: Mapping[int, JobState], edges: list[Edge]):
    """Ask the cascade."""
    by_parent: dict[int, list[Edge]] = {}
    for edge in edges:
        by_parent.setdefault(edge.parent, []).append(edge)
    ended = {number: Ended(NAMES[number], state) for number, state in ends.items()}
    return cascade(ended, by_parent, NAMES)


@settings(max_examples=400)
@given(graph=graphs, modes=modes, ends=ends_of_jobs)
def test_a_cascade_is_what_brute_force_gives(
    graph: set[tuple[int, int]], modes: list[bool], ends: dict[int, JobState]
) -> None:
    """The same jobs are cancelled, the same edges closed, the same parents counted."""
    edges = edges_of(graph, modes, ends)
    result = followed(ends, edges)
    cancelled, closed, met = reckoned(ends, edges)
    assert set(result.cancelled) == cancelled
    assert {edge.key for edge in result.closed} == closed
    assert len(result.closed) == len(closed), "an edge is closed twice"
    assert result.met == met


@given(graph=graphs, modes=modes, ends=ends_of_jobs)
def test_every_cause_names_a_parent_that_failed(
    graph: set[tuple[int, int]], modes: list[bool], ends: dict[int, JobState]
) -> None:
    """The cause is the truth about one of the job's own parents."""
    edges = edges_of(graph, modes, ends)
    result = followed(ends, edges)
    states = dict(ends) | dict.fromkeys(result.cancelled, JobState.CANCELLED)
    for child, cause in result.cancelled.items():
        parents = [edge.parent for edge in edges if edge.child == child and edge.parent in states]
        assert cause in {parent_cause(NAMES[p], states[p]) for p in parents}


@given(graph=graphs, modes=modes, ends=ends_of_jobs, seed=st.integers(0, 99))
def test_the_order_in_which_ends_and_edges_come_does_not_matter(
    graph: set[tuple[int, int]], modes: list[bool], ends: dict[int, JobState], seed: int
) -> None:
    """Two nodes that read the same rows in different orders decide the same."""
    edges = edges_of(graph, modes, ends)
    shuffled, order = list(edges), list(ends)
    Random(seed).shuffle(shuffled)
    Random(seed).shuffle(order)
    one = followed(ends, edges)
    other = followed({number: ends[number] for number in order}, shuffled)
    assert one.cancelled == other.cancelled
    assert one.met == other.met
    assert set(one.closed) == set(other.closed)
