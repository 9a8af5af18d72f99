"""A round trip to PostgreSQL: whole or not at all, and nothing of it stays behind."""

from __future__ import annotations

import pytest
from django.db import connections, transaction

from backwave_django.core.outcomes import Outcome, Released, Succeeded
from backwave_django.core.states import JobState
from backwave_django.models import Job
from backwave_django.storage.dialects import postgresql_trip as trip
from backwave_django.storage.errors import StoreUnavailable
from backwave_django.testing.conformance.scenario import (
    LEASE,
    QUEUE,
    START,
    WORKER,
    after,
    claim,
    new_job,
    report_one,
    request,
    running,
    state_of,
    store_all,
    stored,
)

from .databases import Failing, rows_of_all_tables, there

ALIAS = "postgres"


@pytest.fixture
def store(make_store):
    """The store on PostgreSQL, with a connection that has prepared nothing yet."""
    connections[ALIAS].close()
    return make_store(ALIAS)


@pytest.fixture
def settings_of_alias(databases):
    """The settings of the alias, as they were again afterwards, on a new connection."""
    connection = connections[ALIAS]
    before = {**connection.settings_dict, "OPTIONS": {**connection.settings_dict["OPTIONS"]}}
    connection.close()
    yield connection.settings_dict
    connection.close()
    connection.settings_dict.clear()
    connection.settings_dict.update(before)


def _ask(sql):
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def _prepared():
    return [text for (text,) in _ask("SELECT statement FROM pg_prepared_statements")]


def _exchange(store):
    """Run a job and exchange its outcome for the next job; give the next one's lease."""
    store_all(store, [new_job(), new_job()])
    lease = claim(store, max_jobs=1).jobs[0].lease
    outcome = Outcome(lease, Succeeded())
    reports, claimed = store.exchange(WORKER, [outcome], request(QUEUE, max_jobs=1), START)
    assert reports[0].state is JobState.SUCCEEDED
    return claimed.jobs[0].lease


def test_the_hot_statements_are_prepared(store):
    """Twice the same exchange makes the server read its text once."""
    _exchange(store)
    first = _prepared()
    report_one(store, _exchange(store), Succeeded())
    assert any("FOR NO KEY UPDATE" in text for text in first)
    assert len(_prepared()) == len(set(_prepared()))


def test_nothing_is_prepared_behind_a_pooler(store, settings_of_alias):
    """The setting by which a project says so is heeded."""
    settings_of_alias["DISABLE_SERVER_SIDE_CURSORS"] = True
    _exchange(store)
    assert _prepared() == []


@pytest.mark.parametrize("lost", ["gone", "taken"])
def test_a_lost_statement_costs_nothing_but_another_trip(store, lost):
    """What a transaction pooler does to a project that did not say that it has one."""
    _exchange(store)
    raw = connections[ALIAS].connection
    # Behind the driver's back, as if the next transaction met another session.
    if lost == "gone":
        raw.pgconn.exec_(b"DEALLOCATE ALL")
    else:
        raw._prepared.clear()
        raw._prepared._prepared_idx = 0
    report_one(store, _exchange(store), Succeeded())
    states = [job.state for job in Job.objects.using(ALIAS).order_by("sequence")]
    assert states.count(JobState.SUCCEEDED) == 3
    if lost == "gone":
        assert _prepared() == []


def test_nothing_of_a_trip_stays_in_the_session(store):
    """The settings of the transaction end with it."""
    before = _ask("SHOW lock_timeout") + _ask("SHOW plan_cache_mode") + _ask("SHOW jit")
    _exchange(store)
    assert before == _ask("SHOW lock_timeout") + _ask("SHOW plan_cache_mode") + _ask("SHOW jit")
    assert not _ask("SELECT current_setting('backwave.settled', true)")[0][0]
    raw = connections[ALIAS].connection
    assert raw.info.transaction_status == 0
    assert raw.prepare_threshold is None


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_trip_reads_what_was_committed(store, settings_of_alias, level):
    """Whatever isolation the alias has by default."""
    escaped = level.replace(" ", "\\ ")
    settings_of_alias["OPTIONS"]["options"] = f"-c default_transaction_isolation={escaped}"
    assert _ask("SHOW transaction_isolation") == [(level,)]
    statement = trip.Statement("SELECT current_setting('transaction_isolation')")
    seen = trip.send(connections[ALIAS], [statement, statement], prepare=False)
    assert seen == [[("read committed",)], [("read committed",)]]


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_trip_that_fails_leaves_nothing_behind(store, nth):
    """Each statement of an exchange in turn; the store works at once afterwards."""
    store_all(store, [new_job(), new_job()])
    lease = claim(store, max_jobs=1).jobs[0].lease
    outcome = Outcome(lease, Succeeded(b"out"))
    wanted = request(QUEUE, max_jobs=1)
    before = rows_of_all_tables(ALIAS)
    connection = connections[ALIAS]
    failing = Failing(connection, nth)
    with connection.execute_wrapper(failing), pytest.raises(StoreUnavailable):
        store.exchange(WORKER, [outcome], wanted, START)
    assert failing.has_failed
    assert there(rows_of_all_tables, ALIAS) == before
    reports, claimed = store.exchange(WORKER, [outcome], wanted, START)
    assert (reports[0].state, len(claimed.jobs)) == (JobState.SUCCEEDED, 1)


def test_a_statement_that_the_server_refuses_is_told(store):
    """The first error of a trip is the one that is raised."""
    bad = trip.Statement("SELECT 1 / %s::int", [0])
    with pytest.raises(Exception, match="division by zero"):
        trip.send(connections[ALIAS], [bad, trip.Statement("SELECT 2")], prepare=True)
    assert connections[ALIAS].connection.info.transaction_status == 0
    (rows,) = trip.send(connections[ALIAS], [trip.Statement("SELECT 2")], prepare=True)
    assert rows == [(2,)]


@pytest.mark.parametrize("operation", ["claim", "heartbeat", "report"])
def test_a065_a_locked_table_is_not_waited_for_without_end(store, monkeypatch, operation):
    """River issue 1059: statements that pile up on a lock take every connection."""
    monkeypatch.setattr(trip, "SETTINGS", trip.SETTINGS.replace(trip.LOCK_TIMEOUT, "50ms"))
    lease = running(store)
    operations = {
        "claim": lambda: claim(store),
        "heartbeat": lambda: store.heartbeat([lease], LEASE, after(1)),
        "report": lambda: report_one(store, lease, Succeeded()),
    }

    def under_lock():
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            operations[operation]()

    table = connections[ALIAS].ops.quote_name(Job._meta.db_table)
    with transaction.atomic(using=ALIAS):
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        there(under_lock)
    operations[operation]()


def test_a_trip_goes_step_by_step_where_no_pipeline_is(store, monkeypatch):
    """With a driver, or a client library, that has none."""
    monkeypatch.setattr(trip.psycopg.Pipeline, "is_supported", lambda: False)
    report_one(store, _exchange(store), Released(started=False))
    assert claim(store).jobs
    assert store.heartbeat([running(store)], LEASE, after(1))
    job_id = stored(store)
    assert state_of(store, job_id) is JobState.SCHEDULED
    assert _ask("SHOW lock_timeout") == [("0",)]


def test_a_trip_is_seen_by_what_wraps_executions(store):
    """A project's own tracing sees the statements as it sees Django's."""
    seen = []

    def wrapper(execute, sql, params, many, context):
        seen.append(sql)
        return execute(sql, params, many, context)

    with connections[ALIAS].execute_wrapper(wrapper):
        claim(store)
    assert seen[0].startswith("BEGIN")
    assert seen[-1] == "COMMIT"
    assert any("SKIP LOCKED" in sql for sql in seen)
