"""Chapter 5, second chances: requeue and reschedule, one by one."""

from __future__ import annotations

import pytest

from ...core.errors import InvalidOption
from ...core.events import Verdict
from ...core.outcomes import Failed, Succeeded, Unroutable
from ...core.states import JobState
from ...storage.contract import JobStore
from ...storage.errors import StoreMisused
from ...storage.values import DependencyMode, RequeueResult, RescheduleResult
from .scenario import (
    START,
    after,
    at_once,
    claim,
    claimed_job,
    end,
    ids_of,
    needs_history,
    new_id,
    report_one,
    running,
    snapshot,
    state_of,
    steps_of,
    stored,
    view,
)

REQUEUED, NOT_REQUEUEABLE = RequeueResult.REQUEUED, RequeueResult.NOT_REQUEUEABLE
MOVED, NOT_MOVED = RescheduleResult.RESCHEDULED, RescheduleResult.NOT_RESCHEDULABLE


def _requeued_after(store: JobStore, result: Failed | Unroutable) -> None:
    lease = running(store)
    end(store, lease, result, after(1))
    assert store.requeue(lease.job_id, "anna", after(5)) is REQUEUED
    found = snapshot(store, lease.job_id)
    assert (found.state, found.attempt, found.due_time) == (JobState.SCHEDULED, 0, after(5))
    assert (found.terminal_at, found.terminal_cause) == (None, None)
    assert found.claim_number == 1
    again = claimed_job(store, lease.job_id, after(5))
    assert (again.lease.attempt, again.lease.claim_number) == (1, 2)


def test_5_2_a_dead_letter_is_scheduled_again(store: JobStore) -> None:
    """Due now, from attempt 0, with nothing of its end left; its claims stay counted."""
    _requeued_after(store, Failed("boom"))


def test_5_2_a_quarantined_job_is_scheduled_again(store: JobStore) -> None:
    """As a dead letter is."""
    _requeued_after(store, Unroutable("who?"))


def test_5_2_nothing_else_is_requeued(store: JobStore) -> None:
    """Not what lives, succeeded or was cancelled; and it changes nothing of that."""
    scheduled, leased, done = stored(store, queue="a"), running(store), running(store, queue="b")
    end(store, done)
    waiting = stored(store, parents=(leased.job_id,))
    cancelled = stored(store, queue="c")
    store.cancel(cancelled, None, START)
    for job_id in (scheduled, leased.job_id, done.job_id, waiting, cancelled):
        before = view(store, job_id)
        assert store.requeue(job_id, "anna", after(1)) is NOT_REQUEUEABLE
        assert view(store, job_id) == before
    assert store.requeue(new_id(), "anna", after(1)) is RequeueResult.NOT_FOUND


def test_5_2_what_its_failure_cancelled_stays_cancelled(store: JobStore) -> None:
    """A child that was cancelled is not brought back, one that was released goes on."""
    lease = running(store)
    child = stored(store, parents=(lease.job_id,))
    other = stored(store, parents=(lease.job_id,), mode=DependencyMode.ON_ANY_TERMINAL)
    end(store, lease, Failed("boom"))
    before = view(store, child), view(store, other)
    store.requeue(lease.job_id, None, after(1))
    assert (view(store, child), view(store, other)) == before
    assert (state_of(store, child), state_of(store, other)) == (
        JobState.CANCELLED,
        JobState.SCHEDULED,
    )


def test_5_2_its_old_lease_is_dead(store: JobStore) -> None:
    """Attempt 1 comes twice, so the claim number tells the two apart."""
    lease = running(store)
    end(store, lease, Failed("boom"))
    store.requeue(lease.job_id, None, START)
    claimed_job(store, lease.job_id)
    assert report_one(store, lease, Succeeded()).verdict is Verdict.STALE


def test_5_2_a_new_job_may_wait_for_it_again(store: JobStore) -> None:
    """It lives again, so a dependent waits, and follows its second end."""
    lease = running(store)
    end(store, lease, Failed("boom"))
    store.requeue(lease.job_id, None, START)
    child = stored(store, parents=(lease.job_id,))
    assert state_of(store, child) is JobState.AWAITING_PARENT
    end(store, claimed_job(store, lease.job_id).lease)
    assert state_of(store, child) is JobState.SCHEDULED


def test_5_2_a_requeue_writes_one_step(store: JobStore) -> None:
    """In the log, with attempt 0."""
    needs_history(store)
    lease = running(store)
    end(store, lease, Failed("boom"))
    store.requeue(lease.job_id, None, after(3))
    assert steps_of(store, lease.job_id)[-2:] == [JobState.DEAD_LETTERED, JobState.SCHEDULED]
    last = store.job_history(lease.job_id)[-1]
    assert (last.at, last.attempt, last.claim_number) == (after(3), 0, 1)


def test_5_2_two_at_once_requeue_it_once(store: JobStore) -> None:
    """One of them finds that it lives already."""
    for _ in range(3):
        lease = running(store)
        end(store, lease, Failed("boom"))
        calls = [lambda job_id=lease.job_id: store.requeue(job_id, None, after(1))] * 2
        assert sorted(r.name for r in at_once(store, *calls)) == ["NOT_REQUEUEABLE", "REQUEUED"]
        assert ids_of(claim(store, now=after(1))) == [lease.job_id]


def test_5_3_a_scheduled_job_moves_to_another_time(store: JobStore) -> None:
    """Later, and nearer again; a claim goes by the new time."""
    job_id = stored(store)
    assert store.reschedule(job_id, after(60), "anna", START) is MOVED
    assert snapshot(store, job_id).due_time == after(60)
    assert claim(store, now=after(59)).next_due == after(60)
    assert store.reschedule(job_id, after(5), "anna", START) is MOVED
    assert ids_of(claim(store, now=after(5))) == [job_id]


def test_5_3_a_waiting_job_moves_too(store: JobStore) -> None:
    """It goes on waiting, and is due at its new time when it is released."""
    parent = running(store)
    child = stored(store, parents=(parent.job_id,))
    assert store.reschedule(child, after(60), None, START) is MOVED
    assert state_of(store, child) is JobState.AWAITING_PARENT
    end(store, parent, now=after(1))
    assert (state_of(store, child), snapshot(store, child).due_time) == (
        JobState.SCHEDULED,
        after(60),
    )


def test_5_3_nothing_else_moves(store: JobStore) -> None:
    """Not what runs or has ended."""
    leased, done = running(store), running(store, queue="b")
    end(store, done, Failed("boom"))
    for job_id in (leased.job_id, done.job_id):
        before = view(store, job_id)
        assert store.reschedule(job_id, after(60), None, START) is NOT_MOVED
        assert view(store, job_id) == before
    answer = store.reschedule(new_id(), after(60), None, START)
    assert answer is RescheduleResult.NOT_FOUND


def test_5_3_moving_is_no_step(store: JobStore) -> None:
    """The state does not change, so the log has nothing to say."""
    needs_history(store)
    job_id = stored(store)
    store.reschedule(job_id, after(60), None, START)
    assert len(steps_of(store, job_id)) == 1


def test_5_3_bad_instants_and_actors_are_refused(store: JobStore) -> None:
    """Naive times, and actors that are no names; nothing moves."""
    job_id = stored(store)
    with pytest.raises(StoreMisused):
        store.reschedule(job_id, after(1).replace(tzinfo=None), None, START)
    with pytest.raises(StoreMisused):
        store.reschedule(job_id, after(1), None, START.replace(tzinfo=None))
    with pytest.raises(InvalidOption):
        store.reschedule(job_id, after(1), " anna", START)
    assert snapshot(store, job_id).due_time == START
