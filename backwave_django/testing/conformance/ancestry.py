"""Chapter 6, where a job stands: its edges, and what its ancestors left."""

from __future__ import annotations

from uuid import UUID

from ...core.outcomes import Failed, Succeeded
from ...core.states import JobState
from ...storage.contract import JobStore
from ...storage.values import AncestorOutput, DependencyEdges, DependencyMode
from .scenario import START, end, new_id, running, stored


def _edges(store: JobStore, job_id: UUID) -> DependencyEdges:
    found = store.get_dependency_edges(job_id)
    assert found is not None
    return found


def test_6_5_a_job_names_who_gates_it_and_who_waits(store: JobStore) -> None:
    """Each by sequence, whatever order they were declared in; a doubled parent once."""
    first, second = running(store, queue="a"), running(store, queue="b")
    child = stored(store, parents=(second.job_id, first.job_id, second.job_id))
    other = stored(store, parents=(first.job_id,))
    assert _edges(store, child) == DependencyEdges((first.job_id, second.job_id), ())
    assert _edges(store, first.job_id) == DependencyEdges((), (child, other))


def test_6_5_a_parent_that_has_ended_gates_no_more(store: JobStore) -> None:
    """Its children are its children still."""
    first, second = running(store, queue="a"), running(store, queue="b")
    child = stored(store, parents=(first.job_id, second.job_id))
    end(store, first)
    assert _edges(store, child) == DependencyEdges((second.job_id,), ())
    assert _edges(store, first.job_id).children == (child,)
    end(store, second)
    assert _edges(store, child) == DependencyEdges((), ())


def test_6_5_a_job_that_is_cancelled_waits_for_nobody(store: JobStore) -> None:
    """Neither where an operator cancels it, nor where a parent's failure does."""
    first, second = running(store, queue="a"), running(store, queue="b")
    by_parent = stored(store, parents=(first.job_id, second.job_id))
    by_hand = stored(store, parents=(first.job_id, second.job_id))
    store.cancel(by_hand, None, START)
    assert _edges(store, by_hand).gating == ()
    end(store, first, Failed("boom"))
    assert _edges(store, by_parent).gating == ()
    assert _edges(store, second.job_id).children == (by_parent, by_hand)


def test_6_5_a_parent_that_had_ended_before_is_a_parent_too(store: JobStore) -> None:
    """It never gates, and lists the child."""
    lease = running(store)
    end(store, lease)
    child = stored(store, parents=(lease.job_id,))
    assert _edges(store, child).gating == ()
    assert _edges(store, lease.job_id).children == (child,)


def test_6_5_nobody_knows_an_unknown_job(store: JobStore) -> None:
    """And a job without edges has none."""
    assert store.get_dependency_edges(new_id()) is None
    assert _edges(store, stored(store)) == DependencyEdges((), ())


def test_6_6_an_ancestor_can_be_read(store: JobStore) -> None:
    """A parent, and a parent's parent, with what it left and how it ended."""
    top = running(store)
    end(store, top, Succeeded(b"out"))
    middle = running(store, parents=(top.job_id,))
    end(store, middle)
    low = running(store, parents=(middle.job_id,))
    left = AncestorOutput(JobState.SUCCEEDED, b"out")
    assert store.read_output(middle.job_id, top.job_id) == left
    assert store.read_output(low.job_id, top.job_id) == left
    absent = AncestorOutput(JobState.SUCCEEDED, None)
    assert store.read_output(low.job_id, middle.job_id) == absent


def test_6_6_an_empty_output_is_an_output(store: JobStore) -> None:
    """No bytes are not nothing."""
    top = running(store)
    end(store, top, Succeeded(b""))
    child = stored(store, parents=(top.job_id,))
    assert store.read_output(child, top.job_id) == AncestorOutput(JobState.SUCCEEDED, b"")


def test_6_6_an_ancestor_that_left_nothing_is_a_normal_answer(store: JobStore) -> None:
    """One that failed, and one that still runs."""
    failed, leased = running(store, queue="a"), running(store, queue="b")
    end(store, failed, Failed("boom"))
    parents = (failed.job_id, leased.job_id)
    child = stored(store, parents=parents, mode=DependencyMode.ON_ANY_TERMINAL)
    dead = AncestorOutput(JobState.DEAD_LETTERED, None)
    assert store.read_output(child, failed.job_id) == dead
    assert store.read_output(child, leased.job_id) == AncestorOutput(JobState.LEASED, None)


def test_6_6_any_other_job_is_refused(store: JobStore) -> None:
    """A sibling, a child, the job itself, a stranger, and what nobody knows."""
    top = running(store)
    end(store, top, Succeeded(b"secret"))
    child, sibling = (stored(store, parents=(top.job_id,)) for _ in range(2))
    stranger = running(store, queue="other")
    end(store, stranger, Succeeded(b"secret"))
    refused = (sibling, child, stranger.job_id, new_id())
    assert [store.read_output(child, other) for other in refused] == [None] * 4
    assert store.read_output(top.job_id, child) is None
    assert store.read_output(top.job_id, top.job_id) is None
    assert store.read_output(new_id(), top.job_id) is None


def test_6_6_an_ancestor_may_be_far_up_a_wide_graph(store: JobStore) -> None:
    """Twenty diamonds on one another have a million ways to the top, and one answer."""
    top = running(store)
    end(store, top, Succeeded(b"out"))
    level: tuple[UUID, ...] = (top.job_id,)
    for _ in range(20):
        level = (stored(store, parents=level), stored(store, parents=level))
    assert store.read_output(level[0], top.job_id) == AncestorOutput(JobState.SUCCEEDED, b"out")
    assert store.read_output(level[0], level[1]) is None
