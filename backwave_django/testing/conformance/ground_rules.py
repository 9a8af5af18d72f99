"""Chapter 0, ground rules: time, atomicity and concurrency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest

from ...core.events import Renewal, Verdict
from ...core.outcomes import Failed, LapsedLease, Outcome, Released, Succeeded
from ...core.states import JobState
from ...storage.contract import JobStore
from ...storage.errors import StoreMisused
from ...storage.values import EnqueueStatus, JobFilter
from .scenario import (
    LEASE,
    MICROSECOND,
    OTHER_WORKER,
    QUEUE,
    SECOND,
    START,
    WORKER,
    after,
    at_once,
    claim,
    claimed_job,
    end,
    give_up,
    ids_of,
    needs_history,
    new_id,
    new_job,
    report_one,
    request,
    retry_in,
    running,
    snapshot,
    state_of,
    store_all,
    stored,
    whole,
)

Timed = Callable[[datetime], Any]


def _timed_operations(store: JobStore) -> list[Timed]:
    """Give every operation that takes ``now``, each with something to do."""
    waiting, lease = stored(store), running(store, queue="other")
    outcome = Outcome(lease, Succeeded(b"done"))
    return [
        lambda now: store.enqueue(new_job(), now),
        lambda now: store.enqueue_many([new_job()], now),
        lambda now: store.claim(WORKER, request(QUEUE), now),
        lambda now: store.heartbeat([lease], LEASE, now),
        lambda now: store.report([outcome], now),
        lambda now: store.exchange(WORKER, [outcome], request(QUEUE), now),
        lambda now: store.expire_leases(None, give_up, 10, now),
        lambda now: store.release_waiting(10, now),
        lambda now: store.cancel(waiting, "anna", now),
    ]


def _refuses(store: JobStore, now: datetime) -> None:
    for operation in _timed_operations(store):
        before = whole(store)
        with pytest.raises(StoreMisused):
            operation(now)
        assert whole(store) == before


def test_0_1_a_naive_now_is_refused_and_nothing_changes(store: JobStore) -> None:
    """Every operation that takes ``now`` refuses one without a zone."""
    _refuses(store, after(3_600).replace(tzinfo=None))


def test_0_1_a_now_of_another_zone_is_refused_and_nothing_changes(store: JobStore) -> None:
    """Instants are UTC: another zone is a caller's mistake, even for the same instant."""
    _refuses(store, after(3_600).astimezone(timezone(timedelta(hours=2))))


def test_0_1_a_naive_due_time_is_refused_and_nothing_is_stored(store: JobStore) -> None:
    """The due time is an instant as well, and one bad job of a batch stops the batch."""
    jobs = [new_job(), new_job(due_time=START.replace(tzinfo=None))]
    with pytest.raises(StoreMisused):
        store.enqueue_many(jobs, START)
    assert whole(store) == []


def test_0_1_a_refusal_of_now_is_a_value_error(store: JobStore) -> None:
    """Callers that know nothing of the store's own errors catch the usual one."""
    with pytest.raises(ValueError, match="aware"):
        store.enqueue(new_job(), START.replace(tzinfo=None))


def test_0_1_every_recorded_instant_keeps_its_microseconds(store: JobStore) -> None:
    """What is read is what was given, to the microsecond."""
    due, claimed_at, ended_at = after(5), after(5) + MICROSECOND, after(6) + 3 * MICROSECOND
    job_id = stored(store, due_time=due)
    assert snapshot(store, job_id).due_time == due
    assert snapshot(store, job_id).enqueued_at == START
    lease = claimed_job(store, job_id, claimed_at).lease
    assert snapshot(store, job_id).lease_expires_at == claimed_at + LEASE
    end(store, lease, now=ended_at)
    assert snapshot(store, job_id).terminal_at == ended_at
    if store.history.value != "off":
        assert [entry.at for entry in store.job_history(job_id)] == [START, claimed_at, ended_at]


def test_0_1_an_instant_is_read_as_aware_utc(store: JobStore) -> None:
    """A reader never has to guess the zone."""
    lease = running(store)
    found = snapshot(store, lease.job_id)
    assert found.lease_expires_at is not None
    for instant in (found.due_time, found.enqueued_at, found.lease_expires_at):
        assert instant.utcoffset() == timedelta(0)


def test_0_1_far_away_instants_survive(store: JobStore) -> None:
    """A due time may lie before 1970 or at the end of the calendar."""
    early = datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    late = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    for due_time in (early, late):
        assert snapshot(store, stored(store, due_time=due_time)).due_time == due_time


def test_0_1_only_the_given_time_counts(store: JobStore) -> None:
    """The same story goes the same way decades before and after the host's clock."""
    for year in (1999, 2999):
        now = datetime(year, 1, 1, tzinfo=UTC)
        job_id = stored(store, now, due_time=now + SECOND)
        assert not claim(store, now=now).jobs
        lease = claimed_job(store, job_id, now + SECOND).lease
        lapses = now + SECOND + LEASE
        assert store.expire_leases(None, give_up, 10, lapses - MICROSECOND) == 0
        assert store.expire_leases(None, give_up, 10, lapses) == 1
        assert snapshot(store, job_id).terminal_at == lapses
        assert report_one(store, lease, Succeeded(), lapses).verdict is Verdict.STALE


def test_0_2_a_sweep_whose_decision_fails_changes_nothing(store: JobStore) -> None:
    """The sweep is one operation: where it fails at the second lease, the first is as it was."""
    running(store)
    running(store)
    before, seen = whole(store), []

    def decide(lapsed: LapsedLease) -> Failed:
        seen.append(lapsed)
        if len(seen) == 2:
            raise LookupError("no policy")
        return give_up(lapsed)

    with pytest.raises(LookupError):
        store.expire_leases(None, decide, 10, after(61))
    assert len(seen) == 2
    assert whole(store) == before
    assert store.expire_leases(None, give_up, 10, after(61)) == 2


def test_0_2_a_batch_with_a_job_that_no_store_can_hold_stores_nothing(store: JobStore) -> None:
    """An error is not an answer: none of the batch is there, and the same ids can be used."""
    good = new_job()
    with pytest.raises(ValueError, match="queue"):
        store.enqueue_many([good, new_job(queue="")], START)
    assert whole(store) == []
    assert store.enqueue(good, START).status is EnqueueStatus.OK


def test_0_3_one_id_enqueued_at_once_is_stored_once(store: JobStore) -> None:
    """However many bring the same id, one is told OK and the others DUPLICATE."""
    for _ in range(5):
        job = new_job()
        twins = [replace(job, payload=str(number).encode()) for number in range(4)]
        answers = at_once(store, *(partial(store.enqueue, twin, START) for twin in twins))
        answers = [result.status for result in answers]
        assert sorted(status.name for status in answers) == ["DUPLICATE"] * 3 + ["OK"]
        winner = twins[answers.index(EnqueueStatus.OK)]
        assert store.job_payload(job.job_id) == winner.payload


def test_0_3_batches_that_share_ids_are_each_answered_in_full(store: JobStore) -> None:
    """Two batches of the same jobs, in opposite orders, store each job once."""
    for _ in range(5):
        jobs = [new_job() for _ in range(200)]
        orders = (jobs, jobs[::-1])
        first, second = at_once(
            store, *(partial(store.enqueue_many, order, START) for order in orders)
        )
        for ours, theirs in zip(first, reversed(list(second)), strict=True):
            assert {ours.status, theirs.status} == {EnqueueStatus.OK, EnqueueStatus.DUPLICATE}


def test_0_3_operations_of_every_kind_at_once_lose_nothing(store: JobStore) -> None:
    """Enqueue, claim, report, renew, sweep and cancel at once: each job ends exactly once."""
    jobs = [new_job(queue=f"q{number % 3}") for number in range(60)]
    store_all(store, jobs[:30])
    wanted = request("q0", "q1", "q2", max_jobs=3)

    def work(worker: str) -> int:
        applied = 0
        for round_number in range(25):
            now = after(round_number)
            claimed = store.claim(worker, wanted, now)
            store.heartbeat([job.lease for job in claimed.jobs], LEASE, now)
            outcomes = [Outcome(job.lease, Succeeded()) for job in claimed.jobs]
            applied += sum(r.verdict is Verdict.APPLIED for r in store.report(outcomes, now))
        return applied

    def enqueue_rest() -> int:
        for job in jobs[30:]:
            assert store.enqueue(job, START).status is EnqueueStatus.OK
        return 0

    def disturb() -> int:
        for number, job in enumerate(jobs[:30:3]):
            store.cancel(job.job_id, None, after(number))
            store.expire_leases(None, retry_in(0), 5, after(number))
            store.release_waiting(5, after(number))
        return 0

    applied = sum(
        at_once(store, lambda: work(WORKER), lambda: work(OTHER_WORKER), enqueue_rest, disturb)
    )
    applied += _drained(store)
    states = [state_of(store, job.job_id) for job in jobs]
    assert set(states) <= {JobState.SUCCEEDED, JobState.CANCELLED}
    assert applied == states.count(JobState.SUCCEEDED)


def _drained(store: JobStore) -> int:
    """Finish all that is left, alone; give how many outcomes applied."""
    applied = 0
    for number in range(100):
        now = after(1_000 + 100 * number)
        store.expire_leases(None, retry_in(0), 100, now)
        claimed = claim(store, "q0", "q1", "q2", now=now, max_jobs=30)
        if not claimed.jobs:
            break
        outcomes = [Outcome(job.lease, Succeeded()) for job in claimed.jobs]
        applied += sum(r.verdict is Verdict.APPLIED for r in store.report(outcomes, now))
    return applied


def test_0_3_a_lapsed_lease_reported_and_swept_at_once_ends_one_way(store: JobStore) -> None:
    """Either the report applies and the sweep finds nothing, or the other way round."""
    needs_history(store)
    for _ in range(8):
        lease = running(store)
        answer, swept = at_once(
            store,
            partial(report_one, store, lease, Succeeded(), after(61)),
            lambda: store.expire_leases(None, give_up, 10, after(61)),
        )
        ended = state_of(store, lease.job_id)
        if answer.verdict is Verdict.BUSY:
            answer = report_one(store, lease, Succeeded(), after(61))
        assert (answer.verdict, swept, ended) in {
            (Verdict.APPLIED, 0, JobState.SUCCEEDED),
            (Verdict.STALE, 1, JobState.DEAD_LETTERED),
        }
        assert len(store.job_history(lease.job_id)) == 3


def test_0_3_a_renewal_and_a_sweep_at_once_agree(store: JobStore) -> None:
    """A lease that was renewed is not swept, and one that was swept is lost."""
    for _ in range(8):
        lease = running(store)
        (renewal,), swept = at_once(
            store,
            partial(store.heartbeat, [lease], LEASE, after(61)),
            lambda: store.expire_leases(None, retry_in(3_600), 10, after(61)),
        )
        state = state_of(store, lease.job_id)
        assert (renewal, swept, state) in {
            (Renewal.RENEWED, 0, JobState.LEASED),
            (Renewal.LOST, 1, JobState.SCHEDULED),
            (Renewal.BUSY, 1, JobState.SCHEDULED),
        }
        if state is JobState.LEASED:
            end(store, lease, Released(started=True), after(3_000))
        assert report_one(store, lease, Succeeded(), after(61)).verdict is Verdict.STALE


def test_0_4_what_commits_by_itself_is_there_for_others_at_once(store: JobStore) -> None:
    """Outside of a transaction each operation is done when it returns, for every thread."""
    job_id = stored(store)
    (claimed,) = at_once(store, lambda: claim(store, now=START))
    assert ids_of(claimed) == [job_id]
    assert state_of(store, job_id) is JobState.LEASED
    (state,) = at_once(store, lambda: end(store, claimed.jobs[0].lease))
    assert state is JobState.SUCCEEDED
    assert state_of(store, job_id) is JobState.SUCCEEDED


def test_0_4_reads_see_what_the_same_thread_has_done(store: JobStore) -> None:
    """No read lags behind a write that has returned."""
    job_id = stored(store)
    assert store.get_job(job_id) is not None
    assert store.get_job(new_id()) is None
    store.cancel(job_id, None, START)
    assert [job.state for job in store.list_jobs(JobFilter())] == [JobState.CANCELLED]
    assert [count.state for count in store.count_jobs()] == [JobState.CANCELLED]
