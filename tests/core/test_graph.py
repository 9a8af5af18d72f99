"""How an end moves the jobs that wait for it; small graphs by hand.

The property tests compare larger ones with a brute-force reckoning.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from backwave_django.core.graph import Cascade, Edge, Ended, cascade
from backwave_django.core.settlement import parent_cause
from backwave_django.core.states import JobState

S = JobState
NAMES = {number: UUID(int=number) for number in range(20)}


def follow(
    ends: dict[int, JobState], edges: list[tuple[int, int]], any_terminal: tuple[int, ...] = ()
) -> Cascade:
    """Follow ends down a graph; children wait for success unless named in ``any_terminal``."""
    by_parent: dict[int, list[Edge]] = {}
    for key, (parent, child) in enumerate(edges):
        by_parent.setdefault(parent, []).append(Edge(key, parent, child, child not in any_terminal))
    ended = {number: Ended(NAMES[number], state) for number, state in ends.items()}
    return cascade(ended, by_parent, NAMES)


def keys(result: Cascade) -> list[int]:
    """Give the keys of the closed edges, sorted."""
    return sorted(edge.key for edge in result.closed)


def test_nothing_follows_from_the_end_of_a_job_alone() -> None:
    """A job without children moves nobody."""
    assert follow({1: S.DEAD_LETTERED}, []) == Cascade({}, [], {})
    assert follow({}, [(1, 2)]) == Cascade({}, [], {})


def test_a_success_closes_its_edges() -> None:
    """Each child has one parent less to wait for."""
    result = follow({1: S.SUCCEEDED}, [(1, 2), (1, 3), (9, 3)])
    assert (result.cancelled, result.met, keys(result)) == ({}, {2: 1, 3: 1}, [0, 1])


@pytest.mark.parametrize("state", [S.CANCELLED, S.DEAD_LETTERED, S.QUARANTINED])
def test_any_other_end_cancels_down_the_graph(state: JobState) -> None:
    """Each cause names the parent that did it and how that one ended."""
    result = follow({1: state}, [(1, 2), (2, 3), (3, 4)])
    assert result.cancelled == {
        2: parent_cause(NAMES[1], state),
        3: parent_cause(NAMES[2], S.CANCELLED),
        4: parent_cause(NAMES[3], S.CANCELLED),
    }
    assert (result.met, keys(result)) == ({}, [0, 1, 2])


def test_a_child_that_waits_for_any_end_is_released_by_a_failure() -> None:
    """The cascade stops at it, and goes no further."""
    result = follow({1: S.DEAD_LETTERED}, [(1, 2), (2, 3), (3, 4)], any_terminal=(3,))
    assert list(result.cancelled) == [2]
    assert (result.met, keys(result)) == ({3: 1}, [0, 1])


def test_a_diamond_counts_each_parent_once() -> None:
    """Two arms that are cancelled close two edges of the child at the bottom."""
    diamond = [(1, 2), (1, 3), (2, 4), (3, 4)]
    released = follow({1: S.DEAD_LETTERED}, diamond, any_terminal=(4,))
    assert released.met == {4: 2}
    cancelled = follow({1: S.DEAD_LETTERED}, diamond)
    assert list(cancelled.cancelled) == [2, 3, 4]
    assert cancelled.met == {}
    assert keys(cancelled) == [0, 1, 2, 3]


def test_two_parents_that_end_at_once_are_both_counted() -> None:
    """Ends of one batch meet at their common child."""
    assert follow({1: S.SUCCEEDED, 2: S.SUCCEEDED}, [(1, 3), (2, 3)]).met == {3: 2}


def test_a_success_counts_for_nothing_where_another_parent_failed() -> None:
    """A child that is cancelled is not also released, whichever end is seen first."""
    for ends in ({1: S.SUCCEEDED, 2: S.DEAD_LETTERED}, {1: S.DEAD_LETTERED, 2: S.SUCCEEDED}):
        result = follow(ends, [(1, 3), (2, 3)])
        assert list(result.cancelled) == [3]
        assert (result.met, keys(result)) == ({}, [0, 1])


def test_the_cause_names_the_first_failed_parent_in_order() -> None:
    """Of two that failed at once, the one that was enqueued first."""
    result = follow({2: S.QUARANTINED, 1: S.DEAD_LETTERED}, [(1, 3), (2, 3)])
    assert result.cancelled == {3: parent_cause(NAMES[1], S.DEAD_LETTERED)}


def test_a_met_child_that_a_deeper_failure_cancels_is_not_released() -> None:
    """The failure may reach it by a longer way than the success."""
    result = follow({1: S.DEAD_LETTERED, 5: S.SUCCEEDED}, [(5, 4), (1, 2), (2, 4)])
    assert list(result.cancelled) == [2, 4]
    assert result.met == {}
    assert keys(result) == [0, 1, 2]


def test_a_deep_chain_costs_no_recursion() -> None:
    """Ten thousand generations are followed."""
    edges = {n: [Edge(n, n, n + 1, on_success=True)] for n in range(10_000)}
    names = {n: UUID(int=n) for n in range(10_001)}
    result = cascade({0: Ended(names[0], S.CANCELLED)}, edges, names)
    assert len(result.cancelled) == 10_000
