"""Rules 0.7, 3.2 and 2.4 on PostgreSQL: what an application locks keeps no pump waiting."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
from django.db import connections, transaction

from backwave_django.core.events import Renewal, Verdict
from backwave_django.core.outcomes import Failed, Outcome, Succeeded
from backwave_django.core.states import JobState
from backwave_django.models import Dependency, Job
from backwave_django.storage.values import DependencyMode, EnqueueStatus
from backwave_django.testing.conformance.scenario import (
    LEASE,
    QUEUE,
    START,
    WORKER,
    after,
    claim,
    end,
    give_up,
    ids_of,
    new_job,
    report_one,
    request,
    running,
    state_of,
    steps_of,
    stored,
)

from .conftest import DATABASE_STORES, POSTGRES_STORES
from .databases import PATIENCE_SECONDS, elsewhere, without_waiting

ON_DATABASES = pytest.mark.parametrize("name", DATABASE_STORES)
ON_POSTGRES = pytest.mark.parametrize("name", POSTGRES_STORES)


def _cancels(store, job_id):
    store.cancel(job_id, "anna", START)


def _updates(store, job_id):
    Job.objects.using(store.alias).filter(job_id=job_id).update(trace_context="changed")


def _locks(store, job_id):
    list(Job.objects.using(store.alias).filter(job_id=job_id).select_for_update())


HOLDS = pytest.mark.parametrize("hold", [_cancels, _updates, _locks])


@contextmanager
def open_transaction(store, hold, job_id):
    """Hold what an application's transaction holds that is still open."""
    with transaction.atomic(using=store.alias):
        hold(store, job_id)
        yield


@ON_POSTGRES
@HOLDS
def test_0_7_a_report_does_not_wait_for_a_callers_transaction(name, hold, make_store):
    """The held job is BUSY and unchanged, the others of the batch apply, and later it does."""
    store = make_store(name)
    held, free = running(store), running(store)
    outcomes = [Outcome(held, Succeeded(b"out")), Outcome(free, Succeeded())]
    with open_transaction(store, hold, held.job_id):
        answers = without_waiting(store.alias, store.report, outcomes, START)
        assert list(answers) == [(Verdict.BUSY, None), (Verdict.APPLIED, JobState.SUCCEEDED)]
    assert state_of(store, held.job_id) is JobState.LEASED
    assert end(store, held, Succeeded(b"out")) is JobState.SUCCEEDED


@ON_POSTGRES
@HOLDS
def test_0_7_a_stale_outcome_of_a_held_job_is_stale_and_not_busy(name, hold, make_store):
    """Trying again would be no help."""
    store = make_store(name)
    held = running(store)
    with open_transaction(store, hold, held.job_id):
        answer = without_waiting(
            store.alias, report_one, store, held._replace(attempt=9), Succeeded()
        )
    assert answer.verdict is Verdict.STALE


@ON_POSTGRES
@HOLDS
def test_0_7_a_heartbeat_does_not_wait_for_a_callers_transaction(name, hold, make_store):
    """The held lease is BUSY, a stale one is LOST, and the others are renewed."""
    store = make_store(name)
    held, free = running(store), running(store)
    leases = [held, free, held._replace(claim_number=7)]
    with open_transaction(store, hold, held.job_id):
        answers = without_waiting(store.alias, store.heartbeat, leases, LEASE, after(5))
    assert list(answers) == [Renewal.BUSY, Renewal.RENEWED, Renewal.LOST]


@ON_POSTGRES
@HOLDS
def test_0_7_a_claim_does_not_wait_for_a_callers_transaction(name, hold, make_store):
    """The held job is passed over, and is claimed once the transaction has ended."""
    store = make_store(name)
    held, free = stored(store), stored(store)
    with open_transaction(store, hold, held):
        assert ids_of(without_waiting(store.alias, claim, store)) == [free]
        assert not without_waiting(store.alias, claim, store).jobs
    assert ids_of(claim(store)) == ([] if hold is _cancels else [held])


@ON_POSTGRES
@HOLDS
def test_0_7_a_sweep_does_not_wait_for_a_callers_transaction(name, hold, make_store):
    """The held job is left for the next sweep."""
    store = make_store(name)
    held, free = running(store), running(store)
    with open_transaction(store, hold, held.job_id):
        swept = without_waiting(store.alias, store.expire_leases, None, give_up, 10, after(99))
        assert swept == 1
    assert state_of(store, free.job_id) is JobState.DEAD_LETTERED
    assert store.expire_leases(None, give_up, 10, after(99)) == 1


@ON_POSTGRES
@HOLDS
def test_0_7_an_end_does_not_wait_for_a_child_that_is_held(name, hold, make_store):
    """It is BUSY as a whole; an end beside it applies; nothing is half done."""
    store = make_store(name)
    parent, other = running(store), running(store)
    child, sister = (stored(store, parents=(parent.job_id,), queue="children") for _ in range(2))
    niece = stored(store, parents=(other.job_id,), queue="children")
    outcomes = [Outcome(parent, Failed("boom")), Outcome(other, Failed("boom"))]
    with open_transaction(store, hold, child):
        answers = without_waiting(store.alias, store.report, outcomes, START)
        assert [answer.verdict for answer in answers] == [Verdict.BUSY, Verdict.APPLIED]
        assert state_of(store, sister) is JobState.AWAITING_PARENT
    assert state_of(store, niece) is JobState.CANCELLED
    assert state_of(store, parent.job_id) is JobState.LEASED
    end(store, parent, Failed("boom"))
    assert [state_of(store, job_id) for job_id in (child, sister)] == [JobState.CANCELLED] * 2


@ON_POSTGRES
def test_0_7_a_child_that_is_being_enqueued_holds_its_parent_up_in_nothing(name, make_store):
    """An open transaction that enqueued a child lets the parent be renewed, reported, swept."""
    store = make_store(name)
    renewed, ended, lapsing, due = running(store), running(store), running(store), stored(store)
    parents = (renewed.job_id, ended.job_id, lapsing.job_id, due)
    with transaction.atomic(using=store.alias):
        child = stored(store, parents=parents, queue="children")
        beat = without_waiting(store.alias, store.heartbeat, [renewed], LEASE, after(30))
        assert list(beat) == [Renewal.RENEWED]
        assert without_waiting(store.alias, end, store, ended) is JobState.SUCCEEDED
        assert ids_of(without_waiting(store.alias, claim, store)) == [due]
        swept = without_waiting(
            store.alias, store.expire_leases, None, lambda lapsed: Failed("lost"), 1, after(60)
        )
        assert swept == 1
    assert state_of(store, child) is JobState.AWAITING_PARENT
    assert store.release_waiting(10, START, [child]) == 1
    assert state_of(store, child) is JobState.CANCELLED


@ON_POSTGRES
@pytest.mark.parametrize("first", [True, False], ids=["first", "again"])
def test_0_7_an_operators_open_transaction_keeps_no_claim_waiting(name, first, make_store):
    """Until it commits, claims go by what was set before."""
    store = make_store(name)
    stored(store)
    if not first:
        store.set_concurrency_limit(QUEUE, 5, None, START)
        store.pause_queue("other", None, START)
    with transaction.atomic(using=store.alias):
        store.set_concurrency_limit(QUEUE, 1, None, START)
        store.pause_queue(QUEUE, None, START)
        store.resume_queue("other", None, START)
        answer = without_waiting(store.alias, claim, store, QUEUE, "other")
    assert len(answer.jobs) == 1


@ON_POSTGRES
def test_0_7_an_exchange_claims_less_by_what_is_busy(name, make_store):
    """A busy outcome keeps its slot (4.8)."""
    store = make_store(name)
    held, free = running(store), running(store)
    waiting = [stored(store), stored(store)]
    outcomes = [Outcome(held, Succeeded()), Outcome(free, Succeeded())]
    with open_transaction(store, _cancels, held.job_id):
        reports, claimed = without_waiting(
            store.alias, store.exchange, WORKER, outcomes, request(QUEUE, max_jobs=2), START
        )
    assert [report.verdict for report in reports] == [Verdict.BUSY, Verdict.APPLIED]
    assert ids_of(claimed) == waiting[:1]


class LockedForAMoment:
    """Lets another transaction lock a row around the n-th locking read of a connection.

    A claim does so to rows that were due when it began and are leased by now: PostgreSQL
    locks the newest version first, and finds only then that it does not match any more.
    """

    def __init__(self, store, job_id, nth):
        self._store, self._job_id, self._left = store, job_id, nth
        self.has_locked = False

    def __call__(self, execute, sql, params, many, context):
        if sql.startswith("SELECT") and "FOR NO KEY UPDATE" in sql:
            self._left -= 1
            if self._left == 0:
                return self._around(lambda: execute(sql, params, many, context))
        return execute(sql, params, many, context)

    def _around(self, read):
        locked, done = threading.Event(), threading.Event()

        def hold():
            with open_transaction(self._store, _locks, self._job_id):
                locked.set()
                done.wait(PATIENCE_SECONDS)

        with elsewhere() as start:
            holding = start(hold)
            assert locked.wait(PATIENCE_SECONDS)
            answer = read()
            done.set()
            holding.result(PATIENCE_SECONDS)
        self.has_locked = True
        return answer


@ON_POSTGRES
@pytest.mark.parametrize("result", [Succeeded(), Failed("boom")], ids=["success", "failure"])
def test_6_3_an_end_whose_row_is_locked_for_a_moment_loses_no_child(name, result, make_store):
    """It is BUSY as a whole or applies as a whole; never does it end without its children."""
    store = make_store(name)
    parent = running(store)
    child = stored(store, parents=(parent.job_id,), queue="children")
    # The portable path makes one such read before it knows that there are children.
    moment = LockedForAMoment(store, parent.job_id, nth=2 if "portable" in name else 1)
    with connections[store.alias].execute_wrapper(moment):
        answer = report_one(store, parent, result)
    assert moment.has_locked
    if answer.verdict is Verdict.BUSY:
        assert state_of(store, parent.job_id) is JobState.LEASED
        assert state_of(store, child) is JobState.AWAITING_PARENT
        end(store, parent, result)
    assert state_of(store, parent.job_id).is_terminal
    assert state_of(store, child) is not JobState.AWAITING_PARENT


@ON_POSTGRES
def test_3_2_claimers_pass_each_others_rows_by(name, make_store):
    """A claim whose transaction is still open makes no other wait, nor does it share a job."""
    store = make_store(name)
    ids = [stored(store) for _ in range(6)]
    with transaction.atomic(using=store.alias):
        assert ids_of(claim(store, max_jobs=2)) == ids[:2]
        assert ids_of(without_waiting(store.alias, claim, store, QUEUE)) == ids[2:]


@ON_POSTGRES
def test_3_5_due_rows_that_another_claimer_has_locked_are_no_due_work(name, make_store):
    """The advice does not send an idle pump round in circles."""
    store = make_store(name)
    stored(store)
    stored(store, due_time=after(40))
    with transaction.atomic(using=store.alias):
        assert len(claim(store).jobs) == 1
        answer = without_waiting(store.alias, claim, store)
    assert (list(answer.jobs), answer.next_due) == ([], after(40))


@ON_POSTGRES
def test_3_5_due_rows_that_are_locked_are_not_held_back_by_a_limit(name, make_store):
    """The limit has room; what keeps the job away is somebody's open transaction."""
    store = make_store(name)
    store.set_concurrency_limit(QUEUE, 5, None, START)
    held = stored(store)
    stored(store, due_time=after(40))
    with open_transaction(store, _locks, held):
        answer = without_waiting(store.alias, claim, store)
    assert (list(answer.jobs), answer.next_due) == ([], after(40))


@ON_POSTGRES
@pytest.mark.parametrize("result", [Succeeded(), Failed("boom")], ids=["success", "failure"])
@pytest.mark.parametrize("mode", DependencyMode)
def test_2_4_a_parent_that_ends_while_its_child_is_open_is_found_out(
    name, result, mode, make_store
):
    """The end does not see the child; the client's second look or the sweep moves it on."""
    store = make_store(name)
    for named in (True, False):
        parent = running(store)
        child = new_job(parents=(parent.job_id,), mode=mode, queue="children")
        with transaction.atomic(using=store.alias):
            assert store.enqueue(child, START).status is EnqueueStatus.OK
            without_waiting(store.alias, end, store, parent, result)
        assert state_of(store, child.job_id) is JobState.AWAITING_PARENT
        assert store.release_waiting(10, after(3), [child.job_id] if named else None) == 1
        failed = isinstance(result, Failed) and mode is DependencyMode.ON_SUCCESS
        ended = JobState.CANCELLED if failed else JobState.SCHEDULED
        assert steps_of(store, child.job_id) == [JobState.AWAITING_PARENT, ended]
        assert store.release_waiting(10, after(3)) == 0


@ON_DATABASES
def test_6_1_no_open_edge_leads_into_a_job_that_was_cancelled(name, make_store):
    """The parents that are left end without having to look at it again."""
    store = make_store(name)
    failing, live = running(store), running(store)
    child = stored(store, parents=(failing.job_id, live.job_id))
    stored(store, parents=(child, live.job_id))
    end(store, failing, Failed("boom"))
    store.cancel(stored(store, parents=(live.job_id,)), None, START)
    assert not Dependency.objects.using(store.alias).filter(open=True).exists()


def _unseen_end(store, state=JobState.SUCCEEDED):
    """Give a waiting job whose parent has ended without its knowing."""
    parent = running(store)
    child = stored(store, parents=(parent.job_id,), queue="children")
    Job.objects.using(store.alias).filter(job_id=parent.job_id).update(
        state=state, lease_owner=None, lease_expires_at=None, terminal_at=START,
        terminal_cause=None if state is JobState.SUCCEEDED else "boom",
    )  # fmt: skip
    return child


@ON_DATABASES
def test_6_4_the_sweep_moves_on_what_waits_for_nobody(name, make_store):
    """Released or cancelled as the parent's end says, with all that follows."""
    store = make_store(name)
    released, cancelled = _unseen_end(store), _unseen_end(store, JobState.DEAD_LETTERED)
    below = stored(store, parents=(cancelled,), queue="children")
    assert store.release_waiting(10, after(3)) == 3
    assert state_of(store, released) is JobState.SCHEDULED
    assert state_of(store, cancelled) is JobState.CANCELLED
    assert state_of(store, below) is JobState.CANCELLED
    assert not Dependency.objects.using(store.alias).filter(open=True).exists()


@ON_DATABASES
def test_6_4_the_sweep_looks_only_at_the_jobs_that_are_named(name, make_store):
    """A client's second look costs nothing for the jobs of others."""
    store = make_store(name)
    mine, other = _unseen_end(store), _unseen_end(store)
    assert store.release_waiting(10, START, [mine]) == 1
    assert [state_of(store, job_id) for job_id in (mine, other)] == [
        JobState.SCHEDULED,
        JobState.AWAITING_PARENT,
    ]


@ON_DATABASES
def test_6_4_the_sweep_is_bounded(name, make_store):
    """It moves on so many at a time, and the next one goes on from there."""
    store = make_store(name)
    for _ in range(5):
        _unseen_end(store)
    assert [store.release_waiting(2, START) for _ in range(4)] == [2, 2, 1, 0]


@ON_POSTGRES
def test_6_4_the_sweep_leaves_held_jobs_for_the_next_time(name, make_store):
    """It waits for nobody, and takes the others."""
    store = make_store(name)
    held, free = _unseen_end(store), _unseen_end(store)
    with open_transaction(store, _locks, held):
        assert without_waiting(store.alias, store.release_waiting, 10, START) == 1
        assert state_of(store, free) is JobState.SCHEDULED
    assert store.release_waiting(10, START) == 1
    assert state_of(store, held) is JobState.SCHEDULED
