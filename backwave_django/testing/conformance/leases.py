"""Chapter 4, leases: heartbeats and the sweep of what has lapsed."""

from __future__ import annotations

from datetime import timedelta

from ...core.events import Renewal, Verdict
from ...core.expiry import decide_expiry
from ...core.outcomes import Failed, LapsedLease, Lease, Released, Result, Succeeded
from ...core.retry import RetryPolicy
from ...core.states import JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from .scenario import (
    LEASE,
    MICROSECOND,
    OTHER_WORKER,
    START,
    WORKER,
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

LAPSED = START + LEASE
TWICE = RetryPolicy(max_attempts=2, backoff=lambda attempt: timedelta(seconds=10 * attempt))


def _decide(lapsed: LapsedLease) -> Failed:
    return decide_expiry(lapsed, TWICE, LAPSED)


def test_4_1_a_heartbeat_renews_a_live_lease(store: JobStore) -> None:
    """The lease then ends so long after the heartbeat, and nothing else has changed."""
    lease = running(store)
    before = view(store, lease.job_id)
    assert list(store.heartbeat([lease], LEASE, after(30))) == [Renewal.RENEWED]
    found = view(store, lease.job_id)
    assert found.snapshot.lease_expires_at == after(30) + LEASE
    assert found.history == before.history
    assert (found.snapshot.attempt, found.snapshot.claim_number) == (1, 1)
    assert store.expire_leases(None, give_up, 10, after(89)) == 0


def test_4_1_the_length_of_a_renewal_is_the_heartbeats_own(store: JobStore) -> None:
    """It need not be the one that the claim asked for, and may shorten the lease."""
    lease = running(store)
    store.heartbeat([lease], timedelta(seconds=7), after(1))
    assert snapshot(store, lease.job_id).lease_expires_at == after(8)


def test_4_1_a_renewal_is_fenced_by_every_part_of_the_lease(store: JobStore) -> None:
    """Another worker, attempt or claim number has lost it, and renews nothing."""
    lease = running(store)
    before = whole(store)
    for stranger in (
        lease._replace(worker_id=OTHER_WORKER),
        lease._replace(attempt=2),
        lease._replace(claim_number=2),
        lease._replace(job_id=new_id()),
    ):
        assert list(store.heartbeat([stranger], LEASE, after(30))) == [Renewal.LOST]
    assert whole(store) == before


def test_4_1_a_lease_whose_job_has_moved_on_is_lost(store: JobStore) -> None:
    """Ended, handed back, retried or claimed anew: the old lease is over."""
    results: list[Result] = [
        Succeeded(), Failed("boom", retry_at=after(99)), Released(started=False),
    ]  # fmt: skip
    leases = []
    for number, result in enumerate(results):
        lease = running(store, queue=f"q{number}")
        end(store, lease, result)
        before = whole(store)
        assert list(store.heartbeat([lease], LEASE, after(1))) == [Renewal.LOST]
        assert whole(store) == before
        leases.append(lease)
    second = claimed_job(store, leases[-1].job_id).lease
    assert list(store.heartbeat([leases[-1], second], LEASE, after(1))) == [
        Renewal.LOST,
        Renewal.RENEWED,
    ]


def test_4_1_each_lease_is_answered_in_order(store: JobStore) -> None:
    """Live, lost and cancelling ones in one heartbeat."""
    leases = [running(store) for _ in range(6)]
    end(store, leases[1])
    store.cancel(leases[2].job_id, None, START)
    store.cancel(leases[5].job_id, None, START)
    asked = [*leases[::-1], leases[0]._replace(attempt=4)]
    expected = {leases[1]: Renewal.LOST, asked[-1]: Renewal.LOST}
    expected |= dict.fromkeys((leases[2], leases[5]), Renewal.CANCEL_REQUESTED)
    answers = store.heartbeat(asked, LEASE, after(1))
    assert list(answers) == [expected.get(lease, Renewal.RENEWED) for lease in asked]


def test_4_1_a_request_to_cancel_is_told_and_the_lease_renewed(store: JobStore) -> None:
    """The worker learns of it with every heartbeat until the job ends."""
    lease = running(store)
    store.cancel(lease.job_id, "anna", START)
    for seconds in (10, 20):
        answers = store.heartbeat([lease], LEASE, after(seconds))
        assert list(answers) == [Renewal.CANCEL_REQUESTED]
        assert snapshot(store, lease.job_id).lease_expires_at == after(seconds) + LEASE


def test_4_1_a_lapsed_lease_that_was_not_swept_is_renewed(store: JobStore) -> None:
    """After an outage a worker keeps what nobody has taken from it."""
    lease = running(store)
    assert list(store.heartbeat([lease], LEASE, after(600))) == [Renewal.RENEWED]
    assert store.expire_leases(None, give_up, 10, after(659)) == 0


def test_4_1_an_empty_heartbeat_is_no_error(store: JobStore) -> None:
    """It has no answers."""
    assert list(store.heartbeat([], LEASE, START)) == []


def test_4_6_a_lease_is_dead_at_its_instant_and_not_before(store: JobStore) -> None:
    """The microsecond before the end nothing is swept, at the end it is."""
    running(store)
    assert store.expire_leases(None, give_up, 10, LAPSED - MICROSECOND) == 0
    assert store.expire_leases(None, give_up, 10, LAPSED) == 1
    assert store.expire_leases(None, give_up, 10, LAPSED) == 0


def test_4_6_a_lapsed_job_is_tried_again_at_the_policys_backoff(store: JobStore) -> None:
    """The lapse counts as a failed attempt."""
    lease = running(store)
    store.expire_leases(None, _decide, 10, LAPSED)
    found = snapshot(store, lease.job_id)
    assert (found.state, found.due_time) == (JobState.SCHEDULED, LAPSED + timedelta(seconds=10))
    assert claimed_job(store, lease.job_id, found.due_time).lease.attempt == 2


def test_4_6_a_lapsed_job_at_its_ceiling_is_dead_lettered(store: JobStore) -> None:
    """The cause says that the worker was lost, and which one."""
    lease = running(store)
    end(store, lease, Failed("boom", retry_at=START))
    claimed_job(store, lease.job_id, worker=OTHER_WORKER)
    store.expire_leases(None, _decide, 10, LAPSED)
    found = snapshot(store, lease.job_id)
    assert (found.state, found.terminal_at) == (JobState.DEAD_LETTERED, LAPSED)
    assert "worker lost" in str(found.terminal_cause)
    assert OTHER_WORKER in str(found.terminal_cause)


def test_4_6_the_decision_is_asked_with_the_lapsed_lease(store: JobStore) -> None:
    """Lease, wire name, queue and the end of the lease are what it is made of."""
    lease = running(store, wire_name="import", queue="files")
    seen: list[LapsedLease] = []

    def decide(lapsed: LapsedLease) -> Failed:
        seen.append(lapsed)
        return give_up(lapsed)

    store.expire_leases(None, decide, 10, after(99))
    assert seen == [LapsedLease(lease, "import", "files", LAPSED)]


def test_4_6_a_sweep_keeps_the_diagnosis(store: JobStore) -> None:
    """The failing step of the log says what was decided."""
    if store.history.value == "transitions_and_failure_detail":
        lease = running(store)
        store.expire_leases(None, lambda lapsed: Failed("lost", "the diagnosis"), 10, LAPSED)
        assert store.job_history(lease.job_id)[-1].failure_detail == "the diagnosis"


def test_4_6_only_jobs_of_the_given_queues_are_swept(store: JobStore) -> None:
    """None of the others, and all of them where no queue is named."""
    leases = {queue: running(store, queue=queue) for queue in ("a", "b", "c", "d")}
    assert store.expire_leases([], give_up, 10, LAPSED) == 0
    assert store.expire_leases(["a", "c"], give_up, 10, LAPSED) == 2
    states = [state_of(store, lease.job_id) for lease in leases.values()]
    assert states == [JobState.DEAD_LETTERED, JobState.LEASED] * 2
    store.pause_queue("b", None, START)
    assert store.expire_leases(None, give_up, 10, LAPSED) == 2


def test_4_6_a_sweep_disposes_of_at_most_so_many(store: JobStore) -> None:
    """The next sweeps take the rest."""
    for _ in range(5):
        running(store)
    assert [store.expire_leases(None, give_up, 2, LAPSED) for _ in range(4)] == [2, 2, 1, 0]


def test_4_6_live_leases_are_passed_over(store: JobStore) -> None:
    """One that was renewed, one that was claimed later, and one that has ended."""
    renewed, lapsed, ended = (running(store) for _ in range(3))
    later = claimed_job(store, stored(store), after(1)).lease
    store.heartbeat([renewed], LEASE, after(1))
    end(store, ended)
    assert store.expire_leases(None, give_up, 10, LAPSED) == 1
    states = {lease: state_of(store, lease.job_id) for lease in (renewed, later, lapsed)}
    assert states == {
        renewed: JobState.LEASED,
        later: JobState.LEASED,
        lapsed: JobState.DEAD_LETTERED,
    }


def test_4_6_a_dead_letter_of_the_sweep_reaches_the_children(store: JobStore) -> None:
    """An end is an end, whoever has recorded it."""
    lease = running(store)
    child = stored(store, parents=(lease.job_id,))
    store.expire_leases(None, give_up, 10, LAPSED)
    assert state_of(store, child) is JobState.CANCELLED


def test_4_6_a_swept_job_keeps_its_tags(store: JobStore) -> None:
    """The sweep takes the lease, and nothing of the job."""
    lease = running(store, tags=(Tag(None, "a"),))
    store.expire_leases(None, retry_in(61), 10, LAPSED)
    assert store.job_tags(lease.job_id) == [Tag(None, "a")]
    assert store.job_payload(lease.job_id) == b"{}"


def test_4_6_sweeps_at_once_share_the_work(store: JobStore) -> None:
    """Each lapsed lease is disposed of exactly once, and the counts add up."""
    needs_history(store)
    for number in range(3):
        queue = f"lost-{number}"
        ids = store_all(store, [new_job(queue=queue) for _ in range(24)])
        assert len(claim(store, queue, max_jobs=24).jobs) == 24

        def sweep() -> int:
            return sum(store.expire_leases(None, retry_in(9_999), 5, LAPSED) for _ in range(6))

        answers = at_once(store, *[sweep] * 4)
        left = store.expire_leases(None, retry_in(9_999), 100, LAPSED)
        assert sum(answers) + left == 24
        for job_id in ids:
            assert steps_of(store, job_id) == [
                JobState.SCHEDULED, JobState.LEASED, JobState.SCHEDULED,
            ]  # fmt: skip


def test_4_6_a_lease_that_lapsed_again_is_swept_again(store: JobStore) -> None:
    """Each claim has one end; the next one has its own."""
    lease: Lease = running(store)
    for number in range(1, 4):
        now = START + number * LEASE
        assert store.expire_leases(None, lambda lapsed: Failed("lost", retry_at=START), 9, now) == 1
        assert report_one(store, lease, Succeeded(), now).verdict is Verdict.STALE
        lease = claimed_job(store, lease.job_id, now, WORKER).lease
        assert lease.claim_number == number + 1
