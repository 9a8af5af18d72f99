"""Two transactions at once: keys that wait, deadlocks, isolation levels, a database away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError, connections, transaction

from backwave_django import (
    DuplicateJob,
    JobState,
    StoreUnavailable,
    enqueue_many,
    monitor,
    operations,
)
from backwave_django.models import Job
from tests.support.processes import wait_until
from tests.testapp.jobs import nothing
from tests.testapp.models import Effect

from .conftest import clock, finish, in_thread, row, store


def locks_awaited(alias: str) -> int:
    """Count the sessions of PostgreSQL that wait for a lock."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


class Elsewhere:
    """A transaction in another thread that stays open until it is told how to end."""

    def __init__(self, alias: str, work: Callable[[], Any]) -> None:
        self._told = threading.Event()
        self._done = threading.Event()
        self._commit = True
        self.given: Any = None

        def run() -> None:
            try:
                with transaction.atomic(using=alias):
                    self.given = work()
                    self._done.set()
                    assert self._told.wait(30)
                    transaction.set_rollback(not self._commit, using=alias)
            finally:
                self._done.set()

        self._ending: Future[None] = in_thread(run)
        assert self._done.wait(30)

    def end(self, *, commit: bool) -> None:
        """Commit or roll back."""
        self._commit = commit
        self._told.set()
        self._ending.result(30)


# --- Idempotency keys ------------------------------------------------------------------


@pytest.mark.parametrize("in_transaction", [True, False])
@pytest.mark.parametrize("commit", [True, False])
def test_the_second_of_one_key_waits_for_the_first(
    on_postgres: str, commit: bool, in_transaction: bool
) -> None:
    """It is a duplicate if the first commits; if that rolls back, it is stored itself."""
    first = Elsewhere(on_postgres, nothing.using(idempotency_key="k").enqueue)

    def enqueue_second() -> UUID:
        if not in_transaction:
            return nothing.using(idempotency_key="k").enqueue(x=2)
        with transaction.atomic(using=on_postgres):
            Effect.objects.using(on_postgres).create(key="second")
            try:
                return nothing.using(idempotency_key="k").enqueue(x=2)
            except DuplicateJob:
                Effect.objects.using(on_postgres).create(key="still usable")
                raise_after.append(True)
                return first.given  # type: ignore[no-any-return]

    raise_after: list[bool] = []
    second = in_thread(enqueue_second)
    wait_until(lambda: locks_awaited(on_postgres) == 1, message="the second waits")
    assert not second.done()
    first.end(commit=commit)
    if commit and not in_transaction:
        with pytest.raises(DuplicateJob) as caught:
            second.result(30)
        assert caught.value.job_id == first.given
    else:
        assert second.result(30) == first.given
        assert bool(raise_after) is commit
    assert store().job_payload(first.given) == (b"{}" if commit else b'{"x":2}')
    assert Job.objects.using(on_postgres).count() == 1


def test_keys_in_opposite_order_are_a_deadlock_for_the_caller(on_postgres: str) -> None:
    """The database ends one of the two, whose error comes unchanged: Django's own."""
    both_hold = threading.Barrier(2)

    def enqueue_both(one: str, other: str) -> str:
        try:
            with transaction.atomic(using=on_postgres):
                with connections[on_postgres].cursor() as cursor:
                    cursor.execute("SET LOCAL deadlock_timeout = '50ms'")
                nothing.using(idempotency_key=one).enqueue()
                both_hold.wait(30)
                nothing.using(idempotency_key=other).enqueue()
        except OperationalError as error:
            return type(error.__cause__).__name__
        except DuplicateJob:
            return "DuplicateJob"
        return "committed"

    ends = [in_thread(lambda p=pair: enqueue_both(*p)) for pair in (("a", "b"), ("b", "a"))]  # type: ignore[misc]
    assert sorted(end.result(30) for end in ends) == ["DeadlockDetected", "committed"]
    assert Job.objects.using(on_postgres).count() == 2


def test_the_same_keys_in_the_same_order_are_no_deadlock(on_postgres: str) -> None:
    """One of the two has them all, the other finds duplicates, and both commit (A042)."""
    started = threading.Barrier(2)

    def enqueue_all() -> int:
        new = 0
        started.wait(30)
        with transaction.atomic(using=on_postgres):
            for i in range(20):
                try:
                    nothing.using(idempotency_key=f"k{i}").enqueue()
                    new += 1
                except DuplicateJob:
                    pass
        return new

    both = [in_thread(enqueue_all), in_thread(enqueue_all)]
    assert sorted(future.result(30) for future in both) == [0, 20]
    assert Job.objects.using(on_postgres).count() == 20


def test_what_waits_for_a_batch_is_released_once(committed: str) -> None:
    """However the ends of the batch, all at the instant of its commit, meet each other (A040)."""
    count = 5
    for round_ in range(4):
        with transaction.atomic(using=committed):
            batch = [nothing.using(queue=f"q{round_}-{i}").enqueue() for i in range(count)]
            last = nothing.using(queue="last", after=batch).enqueue()
        start = threading.Barrier(count)

        def end(
            place: int, ids: list[UUID] = batch, at: threading.Barrier = start, of: int = round_
        ) -> None:
            at.wait(30)
            finish(f"q{of}-{place}", ids[place])

        for ending in [in_thread(lambda i=i: end(i)) for i in range(count)]:  # type: ignore[misc]
            ending.result(30)
        assert [entry.state for entry in monitor.job_history(last)] == [
            JobState.AWAITING_PARENT, JobState.SCHEDULED,
        ]  # fmt: skip
        assert (row(committed, last).latch, JobState(row(committed, last).state)) == (
            0, JobState.SCHEDULED,
        )  # fmt: skip


# --- Isolation levels ------------------------------------------------------------------

LEVELS = ["READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE"]


@pytest.fixture(params=LEVELS)
def isolated(on_postgres: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the connections of the alias at each level that ``DATABASES`` can name."""
    from django.db.backends.postgresql.psycopg_any import IsolationLevel

    options = connections[on_postgres].settings_dict["OPTIONS"]
    connections[on_postgres].close()
    options["isolation_level"] = IsolationLevel[request.param]
    yield on_postgres
    connections[on_postgres].close()
    del options["isolation_level"]


def test_every_enqueue_works_at_every_isolation_level(isolated: str) -> None:
    """Alone, in a transaction, with parents, in bulk; duplicates leave it usable."""
    with transaction.atomic(using=isolated), connections[isolated].cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        wanted = connections[isolated].settings_dict["OPTIONS"]["isolation_level"].name
        assert cursor.fetchone()[0] == wanted.lower().replace("_", " ")
    parent = nothing.using(idempotency_key="k", queue="p").enqueue()
    with pytest.raises(DuplicateJob):
        nothing.using(idempotency_key="k").enqueue()
    with transaction.atomic(using=isolated):
        Effect.objects.using(isolated).create(key="order")
        with pytest.raises(DuplicateJob):
            nothing.using(idempotency_key="k").enqueue()
        child = nothing.using(after=[parent], tags=["t"]).enqueue()
        ids = enqueue_many([nothing.payload(x=i) for i in range(3)])
        operations.pause_queue("other")
    assert Job.objects.using(isolated).count() == 5
    finish("p", parent)
    assert JobState(row(isolated, child).state) is JobState.SCHEDULED
    assert operations.cancel(ids[0]) is operations.CancelResult.CANCELLED_IMMEDIATELY


def test_a_snapshot_that_is_too_old_is_the_callers_to_retry(isolated: str) -> None:
    """At READ COMMITTED a duplicate is one; above, the database's own error comes unchanged."""
    with (
        pytest.raises((DuplicateJob, OperationalError)) as caught,
        transaction.atomic(using=isolated),
    ):
        Effect.objects.using(isolated).count()  # the snapshot is taken here
        in_thread(nothing.using(idempotency_key="k").enqueue).result(30)
        nothing.using(idempotency_key="k").enqueue(x=2)
    level = connections[isolated].settings_dict["OPTIONS"]["isolation_level"]
    if level.name == "READ_COMMITTED":
        assert isinstance(caught.value, DuplicateJob)
    else:
        assert type(caught.value.__cause__).__name__ == "SerializationFailure"
    assert Job.objects.using(isolated).count() == 1


def test_a_parent_ends_at_every_isolation_level(isolated: str) -> None:
    """The look after the commit takes a fresh snapshot."""
    parent = nothing.using(queue="p").enqueue()
    with transaction.atomic(using=isolated):
        child = nothing.using(after=[parent]).enqueue()
        in_thread(lambda: finish("p", parent)).result(30)
    assert JobState(row(isolated, child).state) is JobState.SCHEDULED


# --- A database that is away or busy ---------------------------------------------------


def test_a_lost_connection_is_unavailable_once(on_postgres: str) -> None:
    """Outside a transaction: the next enqueue opens a new connection."""
    nothing.enqueue()
    _end_session(on_postgres)
    with pytest.raises(StoreUnavailable, match="database 'postgres': "):
        nothing.enqueue()
    nothing.enqueue()
    assert Job.objects.using(on_postgres).count() == 2


def test_a_connection_lost_in_a_transaction_is_djangos_own_error(on_postgres: str) -> None:
    """Unchanged, since it is the caller's to retry the whole."""
    with pytest.raises(OperationalError), transaction.atomic(using=on_postgres):
        Effect.objects.using(on_postgres).create(key="order")
        _end_session(on_postgres)
        nothing.enqueue()
    assert Effect.objects.using(on_postgres).count() == 0
    nothing.enqueue()


def _end_session(alias: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]

    def end() -> None:
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])

    in_thread(end).result(30)


@contextmanager
def impatient() -> Iterator[None]:
    """Let this thread's SQLite connection wait for a lock for no more than a moment."""
    connection = connections["default"]
    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 20")
    yield
    connection.close()


@pytest.fixture
def on_sqlite(django_db_setup: None, django_db_blocker: Any, settings: Any) -> Iterator[str]:
    """Keep the jobs in SQLite; the test commits."""
    from .conftest import real_transactions

    with real_transactions("default", django_db_blocker, settings) as alias:
        yield alias


def test_on_sqlite_every_other_writer_waits(on_sqlite: str) -> None:
    """Not only for the same key; longer than ``timeout`` is unavailable, or the raw error."""
    first = Elsewhere(on_sqlite, nothing.using(idempotency_key="k").enqueue)
    locked = "database is locked"
    with impatient(), pytest.raises(StoreUnavailable, match=f"database 'default': {locked}"):
        nothing.using(idempotency_key="other").enqueue()
    with (
        impatient(),
        pytest.raises(OperationalError, match=locked),
        transaction.atomic(using=on_sqlite),
    ):
        nothing.using(idempotency_key="other").enqueue()
    second = in_thread(nothing.using(idempotency_key="k").enqueue)
    first.end(commit=True)
    with pytest.raises(DuplicateJob):
        second.result(30)
    assert Job.objects.using(on_sqlite).count() == 1


def test_the_first_use_of_a_connection_may_be_an_enqueue(committed: str) -> None:
    """In a fresh thread or process, alone, in bulk, with parents, or as an operator."""
    connections[committed].close()
    job_id = in_thread(nothing.enqueue).result(30)
    in_thread(lambda: enqueue_many([nothing.payload()])).result(30)
    in_thread(nothing.using(after=[job_id]).enqueue).result(30)
    in_thread(lambda: operations.pause_queue("q")).result(30)
    in_thread(lambda: operations.cancel(job_id)).result(30)
    assert in_thread(lambda: len(monitor.list_jobs())).result(30) == 3


# --- Whose clock -----------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["America/Sao_Paulo", "Asia/Kolkata"])
def test_the_time_zone_of_the_session_changes_nothing(
    committed: str, zone: str, settings: Any
) -> None:
    """Due now is now, as the database's clock says; stored order is order in time (A036)."""
    connection = connections[committed]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET TIME ZONE '{zone}'")
    connection.settings_dict["TIME_ZONE"] = None if connection.vendor == "postgresql" else zone
    settings.TIME_ZONE = zone
    try:
        job_id = nothing.using(queue="now").enqueue()
        later = nothing.using(queue="later", due=timedelta(seconds=10)).enqueue()
        now = clock().now()
        assert abs((row(committed, job_id).due_time - now).total_seconds()) < 1
        assert 9 < (row(committed, later).due_time - now).total_seconds() <= 10
        finish("now", job_id)
        ordered = Job.objects.using(committed).order_by("due_time")
        assert [job.job_id for job in ordered] == [job_id, later]
    finally:
        connection.settings_dict["TIME_ZONE"] = None
        connection.close()
