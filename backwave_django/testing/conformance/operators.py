"""Chapter 5, what operators do: cancel jobs, pause, resume and limit queues."""

from __future__ import annotations

from functools import partial

import pytest

from ...core.events import Renewal, Verdict
from ...core.outcomes import Cancelled, Failed, Lease, Released, Result, Succeeded, Unroutable
from ...core.states import JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from ...storage.errors import StoreMisused
from ...storage.values import CancelResult, DependencyMode
from .scenario import (
    LEASE,
    QUEUE,
    START,
    after,
    at_once,
    claim,
    claimed_job,
    end,
    give_up,
    needs_history,
    new_id,
    new_job,
    report_one,
    retry_in,
    running,
    snapshot,
    state_of,
    steps_of,
    store_all,
    stored,
    view,
    whole,
)

NOW = CancelResult.CANCELLED_IMMEDIATELY
REQUESTED = CancelResult.CANCELLATION_REQUESTED


def _cancelling(store: JobStore) -> Lease:
    """Give a live lease whose job is asked to be cancelled."""
    lease = running(store)
    assert store.cancel(lease.job_id, "anna", START) is REQUESTED
    return lease


def test_5_1_a_job_that_is_due_is_cancelled_at_once(store: JobStore) -> None:
    """It ends now, with a cause that names who asked, and is never claimed."""
    job_id = stored(store)
    assert store.cancel(job_id, "anna", after(3)) is NOW
    found = snapshot(store, job_id)
    assert (found.state, found.terminal_at) == (JobState.CANCELLED, after(3))
    assert "anna" in str(found.terminal_cause)
    assert not found.cancel_requested
    assert not claim(store, now=after(9)).jobs


def test_5_1_a_cancel_by_nobody_in_particular_has_a_cause_too(store: JobStore) -> None:
    """An actor is not needed."""
    job_id = stored(store)
    assert store.cancel(job_id, None, START) is NOW
    assert snapshot(store, job_id).terminal_cause


def test_5_1_a_retry_that_waits_is_cancelled_at_once(store: JobStore) -> None:
    """Its attempts stay counted, and its old lease is over."""
    lease = running(store)
    end(store, lease, Failed("boom", retry_at=after(30)))
    assert store.cancel(lease.job_id, None, START) is NOW
    assert snapshot(store, lease.job_id).attempt == 1
    assert report_one(store, lease, Succeeded()).verdict is Verdict.STALE


def test_5_1_a_waiting_job_is_cancelled_at_once_and_for_good(store: JobStore) -> None:
    """Its parent ends later and changes nothing of it."""
    parent = running(store)
    child = stored(store, parents=(parent.job_id,))
    assert store.cancel(child, "anna", START) is NOW
    before = view(store, child)
    end(store, parent)
    assert store.release_waiting(10, after(1)) == 0
    assert view(store, child) == before
    assert before.snapshot.state is JobState.CANCELLED


def test_5_1_its_on_success_descendants_are_cancelled_with_it(store: JobStore) -> None:
    """All the way down; those that wait for any end are released instead."""
    top, other = stored(store, queue="top"), running(store)
    child = stored(store, parents=(top,))
    grandchild = stored(store, parents=(child, other.job_id))
    any_child = stored(store, parents=(top,), mode=DependencyMode.ON_ANY_TERMINAL)
    any_grandchild = stored(store, parents=(child,), mode=DependencyMode.ON_ANY_TERMINAL)
    assert store.cancel(top, "anna", after(2)) is NOW
    for job_id, parent in ((child, top), (grandchild, child)):
        found = snapshot(store, job_id)
        assert (found.state, found.terminal_at) == (JobState.CANCELLED, after(2))
        assert str(parent) in str(found.terminal_cause)
    assert state_of(store, any_child) is JobState.SCHEDULED
    assert state_of(store, any_grandchild) is JobState.SCHEDULED


def test_5_1_a_running_job_is_asked_to_stop(store: JobStore) -> None:
    """It goes on under its lease; the next heartbeat tells its worker."""
    lease = running(store)
    child = stored(store, parents=(lease.job_id,))
    assert store.cancel(lease.job_id, "anna", after(1)) is REQUESTED
    found = snapshot(store, lease.job_id)
    assert (found.state, found.cancel_requested) == (JobState.LEASED, True)
    assert found.lease_expires_at == START + LEASE
    assert state_of(store, child) is JobState.AWAITING_PARENT
    assert list(store.heartbeat([lease], LEASE, after(2))) == [Renewal.CANCEL_REQUESTED]


def test_5_1_a_request_writes_no_step(store: JobStore) -> None:
    """The state does not change until the attempt ends."""
    needs_history(store)
    lease = _cancelling(store)
    assert steps_of(store, lease.job_id) == [JobState.SCHEDULED, JobState.LEASED]


def test_5_1_the_first_request_counts(store: JobStore) -> None:
    """A second one is answered alike, and the cause names who was first."""
    lease = _cancelling(store)
    assert store.cancel(lease.job_id, "berta", after(1)) is REQUESTED
    end(store, lease, Released(started=True))
    cause = str(snapshot(store, lease.job_id).terminal_cause)
    assert "anna" in cause
    assert "berta" not in cause


def test_5_1_an_ended_job_cannot_be_cancelled(store: JobStore) -> None:
    """Whatever its end was, it stays."""
    results = (Succeeded(), Failed("boom"), Cancelled("asked"), Unroutable("unknown"))
    for result in results:
        lease = running(store)
        end(store, lease, result)
        before = view(store, lease.job_id)
        assert store.cancel(lease.job_id, "anna", after(1)) is CancelResult.NOT_CANCELLABLE
        assert view(store, lease.job_id) == before
    cancelled = stored(store)
    store.cancel(cancelled, None, START)
    assert store.cancel(cancelled, None, START) is CancelResult.NOT_CANCELLABLE


def test_5_1_an_unknown_job_is_not_found(store: JobStore) -> None:
    """There is nothing to cancel, and nothing is made up."""
    assert store.cancel(new_id(), "anna", START) is CancelResult.NOT_FOUND
    assert whole(store) == []


def test_5_1_a_request_turns_a_retry_or_a_hand_back_into_a_cancellation(store: JobStore) -> None:
    """The job is not tried again; the cause is that of the request."""
    results: tuple[Result, ...] = (
        Failed("boom", "the trace", after(9), (Tag(None, "t"),)),
        Released(started=True),
        Released(started=False),
        Cancelled("the handler obeyed"),
    )
    for result in results:
        lease = _cancelling(store)
        answer = report_one(store, lease, result, after(1))
        assert answer == (Verdict.APPLIED, JobState.CANCELLED)
        found = snapshot(store, lease.job_id)
        assert (found.terminal_at, found.due_time) == (after(1), START)
        assert "anna" in str(found.terminal_cause)
        assert found.attempt == 1


def test_5_1_a_cancelled_retry_keeps_its_diagnosis_and_its_tags(store: JobStore) -> None:
    """What the attempt has said is not lost with it."""
    lease = _cancelling(store)
    end(store, lease, Failed("boom", "the trace", after(9), (Tag(None, "t"),)))
    assert store.job_tags(lease.job_id) == [Tag(None, "t")]
    if store.history.value == "transitions_and_failure_detail":
        assert store.job_history(lease.job_id)[-1].failure_detail == "the trace"


def test_5_1_success_and_a_last_failure_stand_against_a_request(store: JobStore) -> None:
    """The work was done, or is given up on for a reason of its own."""
    for result, state, cause in (
        (Succeeded(b"out"), JobState.SUCCEEDED, None),
        (Failed("boom"), JobState.DEAD_LETTERED, "boom"),
        (Unroutable("unknown"), JobState.QUARANTINED, "unknown"),
    ):
        lease = _cancelling(store)
        assert report_one(store, lease, result) == (Verdict.APPLIED, state)
        found = snapshot(store, lease.job_id)
        assert (found.terminal_cause, found.cancel_requested) == (cause, False)


def test_5_1_a_lapsed_job_with_a_request_is_cancelled_and_not_retried(store: JobStore) -> None:
    """The sweep obeys the request, and its children follow."""
    lease = _cancelling(store)
    child = stored(store, parents=(lease.job_id,))
    assert store.expire_leases(None, retry_in(70), 10, after(60)) == 1
    found = snapshot(store, lease.job_id)
    assert (found.state, found.terminal_at) == (JobState.CANCELLED, after(60))
    assert "anna" in str(found.terminal_cause)
    assert state_of(store, child) is JobState.CANCELLED


def test_5_1_a_lapsed_job_with_a_request_is_cancelled_also_at_its_ceiling(
    store: JobStore,
) -> None:
    """Its worker is lost and says nothing, so what the operator asked for is what holds."""
    lease = _cancelling(store)
    store.expire_leases(None, give_up, 10, after(60))
    assert state_of(store, lease.job_id) is JobState.CANCELLED


def test_5_1_a_cancel_and_a_claim_at_once_agree(store: JobStore) -> None:
    """The job is cancelled and not claimed, or claimed and asked to stop."""
    for _ in range(8):
        job_id = stored(store)
        answer, claimed = at_once(
            store,
            partial(store.cancel, job_id, None, START),
            lambda: claim(store).jobs,
        )
        found = snapshot(store, job_id)
        assert (answer, len(claimed), found.state, found.cancel_requested) in {
            (NOW, 0, JobState.CANCELLED, False),
            (REQUESTED, 1, JobState.LEASED, True),
        }
        if claimed:
            end(store, claimed[0].lease)


def test_5_4_pausing_and_resuming_are_idempotent(store: JobStore) -> None:
    """Each says whether it has changed anything."""
    assert [store.pause_queue("q", None, START) for _ in range(2)] == [True, False]
    assert [store.resume_queue("q", None, START) for _ in range(2)] == [True, False]
    assert store.resume_queue("never paused", None, START) is False
    assert store.pause_queue("q", None, START) is True


def test_5_4_setting_a_limit_is_idempotent(store: JobStore) -> None:
    """It says whether it has changed anything; None lifts the limit."""
    changes = [
        store.set_concurrency_limit("q", limit, None, START) for limit in (2, 2, 3, None, None, 3)
    ]
    assert changes == [True, False, True, True, False, True]
    assert store.set_concurrency_limit("never limited", None, None, START) is False


def test_5_4_pause_and_limit_are_two_things(store: JobStore) -> None:
    """Neither is lost by setting the other."""
    store.set_concurrency_limit(QUEUE, 1, None, START)
    store.pause_queue(QUEUE, None, START)
    store_all(store, [new_job(), new_job()])
    assert not claim(store).jobs
    store.set_concurrency_limit(QUEUE, 2, None, START)
    assert not claim(store).jobs
    store.resume_queue(QUEUE, None, START)
    assert len(claim(store).jobs) == 2
    store_all(store, [new_job()])
    assert not claim(store).jobs


def test_5_4_a_limit_is_a_whole_number_of_at_least_one(store: JobStore) -> None:
    """Anything else is refused, and the limit stays as it was."""
    store.set_concurrency_limit(QUEUE, 1, None, START)
    for bad in (0, -1, 1.5, True, "2"):
        with pytest.raises(StoreMisused):
            store.set_concurrency_limit(QUEUE, bad, None, START)  # type: ignore[arg-type]
    store_all(store, [new_job(), new_job()])
    assert len(claim(store).jobs) == 1


def test_5_4_the_first_pause_of_a_queue_by_two_at_once_changes_it_once(store: JobStore) -> None:
    """Neither fails, and one of them made the change."""
    for number in range(5):
        queue = f"q{number}"
        answers = at_once(store, *[partial(store.pause_queue, queue, None, START)] * 3)
        assert sorted(answers) == [False, False, True]
        answers = at_once(store, *[partial(store.set_concurrency_limit, queue, 2, None, START)] * 3)
        assert sorted(answers) == [False, False, True]


def test_5_1_a_cancelled_job_frees_its_place(store: JobStore) -> None:
    """The next job of the queue is claimed in its stead, within the same limit."""
    store.set_concurrency_limit(QUEUE, 1, None, START)
    first, second = stored(store), stored(store)
    store.cancel(first, None, START)
    assert claimed_job(store, second).lease.attempt == 1
