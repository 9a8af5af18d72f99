"""Chapter 6, dependencies: release, cancellation, diamonds and races."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from uuid import UUID

from ...core.outcomes import (
    Cancelled,
    Failed,
    Lease,
    Outcome,
    Released,
    Result,
    Succeeded,
    Unroutable,
)
from ...core.states import JobState
from ...storage.contract import JobStore
from ...storage.values import DependencyMode, JobFilter, NewJob
from .scenario import (
    START,
    after,
    at_once,
    claim,
    claimed_job,
    end,
    give_up,
    needs_history,
    new_job,
    running,
    settled,
    snapshot,
    state_of,
    steps_of,
    store_all,
    stored,
    view,
)

ANY = DependencyMode.ON_ANY_TERMINAL
WAITING, DUE, GONE = JobState.AWAITING_PARENT, JobState.SCHEDULED, JobState.CANCELLED
FAILURES: tuple[Result, ...] = (Failed("boom"), Cancelled("asked"), Unroutable("unknown"))


def test_6_1_an_on_success_job_is_released_when_all_parents_have_succeeded(
    store: JobStore,
) -> None:
    """The last one counts, in whatever order they end."""
    parents = [running(store) for _ in range(4)]
    child = stored(store, parents=tuple(parent.job_id for parent in parents))
    for parent in (parents[2], parents[0], parents[3]):
        end(store, parent)
        assert state_of(store, child) is WAITING
    end(store, parents[1])
    assert state_of(store, child) is DUE


def test_6_1_the_first_parent_that_ends_otherwise_cancels_an_on_success_job(
    store: JobStore,
) -> None:
    """The cause names that parent; what the other parents do later changes nothing."""
    for result in FAILURES:
        first, failing, last = (running(store) for _ in range(3))
        child = stored(store, parents=(first.job_id, failing.job_id, last.job_id))
        end(store, first)
        end(store, failing, result, after(5))
        found = view(store, child)
        assert (found.snapshot.state, found.snapshot.terminal_at) == (GONE, after(5))
        assert str(failing.job_id) in str(found.snapshot.terminal_cause)
        end(store, last, now=after(6))
        assert view(store, child) == found


def test_6_1_an_any_terminal_job_is_released_when_all_parents_have_ended(store: JobStore) -> None:
    """How they ended does not matter to it."""
    ends: tuple[Result, ...] = (*FAILURES, Succeeded())
    parents = [running(store) for _ in ends]
    child = stored(store, parents=tuple(parent.job_id for parent in parents), mode=ANY)
    for parent, result in zip(parents, ends, strict=True):
        assert state_of(store, child) is WAITING
        end(store, parent, result)
    assert state_of(store, child) is DUE


def test_6_1_a_cancellation_goes_down_to_the_last_descendant(store: JobStore) -> None:
    """Each cause names the parent above; a job that waits for any end stops the cascade."""
    top = running(store)
    second = stored(store, parents=(top.job_id,))
    third = stored(store, parents=(second,))
    stopper = stored(store, parents=(third,), mode=ANY)
    below = stored(store, parents=(stopper,))
    end(store, top, Failed("boom"))
    assert [state_of(store, job_id) for job_id in (second, third)] == [GONE, GONE]
    assert str(second) in str(snapshot(store, third).terminal_cause)
    assert [state_of(store, job_id) for job_id in (stopper, below)] == [DUE, WAITING]


def test_6_1_success_releases_only_the_next_level(store: JobStore) -> None:
    """A released job has not ended, so its own children go on waiting."""
    top = running(store)
    child = stored(store, parents=(top.job_id,))
    grandchild = stored(store, parents=(child,))
    end(store, top)
    assert [state_of(store, job_id) for job_id in (child, grandchild)] == [DUE, WAITING]
    end(store, claimed_job(store, child).lease)
    assert state_of(store, grandchild) is DUE


def test_6_1_a_retry_of_a_parent_is_no_end(store: JobStore) -> None:
    """Neither mode moves before the parent is terminal."""
    parent = running(store)
    children = [stored(store, parents=(parent.job_id,), mode=mode) for mode in DependencyMode]
    end(store, parent, Failed("boom", retry_at=START))
    assert [state_of(store, child) for child in children] == [WAITING, WAITING]
    end(store, claimed_job(store, parent.job_id).lease)
    assert [state_of(store, child) for child in children] == [DUE, DUE]


def test_6_1_every_way_to_an_end_moves_the_children(store: JobStore) -> None:
    """An operator's cancel and the sweep of a lost worker count as a report does."""
    cancelled, lapsed = stored(store, queue="other"), running(store)
    children = [
        [stored(store, parents=(parent,), mode=mode) for mode in DependencyMode]
        for parent in (cancelled, lapsed.job_id)
    ]
    store.cancel(cancelled, None, START)
    store.expire_leases(None, give_up, 10, after(60))
    for on_success, on_any in children:
        assert [state_of(store, on_success), state_of(store, on_any)] == [GONE, DUE]


def test_6_1_several_parents_may_end_in_one_report(store: JobStore) -> None:
    """The batch as a whole decides what becomes of their children."""
    good, bad, other = (running(store) for _ in range(3))
    both = stored(store, parents=(good.job_id, other.job_id))
    mixed = stored(store, parents=(good.job_id, bad.job_id))
    any_end = stored(store, parents=(good.job_id, bad.job_id), mode=ANY)
    store.report(
        [
            Outcome(good, Succeeded()),
            Outcome(bad, Failed("boom")),
            Outcome(other, Succeeded()),
        ],
        START,
    )
    assert [state_of(store, job_id) for job_id in (both, mixed, any_end)] == [DUE, GONE, DUE]
    assert str(bad.job_id) in str(snapshot(store, mixed).terminal_cause)


def test_6_2_a_released_job_keeps_a_due_time_in_the_future(store: JobStore) -> None:
    """It is scheduled, and due when it was to be."""
    for mode in DependencyMode:
        parent = running(store)
        child = stored(store, parents=(parent.job_id,), mode=mode, due_time=after(50))
        end(store, parent, now=after(10))
        assert (state_of(store, child), snapshot(store, child).due_time) == (DUE, after(50))
        assert not claim(store, now=after(49)).jobs
        end(store, claimed_job(store, child, after(50)).lease)


def test_6_2_a_released_job_whose_due_time_has_passed_is_due_now(store: JobStore) -> None:
    """It takes its place in the queue as of its release."""
    for mode in DependencyMode:
        parent = running(store)
        child = stored(store, parents=(parent.job_id,), mode=mode, due_time=after(-50))
        end(store, parent, now=after(10))
        assert (state_of(store, child), snapshot(store, child).due_time) == (DUE, after(10))
        end(store, claimed_job(store, child, after(10)).lease)


def test_6_2_a_release_by_a_cancellation_is_due_by_the_same_rule(store: JobStore) -> None:
    """Which way the last parent ended makes no difference."""
    for due, expected in ((50, 50), (-50, 10)):
        parent = stored(store, queue="parents")
        child = stored(store, parents=(parent,), mode=ANY, due_time=after(due))
        store.cancel(parent, None, after(10))
        assert snapshot(store, child).due_time == after(expected)


def test_6_3_a_diamond_counts_each_parent_once(store: JobStore) -> None:
    """The job at the bottom is released by the second of its parents, and once."""
    top = running(store)
    sides = [stored(store, parents=(top.job_id,)) for _ in range(2)]
    bottom = stored(store, parents=tuple(sides))
    end(store, top)
    for side, state in zip(sides, (WAITING, DUE), strict=True):
        end(store, claimed_job(store, side).lease)
        assert state_of(store, bottom) is state
    if store.history.value != "off":
        assert steps_of(store, bottom) == [WAITING, DUE]


def test_6_3_a_diamond_is_cancelled_once(store: JobStore) -> None:
    """Though the cascade comes by two ways, there is one step in the log and one cause."""
    top = running(store)
    sides = [stored(store, parents=(top.job_id,)) for _ in range(2)]
    bottom = stored(store, parents=tuple(sides))
    end(store, top, Failed("boom"))
    assert state_of(store, bottom) is GONE
    assert any(str(side) in str(snapshot(store, bottom).terminal_cause) for side in sides)
    if store.history.value != "off":
        assert steps_of(store, bottom) == [WAITING, GONE]


def test_6_3_a_diamond_in_any_terminal_mode_is_released_once(store: JobStore) -> None:
    """Both sides are cancelled by one report, and the bottom is due after it."""
    top = running(store)
    sides = [stored(store, parents=(top.job_id,)) for _ in range(2)]
    bottom = stored(store, parents=(*sides, top.job_id), mode=ANY)
    end(store, top, Failed("boom"))
    assert [state_of(store, side) for side in sides] == [GONE, GONE]
    assert state_of(store, bottom) is DUE
    if store.history.value != "off":
        assert steps_of(store, bottom) == [WAITING, DUE]


def _ended_at_once(store: JobStore, *ends: tuple[Lease, Succeeded | Failed]) -> None:
    at_once(
        store, *(partial(settled, store, lease, result)
                 for lease, result in ends),
    )  # fmt: skip


def test_6_3_two_parents_that_succeed_at_once_release_the_child_once(store: JobStore) -> None:
    """Neither loses its count to the other: the child is due, without any sweep."""
    needs_history(store)
    for _ in range(8):
        first, second = running(store), running(store)
        child = stored(store, parents=(first.job_id, second.job_id), queue="children")
        _ended_at_once(store, (first, Succeeded()), (second, Succeeded()))
        assert steps_of(store, child) == [WAITING, DUE]


def test_6_3_many_parents_that_end_at_once_are_all_counted(store: JobStore) -> None:
    """Six workers at once, two children that wait for all of them in either mode."""
    for _ in range(2):
        leases = [running(store) for _ in range(6)]
        parents = tuple(lease.job_id for lease in leases)
        children = [stored(store, parents=parents, mode=mode, queue="c") for mode in DependencyMode]
        _ended_at_once(store, *((lease, Succeeded()) for lease in leases))
        assert [state_of(store, child) for child in children] == [DUE, DUE]


def test_6_3_parents_that_succeed_and_fail_at_once_cancel_the_child_once(store: JobStore) -> None:
    """The failure wins in on-success mode, the other mode is released."""
    needs_history(store)
    for _ in range(6):
        good, bad = running(store), running(store)
        parents = (good.job_id, bad.job_id)
        children = [stored(store, parents=parents, mode=mode, queue="c") for mode in DependencyMode]
        _ended_at_once(store, (good, Succeeded()), (bad, Failed("boom")))
        assert steps_of(store, children[0]) == [WAITING, GONE]
        assert steps_of(store, children[1]) == [WAITING, DUE]


def test_6_3_a_parent_that_ends_while_its_child_is_cancelled_leaves_one_end(
    store: JobStore,
) -> None:
    """The child is cancelled once, before or after it was released."""
    needs_history(store)
    for _ in range(6):
        parent = running(store)
        child = stored(store, parents=(parent.job_id,), queue="children")
        at_once(
            store,
            partial(settled, store, parent, Succeeded()),
            partial(store.cancel, child, None, START),
        )
        assert steps_of(store, child) in ([WAITING, GONE], [WAITING, DUE, GONE])


def _drawn(seed: int) -> Iterator[int]:
    """Give numbers that look drawn by chance and are the same in every run."""
    while True:
        # Knuth's MMIX generator; its low bits repeat soon, so only the high ones are used.
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        yield seed >> 33


def _graph(numbers: Iterator[int], size: int) -> list[NewJob]:
    """Make a graph: each job has up to three parents among those before it."""
    jobs: list[NewJob] = []
    for place in range(size):
        wanted = min(place, next(numbers) % 4)
        parents = tuple(jobs[next(numbers) % place].job_id for _ in range(wanted))
        mode = list(DependencyMode)[next(numbers) % 2]
        jobs.append(new_job(parents=parents, mode=mode))
    return jobs


def _expected(jobs: list[NewJob], ends: dict[UUID, JobState]) -> dict[UUID, JobState]:
    """Reckon each job's state from the ends that were reported, parents first."""
    states: dict[UUID, JobState] = {}
    for job in jobs:
        above = [ends.get(parent, states[parent]) for parent in job.parents]
        failed = any(state.is_terminal and state is not JobState.SUCCEEDED for state in above)
        if job.job_id in ends:
            states[job.job_id] = ends[job.job_id]
        elif failed and job.mode is DependencyMode.ON_SUCCESS:
            states[job.job_id] = GONE
        else:
            states[job.job_id] = DUE if all(state.is_terminal for state in above) else WAITING
    return states


def _states(store: JobStore) -> dict[UUID, JobState]:
    return {job.job_id: job.state for job in store.list_jobs(JobFilter(), limit=200)}


def test_6_4_no_job_waits_without_a_live_parent(store: JobStore) -> None:
    """Through the whole life of a tangled graph every job is where the rules put it."""
    numbers = _drawn(20_260_301)
    jobs = _graph(numbers, 60)
    store_all(store, jobs)
    ends: dict[UUID, JobState] = {}
    assert _states(store) == _expected(jobs, ends)
    while claimed := claim(store, max_jobs=1).jobs:
        result = (Succeeded(), Succeeded(), *FAILURES)[next(numbers) % 5]
        ends[claimed[0].lease.job_id] = end(store, claimed[0].lease, result)
        assert _states(store) == _expected(jobs, ends)
    assert len(set(ends.values())) == 4
    assert all(state.is_terminal for state in _states(store).values())


def test_6_4_no_job_waits_without_a_live_parent_after_a_storm(store: JobStore) -> None:
    """Three workers end a tangled graph at once: nothing is left waiting at the end."""
    numbers = _drawn(7)
    jobs = _graph(numbers, 60)
    store_all(store, jobs)
    results = {job.job_id: (Succeeded(), Succeeded(), *FAILURES)[next(numbers) % 5] for job in jobs}

    def work(worker: str) -> dict[UUID, JobState]:
        ends = {}
        for _ in range(200):
            claimed = claim(store, worker=worker, max_jobs=2).jobs
            for job in claimed:
                answer = settled(store, job.lease, results[job.lease.job_id])
                assert answer.state is not None
                ends[job.lease.job_id] = answer.state
            if not claimed and not _unfinished(store):
                break
        return ends

    workers = [partial(work, f"w{number}") for number in range(3)]
    ends: dict[UUID, JobState] = {}
    for answer in at_once(store, *workers):
        ends |= answer
    states = _states(store)
    assert states == _expected(jobs, ends)
    assert all(state.is_terminal for state in states.values())


def _unfinished(store: JobStore) -> bool:
    return any(not count.state.is_terminal for count in store.count_jobs())


def test_6_4_a_handed_back_parent_goes_on_gating(store: JobStore) -> None:
    """It is alive, so its child may wait; when it ends, the child moves."""
    parent = running(store)
    child = stored(store, parents=(parent.job_id,))
    end(store, parent, Released(started=False))
    assert store.release_waiting(10, START) == 0
    assert state_of(store, child) is WAITING
    end(store, claimed_job(store, parent.job_id).lease)
    assert state_of(store, child) is DUE
