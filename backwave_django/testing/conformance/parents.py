"""Chapter 2, enqueue: jobs with parents (2.4)."""

from __future__ import annotations

from functools import partial

from ...core.events import Verdict
from ...core.outcomes import Cancelled, Failed, Lease, Result, Succeeded, Unroutable
from ...core.states import JobState
from ...storage.contract import JobStore
from ...storage.values import DependencyMode, EnqueueStatus, NewJob
from .scenario import (
    START,
    after,
    at_once,
    claim,
    end,
    needs_history,
    new_job,
    running,
    settled,
    snapshot,
    state_of,
    steps_of,
    stored,
    whole,
)

ANY = DependencyMode.ON_ANY_TERMINAL
FAILURES: tuple[Result, ...] = (Failed("boom"), Cancelled("asked"), Unroutable("unknown"))


def _ended(store: JobStore, result: Result) -> Lease:
    lease = running(store)
    end(store, lease, result)
    return lease


def test_2_4_a_job_waits_for_its_parents(store: JobStore) -> None:
    """Due or not, it is not claimed before the last parent has ended."""
    first, second = running(store), running(store)
    child = stored(store, parents=(first.job_id, second.job_id), due_time=after(-9))
    assert state_of(store, child) is JobState.AWAITING_PARENT
    assert not claim(store).jobs
    end(store, first)
    assert state_of(store, child) is JobState.AWAITING_PARENT
    end(store, second)
    assert state_of(store, child) is JobState.SCHEDULED


def test_2_4_a_parent_may_be_in_any_live_state(store: JobStore) -> None:
    """Due, running or waiting itself: it gates all the same."""
    due, lease = stored(store, due_time=after(99)), running(store)
    waiting = stored(store, parents=(due,))
    for parent in (due, lease.job_id, waiting):
        assert state_of(store, stored(store, parents=(parent,))) is JobState.AWAITING_PARENT


def test_2_4_a_parent_named_twice_counts_once(store: JobStore) -> None:
    """Its one end is enough, in either mode."""
    lease = running(store)
    children = [stored(store, parents=(lease.job_id,) * 3, mode=mode) for mode in DependencyMode]
    end(store, lease)
    for child in children:
        assert state_of(store, child) is JobState.SCHEDULED


def test_2_4_repeated_parents_do_not_count_against_the_limit(store: JobStore) -> None:
    """The limit is on distinct parents."""
    parent = stored(store)
    job = new_job(parents=(parent,) * (store.limits.max_parents_per_job + 1))
    assert store.enqueue(job, START).status is EnqueueStatus.OK


def test_2_4_a_parent_that_has_succeeded_counts_at_once(store: JobStore) -> None:
    """In both modes the job is scheduled right away, due when it was to be."""
    parent = _ended(store, Succeeded())
    for mode in DependencyMode:
        child = stored(store, parents=(parent.job_id,), mode=mode, due_time=after(5))
        assert state_of(store, child) is JobState.SCHEDULED
        assert snapshot(store, child).due_time == after(5)


def test_2_4_a_parent_that_has_failed_cancels_an_on_success_job_at_once(store: JobStore) -> None:
    """The job is stored as Cancelled, with a cause that names the parent."""
    for result in FAILURES:
        parent = _ended(store, result)
        child = stored(store, now=after(7), parents=(parent.job_id,))
        found = snapshot(store, child)
        assert (found.state, found.terminal_at) == (JobState.CANCELLED, after(7))
        assert str(parent.job_id) in str(found.terminal_cause)
    assert not claim(store, now=after(99)).jobs


def test_2_4_a_job_cancelled_at_once_has_one_step_in_its_log(store: JobStore) -> None:
    """It was never anything but Cancelled."""
    needs_history(store)
    parent = _ended(store, Failed("boom"))
    assert steps_of(store, stored(store, parents=(parent.job_id,))) == [JobState.CANCELLED]


def test_2_4_a_parent_that_has_failed_counts_for_an_any_terminal_job(store: JobStore) -> None:
    """That mode asks only whether the parent has ended."""
    for result in FAILURES:
        parent = _ended(store, result)
        child = stored(store, parents=(parent.job_id,), mode=ANY, queue="children")
        assert state_of(store, child) is JobState.SCHEDULED


def test_2_4_one_failed_parent_among_live_ones_is_enough_to_cancel(store: JobStore) -> None:
    """An on-success job has nothing left to wait for, in whatever order its parents stand."""
    failed, live = _ended(store, Failed("boom")), stored(store, due_time=after(99))
    for parents in ((failed.job_id, live), (live, failed.job_id)):
        child = stored(store, parents=parents)
        assert state_of(store, child) is JobState.CANCELLED


def test_2_4_only_live_parents_are_waited_for(store: JobStore) -> None:
    """A parent that has ended already is not counted a second time later."""
    done, failed, live = _ended(store, Succeeded()), _ended(store, Failed("boom")), running(store)
    child = stored(store, parents=(done.job_id, live.job_id))
    other = stored(store, parents=(failed.job_id, done.job_id, live.job_id), mode=ANY)
    assert [state_of(store, job_id) for job_id in (child, other)] == [JobState.AWAITING_PARENT] * 2
    end(store, live)
    assert [state_of(store, job_id) for job_id in (child, other)] == [JobState.SCHEDULED] * 2


def test_2_4_release_waiting_leaves_jobs_with_a_live_parent_alone(store: JobStore) -> None:
    """The sweep has nothing to do where every end was seen."""
    live, done = running(store), _ended(store, Succeeded())
    child = stored(store, parents=(live.job_id, done.job_id))
    before = whole(store)
    assert store.release_waiting(10, after(9)) == 0
    assert store.release_waiting(10, after(9), [child]) == 0
    assert store.release_waiting(10, after(9), []) == 0
    assert whole(store) == before


def _race(store: JobStore, result: Result, child: NewJob, parent: Lease) -> None:
    """Enqueue a child while its parent ends, then do what its client does."""
    answers = at_once(
        store,
        lambda: settled(store, parent, result).verdict,
        lambda: store.enqueue(child, START).status,
    )
    assert answers == [Verdict.APPLIED, EnqueueStatus.OK]
    store.release_waiting(store.limits.max_parents_per_job, START, [child.job_id])


def test_2_4_a_parent_that_succeeds_meanwhile_releases_the_child(store: JobStore) -> None:
    """However the two interleave, the child is due after its client's second look."""
    for _ in range(8):
        parent = running(store)
        child = new_job(parents=(parent.job_id,), queue="children")
        _race(store, Succeeded(), child, parent)
        assert state_of(store, child.job_id) is JobState.SCHEDULED


def test_2_4_a_parent_that_fails_meanwhile_cancels_the_child(store: JobStore) -> None:
    """However the two interleave, the child does not wait for ever."""
    for _ in range(8):
        parent = running(store)
        child = new_job(parents=(parent.job_id,), queue="children")
        _race(store, Failed("boom"), child, parent)
        assert state_of(store, child.job_id) is JobState.CANCELLED


def test_2_4_a_child_of_two_parents_that_end_meanwhile_is_released_once(store: JobStore) -> None:
    """Neither end is lost and neither counts twice."""
    needs_history(store)
    for _ in range(8):
        first, second = running(store), running(store)
        child = new_job(parents=(first.job_id, second.job_id), queue="children")
        at_once(
            store,
            partial(settled, store, first, Succeeded()),
            partial(settled, store, second, Succeeded()),
            partial(store.enqueue, child, START),
        )
        store.release_waiting(10, START, [child.job_id])
        assert steps_of(store, child.job_id).count(JobState.SCHEDULED) == 1
        assert state_of(store, child.job_id) is JobState.SCHEDULED
