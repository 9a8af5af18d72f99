"""Rules 0.3, 0.4 and 2.3: what happens inside and beside an application's transaction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import OperationalError, connections, transaction

from backwave_django.core.outcomes import Succeeded
from backwave_django.core.states import JobState
from backwave_django.core.tags import Tag
from backwave_django.storage.dialects.base import Dialect
from backwave_django.storage.errors import StoreRejected, StoreUnavailable
from backwave_django.storage.orm.store import DjangoStore
from backwave_django.storage.values import CancelResult, EnqueueStatus, JobFilter
from backwave_django.testing.conformance.scenario import (
    QUEUE,
    START,
    after,
    claim,
    claimed_job,
    end,
    ids_of,
    new_job,
    running,
    snapshot,
    state_of,
    stored,
    whole,
)

from .conftest import DATABASE_STORES, POSTGRES_STORES
from .databases import (
    PATIENCE_SECONDS,
    Failing,
    Statements,
    elsewhere,
    rows_of_all_tables,
    still_waits,
    there,
)

ON_DATABASES = pytest.mark.parametrize("name", DATABASE_STORES)
ON_POSTGRES = pytest.mark.parametrize("name", POSTGRES_STORES)


class Abandoned(Exception):
    """The application changes its mind."""


@ON_DATABASES
def test_2_3_a_job_of_a_transaction_that_is_rolled_back_never_existed(name, make_store):
    """Not visible, not claimable, no log, no tags, no edges, and its id is free."""
    store = make_store(name)
    parent, job = stored(store, queue="parents"), new_job(tags=(Tag(None, "t"),))
    before = rows_of_all_tables(store.alias)
    with pytest.raises(Abandoned), transaction.atomic(using=store.alias):
        child = new_job(parents=(parent,))
        assert {r.status for r in store.enqueue_many([job, child], START)} == {EnqueueStatus.OK}
        assert state_of(store, job.job_id) is JobState.SCHEDULED
        raise Abandoned
    assert rows_of_all_tables(store.alias) == before
    assert not claim(store).jobs
    assert store.enqueue(job, START).status is EnqueueStatus.OK


@ON_DATABASES
def test_2_3_a_rollback_to_a_savepoint_takes_only_what_came_after_it(name, make_store):
    """The job before the savepoint stays, the one after it never existed."""
    store = make_store(name)
    first, second = new_job(), new_job()
    with transaction.atomic(using=store.alias):
        store.enqueue(first, START)
        with pytest.raises(Abandoned), transaction.atomic(using=store.alias):
            store.enqueue(second, START)
            raise Abandoned
    assert [found.snapshot.job_id for found in whole(store)] == [first.job_id]
    assert ids_of(claim(store)) == [first.job_id]


@ON_DATABASES
def test_2_3_a_job_is_seen_by_others_only_after_the_commit(name, make_store):
    """Before it nobody else knows of the job, after it anyone can claim it."""
    store = make_store(name)
    job = new_job()
    with transaction.atomic(using=store.alias):
        store.enqueue(job, START)
        assert there(store.get_job, job.job_id) is None
        assert there(store.list_jobs, JobFilter()) == []
        if store.capabilities.skips_locked_rows:
            assert not there(claim, store).jobs
    assert ids_of(there(claim, store)) == [job.job_id]


@ON_DATABASES
def test_0_4_an_operators_action_joins_the_callers_transaction(name, make_store):
    """Cancel, pause, resume and limit are undone with it."""
    store = make_store(name)
    lease, due = running(store), stored(store, queue="due")
    stored(store, parents=(due,))
    store.pause_queue("paused", None, START)
    before = rows_of_all_tables(store.alias)
    with pytest.raises(Abandoned), transaction.atomic(using=store.alias):
        assert store.cancel(lease.job_id, None, START) is CancelResult.CANCELLATION_REQUESTED
        assert store.cancel(due, None, START) is CancelResult.CANCELLED_IMMEDIATELY
        assert store.pause_queue("due", None, START)
        assert store.resume_queue("paused", None, START)
        assert store.set_concurrency_limit("due", 1, None, START)
        assert state_of(store, due) is JobState.CANCELLED
        raise Abandoned
    assert rows_of_all_tables(store.alias) == before


@ON_DATABASES
def test_0_4_every_operation_can_be_called_inside_a_transaction(name, make_store):
    """Also those that a pump calls: they join it, and commit with it."""
    store = make_store(name)
    with transaction.atomic(using=store.alias):
        job_id = stored(store)
        assert end(store, claimed_job(store, job_id).lease) is JobState.SUCCEEDED
        assert there(store.get_job, job_id) is None
    assert there(state_of, store, job_id) is JobState.SUCCEEDED


@ON_DATABASES
def test_0_3_a_duplicate_leaves_the_callers_transaction_usable(name, make_store):
    """The caller learns of it and goes on; all that it wrote is committed."""
    store = make_store(name)
    taken, before, later = stored(store), new_job(), new_job()
    with transaction.atomic(using=store.alias):
        store.enqueue(before, START)
        duplicate = store.enqueue(new_job(job_id=taken), START)
        assert duplicate.status is EnqueueStatus.DUPLICATE
        batch = store.enqueue_many([new_job(job_id=taken), later], START)
        assert [r.status for r in batch] == [EnqueueStatus.DUPLICATE, EnqueueStatus.OK]
    ids = [found.snapshot.job_id for found in whole(store)]
    assert ids == [taken, before.job_id, later.job_id]


@ON_DATABASES
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "rollback"])
def test_0_3_the_second_of_two_open_transactions_with_one_id_waits(name, commits, make_store):
    """It learns what became of the first: a duplicate if that commits, its own job if not."""
    store = make_store(name)
    job = new_job()

    def enqueue_too() -> EnqueueStatus:
        with transaction.atomic(using=store.alias):
            return store.enqueue(job, START).status

    with elsewhere() as start:
        try:
            with transaction.atomic(using=store.alias):
                assert store.enqueue(job, START).status is EnqueueStatus.OK
                second = start(enqueue_too)
                assert still_waits(second)
                if not commits:
                    raise Abandoned
        except Abandoned:
            pass
        answer = second.result(PATIENCE_SECONDS)
    assert answer is (EnqueueStatus.DUPLICATE if commits else EnqueueStatus.OK)
    assert len(whole(store)) == 1


@ON_DATABASES
def test_0_3_a_database_error_reaches_the_callers_transaction_unchanged(name, make_store):
    """Whether to try the whole transaction again is the caller's to decide."""
    store = make_store(name)
    failing = Failing(connections[store.alias], 2)  # the first one opens the transaction
    with (
        pytest.raises(OperationalError, match="on purpose"),
        transaction.atomic(using=store.alias),
    ):
        stored(store)
        with failing.installed():
            store.enqueue(new_job(), START)
            store.enqueue(new_job(), START)
    assert whole(store) == []


@ON_POSTGRES
def test_0_3_outside_of_a_transaction_a_fault_is_told_by_its_kind(name, make_store):
    """A fault that passes is StoreUnavailable, one that stays is StoreRejected."""
    store = make_store(name)
    connection = connections[store.alias]
    with pytest.raises(StoreUnavailable), Failing(connection, 1).installed():
        store.enqueue(new_job(), START)
    with connection.cursor() as cursor:
        cursor.execute("SET search_path = nowhere")
    try:
        with pytest.raises(StoreRejected) as caught:
            store.enqueue(new_job(), START)
        assert caught.value.__cause__ is not None
    finally:
        connection.close()
    assert store.enqueue(new_job(), START).status is EnqueueStatus.OK


@ON_POSTGRES
def test_0_3_a_lost_connection_is_replaced_by_the_next_call(name, make_store):
    """The call that meets it fails for a while only."""
    store = make_store(name)
    with connections[store.alias].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()

    def terminate() -> None:
        with connections[store.alias].cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    there(terminate)
    with pytest.raises(StoreUnavailable):
        store.enqueue(new_job(), START)
    assert store.enqueue(new_job(), START).status is EnqueueStatus.OK


@pytest.fixture(params=["READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE"])
def isolated_alias(request: pytest.FixtureRequest, databases: None) -> Iterator[str]:
    """An alias of the PostgreSQL database that asks for another isolation level."""
    from django.db.backends.postgresql.psycopg_any import IsolationLevel

    alias = f"postgres_{request.param.lower()}"
    ours = connections["postgres"].settings_dict
    level = IsolationLevel[request.param]
    connections.settings[alias] = {**ours, "OPTIONS": {**ours["OPTIONS"], "isolation_level": level}}
    yield alias
    connections[alias].close()
    del connections[alias]
    del connections.settings[alias]


@pytest.mark.parametrize("portable", [False, True], ids=["postgres", "postgres-portable"])
def test_0_3_every_isolation_level_of_an_alias_is_served(portable, isolated_alias, make_store):
    """Enqueue inside and outside of a transaction, then a whole life."""
    make_store("postgres")
    store = DjangoStore(isolated_alias, dialect=Dialect(isolated_alias) if portable else None)
    taken = stored(store, queue="taken")
    with transaction.atomic(using=isolated_alias):
        parent = stored(store)
        child = stored(store, parents=(parent,))
        assert store.enqueue(new_job(job_id=taken), START).status is EnqueueStatus.DUPLICATE
    store.set_concurrency_limit(QUEUE, 1, None, START)
    lease = claimed_job(store, parent).lease
    stored(store)
    assert not claim(store).jobs
    assert store.cancel(taken, None, START) is CancelResult.CANCELLED_IMMEDIATELY
    end(store, lease, Succeeded(b"out"))
    assert state_of(store, child) is JobState.SCHEDULED


@pytest.mark.parametrize("portable", [False, True], ids=["postgres", "postgres-portable"])
def test_0_3_a_limit_is_counted_right_at_every_isolation_level(
    portable, isolated_alias, make_store
):
    """The store's own transactions are READ COMMITTED, so a claim that waited sees the others."""
    first = make_store("postgres-portable" if portable else "postgres")
    second = DjangoStore(isolated_alias, dialect=Dialect(isolated_alias) if portable else None)
    first.set_concurrency_limit(QUEUE, 3, None, START)
    for _ in range(9):
        stored(first)
    with elsewhere() as start:
        with transaction.atomic(using=first.alias):
            assert len(claim(first, max_jobs=2).jobs) == 2
            waiting = start(claim, second)
            assert still_waits(waiting)
        try:
            claimed = waiting.result(PATIENCE_SECONDS)
        except StoreUnavailable:
            # The portable dialect cannot ask for a level: it says that the fault passes.
            assert portable
            claimed = claim(second)
        assert len(claimed.jobs) == 1


@ON_POSTGRES
def test_3_4_a_claim_that_waited_for_its_turn_counts_what_was_leased_meanwhile(name, make_store):
    """A limit counts leases that were made while the claim waited for its turn."""
    store = make_store(name)
    store.set_concurrency_limit(QUEUE, 3, None, START)
    for _ in range(9):
        stored(store)
    with elsewhere() as start:
        with transaction.atomic(using=store.alias):
            assert len(claim(store, max_jobs=2).jobs) == 2
            second = start(claim, store)
            assert still_waits(second)
        assert len(second.result(PATIENCE_SECONDS).jobs) == 1


@ON_DATABASES
@pytest.mark.parametrize("result", ["limit", "pause"])
def test_3_3_a_setting_made_by_one_node_binds_the_next_claim_of_another(name, result, make_store):
    """No node remembers that a queue had no settings."""
    node = make_store(name)
    operator = DjangoStore(node.alias)
    for _ in range(4):
        stored(node)
    assert len(claim(node, max_jobs=1).jobs) == 1
    if result == "limit":
        operator.set_concurrency_limit(QUEUE, 2, None, START)
        assert len(claim(node).jobs) == 1
        operator.set_concurrency_limit(QUEUE, None, None, START)
    else:
        operator.pause_queue(QUEUE, None, START)
        assert not claim(node).jobs
        operator.resume_queue(QUEUE, None, START)
    assert claim(node).jobs
    assert snapshot(node, stored(node, due_time=after(9))).state is JobState.SCHEDULED


@pytest.fixture
def deferred_alias(databases: None) -> Iterator[str]:
    """An alias of the SQLite file whose transactions begin without the write lock."""
    ours = connections["default"].settings_dict
    options = {k: v for k, v in ours["OPTIONS"].items() if k != "transaction_mode"}
    connections.settings["deferred"] = {**ours, "OPTIONS": options}
    yield "deferred"
    connections["deferred"].close()
    del connections["deferred"]
    del connections.settings["deferred"]


def test_0_3_a_write_on_sqlite_begins_with_the_lock_whatever_the_alias_says(
    deferred_alias, make_store
):
    """A transaction that asks for the lock halfway can fail at once, and waits for nobody."""
    make_store("sqlite")
    store = DjangoStore(deferred_alias)
    stored(store)
    with Statements(connections[deferred_alias]).collected() as seen:
        lease = claim(store).jobs[0].lease
        end(store, lease)
    begins = [sql for sql, _ in seen if sql.startswith("BEGIN")]
    assert begins == ["BEGIN IMMEDIATE"] * 2
    with transaction.atomic(using=deferred_alias), connections[deferred_alias].cursor() as cursor:
        # What the store needs for itself is no setting for the application's transactions.
        cursor.execute("SELECT 1")
        assert there(stored, DjangoStore("default"))
