"""Rule 0.2 by force: each statement of each operation fails in turn, and nothing changes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import pytest
from django.db import OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from backwave_django.core.events import Verdict
from backwave_django.core.outcomes import Failed, Lease, Outcome, Released, Succeeded
from backwave_django.core.states import TERMINAL_STATES, JobState
from backwave_django.core.tags import Tag
from backwave_django.models import Job
from backwave_django.storage.errors import StoreError
from backwave_django.storage.orm.store import DjangoStore
from backwave_django.storage.values import (
    CancelResult,
    DependencyMode,
    EnqueueResult,
    EnqueueStatus,
    JobFilter,
    Mint,
    MintDecision,
    ScheduleDefinition,
)
from backwave_django.testing.conformance.scenario import (
    LEASE,
    QUEUE,
    START,
    WORKER,
    after,
    end,
    give_up,
    new_id,
    new_job,
    request,
    running,
    state_of,
    stored,
    view,
)

from .conftest import DATABASE_STORES
from .databases import Failing, rows_of_all_tables

Operation = Callable[[], Any]
MOST_STATEMENTS = 200
TAGS = (Tag(None, "new"), Tag("k", "v"))


def _family(store: DjangoStore) -> Lease:
    """Give a running parent with a child to release, one to cancel and a grandchild."""
    lease = running(store, tags=(Tag(None, "old"),))
    child = stored(store, parents=(lease.job_id,), queue="children")
    stored(store, parents=(lease.job_id,), queue="children", mode=DependencyMode.ON_ANY_TERMINAL)
    stored(store, parents=(child,), queue="children")
    return lease


def _enqueue(store: DjangoStore) -> Operation:
    job = new_job(tags=TAGS)
    return lambda: store.enqueue(job, START)


def _enqueue_child(store: DjangoStore) -> Operation:
    job = new_job(tags=TAGS, parents=(running(store).job_id, stored(store)))
    return lambda: store.enqueue(job, START)


def _enqueue_batch(store: DjangoStore) -> Operation:
    taken = stored(store)
    jobs = [new_job(tags=TAGS), new_job(job_id=taken), new_job(parents=(taken,))]
    jobs.append(new_job(parents=(jobs[0].job_id,)))
    return lambda: store.enqueue_many(jobs, START)


def _enqueue_long_batch(store: DjangoStore) -> Operation:
    jobs = [new_job() for _ in range(501)]
    return lambda: store.enqueue_many(jobs, START)


def _claim(store: DjangoStore) -> Operation:
    for _ in range(3):
        stored(store, tags=TAGS)
    return lambda: store.claim(WORKER, request(QUEUE, "other"), START)


def _claim_by_shares_under_a_limit(store: DjangoStore) -> Operation:
    for queue in (QUEUE, QUEUE, "other"):
        stored(store, queue=queue)
    store.set_concurrency_limit(QUEUE, 2, None, START)
    return lambda: store.claim(WORKER, request((QUEUE, 1), ("other", 1), max_jobs=3), START)


def _heartbeat(store: DjangoStore) -> Operation:
    leases = [running(store), running(store)]
    return lambda: store.heartbeat(leases, LEASE, after(1))


def _report(store: DjangoStore) -> Operation:
    leases = [running(store) for _ in range(4)]
    results = (
        Succeeded(b"out", TAGS),
        Failed("boom", "trace", after(9), TAGS),
        Failed("boom", "trace"),
        Released(started=False),
    )
    outcomes = [Outcome(lease, result) for lease, result in zip(leases, results, strict=True)]
    return lambda: store.report(outcomes, after(1))


def _report_of_a_success_with_children(store: DjangoStore) -> Operation:
    lease = _family(store)
    return lambda: store.report([Outcome(lease, Succeeded(b"out", TAGS))], after(1))


def _report_of_a_failure_with_children(store: DjangoStore) -> Operation:
    lease = _family(store)
    return lambda: store.report([Outcome(lease, Failed("boom", "trace", None, TAGS))], after(1))


def _expire(store: DjangoStore) -> Operation:
    _family(store)
    running(store)
    return lambda: store.expire_leases(None, give_up, 10, after(99))


def _release_waiting(store: DjangoStore) -> Operation:
    lease = _family(store)
    # As if the parent had ended in another transaction while the children were enqueued.
    Job.objects.using(store.alias).filter(job_id=lease.job_id).update(
        state=JobState.DEAD_LETTERED, lease_owner=None, lease_expires_at=None,
        terminal_at=START, terminal_cause="boom",
    )  # fmt: skip
    return lambda: store.release_waiting(10, after(1))


def _cancel(store: DjangoStore) -> Operation:
    top = stored(store)
    child = stored(store, parents=(top,))
    stored(store, parents=(child,), mode=DependencyMode.ON_ANY_TERMINAL)
    return lambda: store.cancel(top, "anna", after(1))


def _cancel_running(store: DjangoStore) -> Operation:
    lease = running(store)
    return lambda: store.cancel(lease.job_id, "anna", after(1))


def _pause(store: DjangoStore) -> Operation:
    return lambda: store.pause_queue(QUEUE, None, START)


def _resume(store: DjangoStore) -> Operation:
    store.pause_queue(QUEUE, None, START)
    return lambda: store.resume_queue(QUEUE, None, START)


def _limit(store: DjangoStore) -> Operation:
    return lambda: store.set_concurrency_limit(QUEUE, 3, None, START)


def _requeue(store: DjangoStore) -> Operation:
    lease = running(store)
    end(store, lease, Failed("boom"))
    return lambda: store.requeue(lease.job_id, "anna", after(1))


def _reschedule(store: DjangoStore) -> Operation:
    job_id = stored(store)
    return lambda: store.reschedule(job_id, after(9), "anna", after(1))


def _cancel_many(store: DjangoStore) -> Operation:
    _family(store)
    _cancel(store)
    return lambda: store.cancel_many(JobFilter(), "anna", after(1))


def _requeue_many(store: DjangoStore) -> Operation:
    for lease in [running(store) for _ in range(2)]:
        end(store, lease, Failed("boom"))
    return lambda: store.requeue_many(JobFilter(), "anna", after(1))


def _purge(store: DjangoStore) -> Operation:
    workflow = new_id()
    for changes in ({}, {"workflow_id": workflow}, {"workflow_id": workflow, "queue": "other"}):
        end(store, running(store, tags=TAGS, **changes), Succeeded(b"out"))
    parent = running(store)
    child = stored(store, parents=(parent.job_id,))
    end(store, parent, Failed("boom"))
    assert state_of(store, child) is JobState.CANCELLED
    before = dict.fromkeys(TERMINAL_STATES, after(9))
    return lambda: store.purge(before, 10, after(9))


DEFINITION = ScheduleDefinition("nightly", "0 0 0 * * *", "w", b"{}", QUEUE, no_overlap=True)


def _define(store: DjangoStore) -> Operation:
    return lambda: store.upsert_schedule(DEFINITION, START)


def _redefine(store: DjangoStore) -> Operation:
    store.upsert_schedule(DEFINITION, START)
    return lambda: store.upsert_schedule(replace(DEFINITION, cron="0 1 0 * * *"), after(1))


def _remove_schedule(store: DjangoStore) -> Operation:
    _mint(store)()
    return lambda: store.remove_schedule("nightly")


def _mint(store: DjangoStore) -> Operation:
    store.upsert_schedule(DEFINITION, START)
    store.upsert_schedule(replace(DEFINITION, schedule_id="other", tags=TAGS), START)
    ticks = (Mint(after(1), new_id()), Mint(after(2), new_id()))
    decision = MintDecision("nightly", START, after(3), ticks, (after(3),))
    decisions = [decision, decision._replace(schedule_id="other", mints=())]
    return lambda: store.mint_due(decisions, after(3))


def _trigger(store: DjangoStore) -> Operation:
    store.upsert_schedule(DEFINITION, START)
    job_id = new_id()
    return lambda: store.trigger_schedule_now("nightly", job_id, "anna", after(1))


FOR_CALLERS = [
    _enqueue, _enqueue_child, _enqueue_batch, _cancel, _cancel_running, _pause, _resume, _limit,
    _requeue, _reschedule, _cancel_many, _requeue_many, _define, _redefine, _remove_schedule,
    _trigger,
]  # fmt: skip
FOR_PUMPS = [
    _claim, _claim_by_shares_under_a_limit, _heartbeat, _report,
    _report_of_a_success_with_children, _report_of_a_failure_with_children, _expire,
    _release_waiting, _purge, _mint,
]  # fmt: skip


def _fail_in_turn(store: DjangoStore, operation: Operation, *, after: bool, inside: bool) -> int:
    """Let each statement fail until none is left; give how many there were."""
    connection = connections[store.alias]
    before = rows_of_all_tables(store.alias)
    # In a caller's transaction the database's own error passes unchanged.
    expected = OperationalError if inside else StoreError
    for nth in range(1, MOST_STATEMENTS):
        failing = Failing(connection, nth, after=after)
        with transaction.atomic(using=store.alias) if inside else nullcontext():
            try:
                with failing.installed():
                    operation()
            except expected:
                assert failing.has_failed
            else:
                assert not failing.has_failed, f"the failure of statement {nth} was swallowed"
                return nth - 1
        assert not connection.in_atomic_block
        assert rows_of_all_tables(store.alias) == before, f"statement {nth} left something"
    raise AssertionError(f"more than {MOST_STATEMENTS} statements")


@pytest.mark.parametrize("prepare", FOR_CALLERS + FOR_PUMPS)
@pytest.mark.parametrize("name", DATABASE_STORES)
def test_0_2_an_operation_that_fails_at_any_statement_changes_nothing(name, prepare, make_store):
    """All of its effects or none, whichever statement fails, also once it has done its work."""
    store = make_store(name)
    operation = prepare(store)
    before = rows_of_all_tables(store.alias)
    assert _fail_in_turn(store, operation, after=True, inside=False) >= 1
    assert rows_of_all_tables(store.alias) != before


@pytest.mark.parametrize("name", DATABASE_STORES)
def test_0_2_a_batch_of_several_statements_stands_or_falls_as_one(name, make_store):
    """Also one that is too long for a single statement."""
    store = make_store(name)
    assert _fail_in_turn(store, _enqueue_long_batch(store), after=False, inside=False) >= 2


@pytest.mark.parametrize("prepare", FOR_CALLERS)
@pytest.mark.parametrize("name", DATABASE_STORES)
def test_0_2_an_operation_that_fails_inside_a_callers_transaction_leaves_nothing_of_itself(
    name, prepare, make_store
):
    """The caller may go on and commit: nothing of the failed operation is in it."""
    store = make_store(name)
    operation = prepare(store)
    before = rows_of_all_tables(store.alias)
    assert _fail_in_turn(store, operation, after=False, inside=True) >= 1
    assert rows_of_all_tables(store.alias) != before


@contextmanager
def _answer_lost(connection: BaseDatabaseWrapper, nth: int) -> Iterator[None]:
    """Lose the connection after the n-th commit, before its answer comes."""
    commit, left = connection._commit, itertools.count(1)

    def commit_and_fail() -> None:
        commit()
        if next(left) == nth:
            raise OperationalError("the answer to the commit is lost")

    connection._commit = commit_and_fail
    try:
        yield
    finally:
        del connection._commit


@pytest.mark.parametrize(
    ("prepare", "repeated"),
    [
        (_enqueue_child, EnqueueResult(EnqueueStatus.DUPLICATE)),
        (_report_of_a_success_with_children, [(Verdict.STALE, None)]),
        (_report_of_a_failure_with_children, [(Verdict.STALE, None)]),
        (_cancel, CancelResult.NOT_CANCELLABLE),
        (_pause, False),
        (_limit, False),
        (_expire, 0),
    ],
)
@pytest.mark.parametrize("name", DATABASE_STORES)
def test_0_2_an_operation_whose_answer_is_lost_was_done_in_full(
    name, prepare, repeated, make_store
):
    """The caller cannot know; trying again says so and changes nothing."""
    store = make_store(name)
    operation = prepare(store)
    before = done = rows_of_all_tables(store.alias)
    for nth in range(1, 5):
        with _answer_lost(connections[store.alias], nth), pytest.raises(StoreError):
            operation()
        done = rows_of_all_tables(store.alias)
        if done != before:
            break  # before that there was nothing to commit yet
    assert done != before
    answer = operation()
    assert (list(answer) if isinstance(repeated, list) else answer) == repeated
    assert rows_of_all_tables(store.alias) == done
    assert store.release_waiting(10, after(99)) == 0


@pytest.mark.parametrize("name", DATABASE_STORES)
def test_0_2_an_exchange_that_fails_has_reported_in_full_or_not_at_all(name, make_store):
    """Its two halves may be two transactions, but neither half is ever half done."""
    store = make_store(name)
    connection = connections[store.alias]
    for nth in range(1, MOST_STATEMENTS):
        lease, waiting = _family(store), stored(store)
        outcome = Outcome(lease, Succeeded(b"out", TAGS))
        failing = Failing(connection, nth)
        try:
            with failing.installed():
                store.exchange(WORKER, [outcome], request(QUEUE), START)
        except StoreError:
            pass
        found = view(store, lease.job_id)
        parts = {
            found.snapshot.state is JobState.SUCCEEDED,
            found.output is not None,
            len(found.tags) == 3,
            len(found.history) == 3,
        }
        assert len(parts) == 1
        claimed = state_of(store, waiting) is JobState.LEASED
        assert len(store.job_history(waiting)) == 1 + claimed
        if not failing.has_failed:
            assert claimed
            assert parts == {True}
            return
        assert not claimed
        store.cancel(waiting, None, START)
    raise AssertionError(f"more than {MOST_STATEMENTS} statements")
