"""Chapter 1, jobs and states."""

from __future__ import annotations

from ...core.events import Renewal, Verdict
from ...core.outcomes import Cancelled, Failed, Lease, Released, Result, Succeeded, Unroutable
from ...core.states import LEGAL_STEPS, MOVES, JobState, Move
from ...core.tags import Tag
from ...storage.contract import JobStore
from ...storage.values import CancelResult, DependencyMode
from .scenario import (
    LEASE,
    OTHER_WORKER,
    START,
    WORKER,
    after,
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


def test_1_1_a_new_job_has_what_it_was_given_and_nothing_more(store: JobStore) -> None:
    """Every field of a job that has never run."""
    job = new_job(
        payload=b"\x00data", due_time=after(9), trace_context="00-ab-cd-01", tags=(Tag("k", "v"),)
    )
    store.enqueue(job, START)
    found = snapshot(store, job.job_id)
    assert (found.job_id, found.wire_name, found.queue) == (job.job_id, job.wire_name, job.queue)
    assert (found.due_time, found.enqueued_at) == (after(9), START)
    assert (found.state, found.attempt, found.claim_number) == (JobState.SCHEDULED, 0, 0)
    assert (found.lease_owner, found.lease_expires_at, found.cancel_requested) == (
        None,
        None,
        False,
    )
    assert (found.terminal_at, found.terminal_cause) == (None, None)
    assert (found.schedule_id, found.tick, found.workflow_id) == (None, None, None)
    assert found.trace_context == "00-ab-cd-01"
    assert (store.job_payload(job.job_id), store.job_output(job.job_id)) == (b"\x00data", None)


def test_1_1_sequences_grow_with_every_job(store: JobStore) -> None:
    """Later jobs have larger sequences, whatever their ids and due times say."""
    late, early = new_id(), new_id()
    ids = [
        stored(store, job_id=early, due_time=after(9)),
        stored(store, job_id=late),
        stored(store, due_time=after(-9)),
    ]
    sequences = [snapshot(store, job_id).sequence for job_id in ids]
    assert sequences == sorted(set(sequences))
    assert all(isinstance(sequence, int) for sequence in sequences)


def test_1_1_a_sequence_is_never_given_twice(store: JobStore) -> None:
    """A refused job may leave a gap, but no job takes the place of another."""
    first = new_job()
    store.enqueue_many([first, first, new_job(parents=(new_id(),)), new_job()], START)
    stored(store)
    sequences = [found.snapshot.sequence for found in whole(store)]
    assert len(set(sequences)) == 3


def test_1_1_a_claim_counts_the_attempt_and_the_claim(store: JobStore) -> None:
    """Both are 0 before the first claim and grow with each."""
    lease = running(store)
    found = snapshot(store, lease.job_id)
    assert (lease.attempt, lease.claim_number) == (1, 1)
    assert (found.attempt, found.claim_number) == (1, 1)
    end(store, lease, Failed("boom", retry_at=START))
    lease = claimed_job(store, lease.job_id).lease
    assert (lease.attempt, lease.claim_number) == (2, 2)


def test_1_1_what_a_job_was_given_never_changes(store: JobStore) -> None:
    """Retries, hand-backs and the end leave identity, queue, payload and order alone."""
    lease = running(store, payload=b"once", trace_context="t")
    first = snapshot(store, lease.job_id)
    results: list[Result] = [
        Failed("boom", retry_at=after(5)), Released(started=False), Succeeded(b"out"),
    ]  # fmt: skip
    for number, result in enumerate(results):
        end(store, lease, result, after(10 * number))
        if number < 2:
            lease = claimed_job(store, lease.job_id, after(10 * number + 5)).lease
    last = snapshot(store, lease.job_id)
    for name in ("sequence", "wire_name", "queue", "enqueued_at", "trace_context"):
        assert getattr(last, name) == getattr(first, name)
    assert store.job_payload(lease.job_id) == b"once"


def _walk(store: JobStore) -> list[tuple[JobState | None, JobState]]:
    """Make every move that there is; give the steps that the logs show."""
    ends = (
        Succeeded(), Failed("boom"), Unroutable("unknown"), Cancelled("asked"),
        Failed("boom", retry_at=START), Released(started=True), Released(started=False),
    )  # fmt: skip
    failed = None
    for result in ends:
        lease = running(store)
        if end(store, lease, result) is JobState.DEAD_LETTERED:
            failed = lease.job_id
        if not state_of(store, lease.job_id).is_terminal:
            store.cancel(lease.job_id, None, START)
    assert failed is not None
    parent = running(store)
    waiting = store_all(
        store,
        [new_job(parents=(parent.job_id,), mode=mode) for mode in DependencyMode]
        + [new_job(parents=(failed,), queue="late")],
    )
    end(store, parent, Failed("boom"))
    for job_id in waiting[1:2]:
        lapsing = claimed_job(store, job_id).lease
        assert store.expire_leases(None, give_up, 10, after(61)) == 1
        assert lapsing.job_id == job_id
    return [
        step
        for found in whole(store)
        for step in zip(
            [None, *(entry.state for entry in found.history)],
            [entry.state for entry in found.history],
            strict=False,
        )
    ]


def test_1_2_every_step_that_is_taken_is_legal(store: JobStore) -> None:
    """The logs hold no step that the table of moves does not have."""
    needs_history(store)
    assert set(_walk(store)) <= LEGAL_STEPS


def test_1_2_every_legal_step_can_be_taken(store: JobStore) -> None:
    """Each step of the table is there to be taken, requeues by an operator excepted."""
    needs_history(store)
    requeues = {
        (origin, moves[Move.REQUEUE]) for origin, moves in MOVES.items() if Move.REQUEUE in moves
    }
    assert set(_walk(store)) >= LEGAL_STEPS - requeues


def _ended(store: JobStore) -> list[Lease]:
    """Bring a job to each terminal state, each under a lease of its own."""
    results: list[Result] = [
        Succeeded(b"out"), Cancelled("asked"), Failed("boom"), Unroutable("unknown"),
    ]  # fmt: skip
    leases = [running(store) for _ in results]
    for lease, result in zip(leases, results, strict=True):
        assert end(store, lease, result).is_terminal
    return leases


def test_1_2_no_operation_moves_a_job_that_has_ended(store: JobStore) -> None:
    """Claims, reports, renewals, sweeps and cancels pass every terminal state by."""
    leases = _ended(store)
    before = whole(store)
    later = after(3_600)
    assert not claim(store, now=later).jobs
    assert store.heartbeat(leases, LEASE, later) == [Renewal.LOST] * len(leases)
    for lease in leases:
        for result in (Succeeded(), Failed("late", retry_at=later), Released(started=False)):
            assert report_one(store, lease, result, later).verdict is Verdict.STALE
        assert store.cancel(lease.job_id, None, later) is CancelResult.NOT_CANCELLABLE
    assert store.expire_leases(None, give_up, 10, later) == 0
    assert store.release_waiting(10, later) == 0
    assert whole(store) == before


def test_1_2_no_report_moves_a_job_that_is_not_leased(store: JobStore) -> None:
    """An invented lease on a job that waits or is due moves nothing."""
    due = stored(store)
    waiting = stored(store, parents=(due,))
    before = whole(store)
    for job_id in (due, waiting):
        for attempt in (0, 1):
            for owner in ("", WORKER):
                lease = Lease(job_id, owner, attempt, attempt)
                assert report_one(store, lease, Succeeded()).verdict is Verdict.STALE
                assert store.heartbeat([lease], LEASE, START) == [Renewal.LOST]
    assert whole(store) == before


def test_1_2_a_waiting_or_leased_job_is_not_claimed(store: JobStore) -> None:
    """Only a Scheduled job becomes Leased."""
    lease = running(store)
    waiting = stored(store, parents=(lease.job_id,))
    assert not claim(store, now=after(3_600), worker=OTHER_WORKER).jobs
    assert state_of(store, waiting) is JobState.AWAITING_PARENT
    assert snapshot(store, lease.job_id).lease_owner == WORKER


def test_1_2_the_log_of_a_whole_life_reads_in_order(store: JobStore) -> None:
    """From the enqueue through a retry, a hand-back and a sweep to the end."""
    needs_history(store)
    lease = running(store)
    end(store, lease, Failed("boom", retry_at=START))
    end(store, claimed_job(store, lease.job_id).lease, Released(started=False))
    claimed_job(store, lease.job_id)
    assert store.expire_leases(None, retry_in(61), 1, after(60)) == 1
    end(store, claimed_job(store, lease.job_id, after(61)).lease, now=after(62))
    turn = [JobState.SCHEDULED, JobState.LEASED]
    assert steps_of(store, lease.job_id) == [*turn * 4, JobState.SUCCEEDED]


def test_1_3_a_lease_is_set_exactly_while_leased(store: JobStore) -> None:
    """Owner and end of the lease come with the claim and go with it."""
    for result in (
        Succeeded(), Failed("boom"), Failed("boom", retry_at=START), Unroutable("unknown"),
        Cancelled("asked"), Released(started=True), Released(started=False),
    ):  # fmt: skip
        queue = f"q-{type(result).__name__}-{new_id()}"
        lease = running(store, queue=queue)
        found = snapshot(store, lease.job_id)
        assert (found.lease_owner, found.lease_expires_at) == (WORKER, START + LEASE)
        end(store, lease, result)
        found = snapshot(store, lease.job_id)
        assert (found.lease_owner, found.lease_expires_at) == (None, None)


def test_1_3_a_swept_lease_is_gone(store: JobStore) -> None:
    """A sweep takes the lease away, whether the job is tried again or not."""
    for decide in (retry_in(70), give_up):
        lease = running(store)
        assert store.expire_leases(None, decide, 10, after(61)) == 1
        found = snapshot(store, lease.job_id)
        assert (found.lease_owner, found.lease_expires_at) == (None, None)


def test_1_3_an_end_is_set_exactly_while_terminal(store: JobStore) -> None:
    """Instant and cause of the end are there for every end, the cause not for success."""
    causes = {}
    for lease in _ended(store):
        found = snapshot(store, lease.job_id)
        assert found.terminal_at == START
        causes[found.state] = found.terminal_cause
    assert causes == {
        JobState.SUCCEEDED: None,
        JobState.CANCELLED: "asked",
        JobState.DEAD_LETTERED: "boom",
        JobState.QUARANTINED: "unknown",
    }


def test_1_3_a_live_job_has_no_end(store: JobStore) -> None:
    """Nothing of an end shows on a job that is due, waits, runs or is tried again."""
    due, lease = stored(store, due_time=after(99)), running(store)
    waiting = stored(store, parents=(due,))
    retried = running(store)
    end(store, retried, Failed("boom", retry_at=after(99)))
    for job_id in (due, lease.job_id, waiting, retried.job_id):
        found = snapshot(store, job_id)
        assert (found.terminal_at, found.terminal_cause) == (None, None)


def test_1_3_a_cause_is_never_missing(store: JobStore) -> None:
    """An end without words gets some: a reader always learns that there is a cause."""
    for result in (Failed(""), Cancelled(""), Unroutable("")):
        lease = running(store)
        end(store, lease, result)
        assert snapshot(store, lease.job_id).terminal_cause
    cancelled = stored(store)
    store.cancel(cancelled, None, START)
    assert snapshot(store, cancelled).terminal_cause


def test_1_3_a_request_to_cancel_is_noted_exactly_while_leased(store: JobStore) -> None:
    """The request comes and goes with the lease that it is for."""
    lease = running(store)
    store.cancel(lease.job_id, None, START)
    assert snapshot(store, lease.job_id).cancel_requested
    end(store, lease, Succeeded())
    assert not view(store, lease.job_id).snapshot.cancel_requested
