"""When an enqueue is part of a transaction; docs/reference/transactions.md names these tests."""

from __future__ import annotations

import logging
import threading
import unittest
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connections, transaction
from django.db.models import Exists, OuterRef
from django.test import Client, TestCase

from backwave_django import DuplicateJob, JobState, aenqueue, enqueue_many, monitor
from backwave_django.exceptions import InvalidPayload
from backwave_django.models import Job
from backwave_django.storage.orm.store import DjangoStore
from tests.testapp.jobs import nothing
from tests.testapp.models import Effect

from .conftest import ALIASES, finish, in_thread, row, stored


class Rollback(Exception):
    """Raised to leave a transaction."""


def save(alias: str, key: str = "order") -> None:
    """Write what an application writes beside its jobs."""
    Effect.objects.using(alias).create(key=key)


def saved(alias: str) -> int:
    """Count what applications wrote."""
    return Effect.objects.using(alias).count()


def seen_from_outside(alias: str) -> tuple[int, int]:
    """Count jobs and saved rows as another connection sees them."""
    return in_thread(lambda: (Job.objects.using(alias).count(), saved(alias))).result(30)


def other(alias: str) -> str:
    """Give the alias that is not ``alias``."""
    return ALIASES[1 - ALIASES.index(alias)]


# --- Django's own transactions ---------------------------------------------------------


def test_outside_a_transaction_it_is_there_at_once(committed: str) -> None:
    """The enqueue is a transaction of its own."""
    nothing.enqueue()
    enqueue_many([nothing.payload(), nothing.payload()])
    assert seen_from_outside(committed) == (3, 0)


def test_with_a_commit_it_is_there_with_the_data(committed: str) -> None:
    """Nobody sees one without the other (A038 c)."""
    with transaction.atomic(using=committed):
        save(committed)
        nothing.enqueue()
        enqueue_many([nothing.payload()])
        assert seen_from_outside(committed) == (0, 0)
    assert seen_from_outside(committed) == (2, 1)


def test_with_a_rollback_it_never_was(committed: str) -> None:
    """No row of any table stays (A038 a)."""
    parent = nothing.enqueue()
    before = stored(committed)
    with pytest.raises(Rollback), transaction.atomic(using=committed):
        save(committed)
        nothing.using(tags=["t"], after=[parent]).enqueue()
        enqueue_many([nothing.payload()])
        raise Rollback
    assert (stored(committed), saved(committed)) == (before, 0)


def test_with_a_savepoint_rolled_back_only_the_inner_one_is_gone(committed: str) -> None:
    """The outer transaction goes on, and commits what is its own (A038 d)."""
    with transaction.atomic(using=committed):
        outer = nothing.using(queue="outer").enqueue()
        with pytest.raises(Rollback), transaction.atomic(using=committed):
            inner = nothing.using(idempotency_key="k").enqueue()
            raise Rollback
        # The key is free again, in the same transaction.
        again = nothing.using(idempotency_key="k").enqueue()
        point = transaction.savepoint(using=committed)
        nothing.enqueue()
        transaction.savepoint_rollback(point, using=committed)
    assert inner == again
    assert {job.job_id for job in Job.objects.using(committed)} == {outer, again}


def test_a_refusal_leaves_the_transaction_usable(committed: str) -> None:
    """The caller decides: caught, the rest commits; let through, nothing does (A038 b)."""
    nothing.using(idempotency_key="k").enqueue()
    with transaction.atomic(using=committed):
        save(committed, "caught")
        with pytest.raises(DuplicateJob):
            nothing.using(idempotency_key="k").enqueue()
        with pytest.raises(InvalidPayload):
            nothing.enqueue(x="wrong")  # type: ignore[arg-type]
        nothing.enqueue()
    with pytest.raises(DuplicateJob), transaction.atomic(using=committed):
        save(committed, "let through")
        nothing.using(idempotency_key="k").enqueue()
    assert list(Effect.objects.using(committed).values_list("key", flat=True)) == ["caught"]
    assert Job.objects.using(committed).count() == 2


def test_a_broken_transaction_stays_broken(committed: str) -> None:
    """Django's own error comes unchanged, and nothing is stored."""
    with pytest.raises(Rollback), transaction.atomic(using=committed):
        transaction.set_rollback(True, using=committed)
        with pytest.raises(transaction.TransactionManagementError):
            nothing.enqueue()
        raise Rollback
    assert stored(committed) == 0


def test_a_durable_block_is_a_transaction_like_any(committed: str) -> None:
    """``atomic(durable=True)`` takes an enqueue within it."""
    with transaction.atomic(using=committed, durable=True):
        nothing.enqueue()
        assert seen_from_outside(committed) == (0, 0)
    assert seen_from_outside(committed) == (1, 0)


def test_no_worker_ever_sees_a_job_without_its_data(committed: str) -> None:
    """Another connection looks all the time while orders are placed (A038 c)."""
    rounds = 100
    looks = 0
    placed = threading.Event()

    def place() -> None:
        try:
            for i in range(rounds):
                with transaction.atomic(using=committed):
                    nothing.using(queue=f"q{i}").enqueue()
                    save(committed, f"q{i}")
        finally:
            placed.set()

    placing = in_thread(place)
    effects = Effect.objects.using(committed).filter(key=OuterRef("queue"))
    while not placed.wait(0.001):
        looks += 1
        assert not Job.objects.using(committed).filter(~Exists(effects)).exists()
    placing.result(30)
    assert looks >= 3
    assert seen_from_outside(committed) == (rounds, rounds)


# --- Around the application ------------------------------------------------------------


@pytest.fixture
def atomic_requests(committed: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put each request into a transaction on the alias of the jobs."""
    settings.ROOT_URLCONF = "tests.client.urls"
    monkeypatch.setitem(connections.settings[committed], "ATOMIC_REQUESTS", True)
    return committed


@pytest.mark.parametrize(
    ("view", "status", "rows"),
    [("succeeds", 200, 1), ("fails", 500, 0), ("answers-500", 500, 1)],
)
def test_with_atomic_requests_the_view_decides(
    atomic_requests: str, view: str, status: int, rows: int
) -> None:
    """A view that raises leaves no job and no data; one that answers 500 leaves both (A039)."""
    answer = Client(raise_request_exception=False).post(f"/{view}")
    assert answer.status_code == status
    assert seen_from_outside(atomic_requests) == (rows, rows)


def test_with_atomic_requests_a_view_can_stand_outside(atomic_requests: str) -> None:
    """``non_atomic_requests`` makes each enqueue a transaction of its own (A039)."""
    Client(raise_request_exception=False).post(f"/not-atomic/{atomic_requests}")
    assert seen_from_outside(atomic_requests) == (1, 1)


def test_in_a_test_case_it_goes_with_the_test(committed: str) -> None:
    """The test sees the job, no other connection does, and after the test it is gone."""
    seen = []

    class Inner(TestCase):
        databases = {committed}

        def test_enqueue(self) -> None:
            job_id = nothing.enqueue()
            assert monitor.get_job(job_id).state is JobState.SCHEDULED  # type: ignore[union-attr]
            with self.captureOnCommitCallbacks(using=committed, execute=True) as callbacks:
                transaction.on_commit(nothing.enqueue, using=committed)
            assert len(callbacks) == 1
            seen.append(Job.objects.using(committed).count())
            # SQLite lets nobody read a row that is not committed either.
            seen.append(seen_from_outside(committed)[0])

    result = unittest.TestResult()
    unittest.TestSuite([Inner("test_enqueue")]).run(result)
    assert result.wasSuccessful(), result.errors + result.failures
    assert seen == [2, 0]
    assert stored(committed) == 0


def test_on_commit_enqueues_after_the_commit(committed: str) -> None:
    """In a transaction of its own: the data can be there without its job (A038)."""
    with transaction.atomic(using=committed):
        save(committed)
        transaction.on_commit(nothing.enqueue, using=committed)
        transaction.on_commit(lambda: nothing.enqueue(x="wrong"), using=committed, robust=True)  # type: ignore[arg-type]
        assert Job.objects.using(committed).count() == 0
    # The second enqueue has failed, and the data it belongs to is committed all the same.
    assert seen_from_outside(committed) == (1, 1)
    with pytest.raises(Rollback), transaction.atomic(using=committed):
        transaction.on_commit(nothing.enqueue, using=committed)
        raise Rollback
    assert seen_from_outside(committed) == (1, 1)


def test_a_transaction_on_another_alias_is_none(committed: str) -> None:
    """``atomic(using=other)`` rolls its own data back, and the job stays."""
    with pytest.raises(Rollback), transaction.atomic(using=other(committed)):
        save(other(committed))
        nothing.enqueue()
        assert seen_from_outside(committed) == (1, 0)
        raise Rollback
    assert seen_from_outside(committed) == (1, 0)
    assert saved(other(committed)) == 0


def test_a_dedicated_database_needs_its_own_transaction(on_postgres: str) -> None:
    """``atomic()`` is one on ``default``; ``atomic(using=...)`` names that of the jobs."""
    with pytest.raises(Rollback), transaction.atomic():
        nothing.enqueue()
        raise Rollback
    assert seen_from_outside(on_postgres)[0] == 1
    with pytest.raises(Rollback), transaction.atomic(using=on_postgres):
        nothing.enqueue()
        raise Rollback
    assert seen_from_outside(on_postgres)[0] == 1


# --- Without autocommit ----------------------------------------------------------------


@pytest.fixture(params=["set_autocommit", "setting"])
def manual(committed: str, request: pytest.FixtureRequest) -> Any:
    """Switch autocommit off, by hand or by ``DATABASES[...]["AUTOCOMMIT"]``."""
    connection = connections[committed]
    connection.close()
    was = connection.settings_dict["AUTOCOMMIT"]
    if request.param == "setting":
        connection.settings_dict["AUTOCOMMIT"] = False
    else:
        transaction.set_autocommit(False, using=committed)
    yield committed
    connection.settings_dict["AUTOCOMMIT"] = was
    connection.close()


def test_without_autocommit_it_waits_for_your_commit(manual: str) -> None:
    """The job is there with ``commit()``, and with ``rollback()`` it never was."""
    save(manual)
    parent = nothing.enqueue()
    child = nothing.using(after=[parent]).enqueue()
    enqueue_many([nothing.payload()])
    assert not connections[manual].get_autocommit()
    assert seen_from_outside(manual) == (0, 0)
    transaction.commit(using=manual)
    assert seen_from_outside(manual) == (3, 1)
    assert JobState(row(manual, child).state) is JobState.AWAITING_PARENT

    save(manual)
    nothing.enqueue()
    with pytest.raises(DuplicateJob):
        nothing.using(job_id=parent).enqueue()
    transaction.rollback(using=manual)
    assert seen_from_outside(manual) == (3, 1)


def test_without_autocommit_an_enqueue_may_come_first(manual: str) -> None:
    """Also where no other statement has opened the transaction before it."""
    nothing.enqueue()
    transaction.rollback(using=manual)
    enqueue_many([nothing.payload()])
    transaction.rollback(using=manual)
    assert seen_from_outside(manual) == (0, 0)


# --- Async code ------------------------------------------------------------------------


def test_async_code_enqueues_on_its_own(committed: str) -> None:
    """``aenqueue`` takes what ``enqueue`` takes; each is a transaction of its own."""

    async def main() -> list[Any]:
        first = await nothing.aenqueue(x=1)
        second = await nothing.using(queue="q", tags=["t"]).aenqueue(2)
        third = await aenqueue(nothing.payload(), after=[first], idempotency_key="k")
        with pytest.raises(DuplicateJob):
            await nothing.using(idempotency_key="k").aenqueue()
        with pytest.raises(TypeError, match="due_time"):
            await aenqueue(nothing.payload(), due_time=1)
        return [first, second, third]

    ids = async_to_sync(main)()
    assert seen_from_outside(committed) == (3, 0)
    assert row(committed, ids[1]).queue == "q"


def test_async_code_wraps_the_whole_transaction(committed: str) -> None:
    """There is no async ``atomic()``: the block goes into one function, and that elsewhere."""

    def place_order(fail: bool) -> None:
        with transaction.atomic(using=committed):
            save(committed)
            nothing.enqueue()
            if fail:
                raise Rollback

    async def main() -> None:
        await sync_to_async(place_order)(False)
        with pytest.raises(Rollback):
            await sync_to_async(place_order)(True)

    async_to_sync(main)()
    assert seen_from_outside(committed) == (1, 1)


def test_an_aenqueue_under_a_sync_transaction_joins_it(committed: str) -> None:
    """``async_to_sync`` brings it back into the thread that holds the transaction."""
    with pytest.raises(Rollback), transaction.atomic(using=committed):
        async_to_sync(nothing.aenqueue)()
        assert Job.objects.using(committed).count() == 1
        raise Rollback
    assert seen_from_outside(committed) == (0, 0)


# --- A parent that ends while its child is enqueued ------------------------------------


def test_a_parent_that_ends_before_the_commit_still_releases_its_child(on_postgres: str) -> None:
    """The end could not see the child, so the client looks once more after its commit."""
    parent = nothing.using(queue="p").enqueue()
    with transaction.atomic(using=on_postgres):
        child = nothing.using(after=[parent]).enqueue()
        in_thread(lambda: finish("p", parent)).result(30)
        assert JobState(row(on_postgres, child).state) is JobState.AWAITING_PARENT
    job = row(on_postgres, child)
    assert (JobState(job.state), job.latch) == (JobState.SCHEDULED, 0)


def test_a_second_look_that_fails_is_no_failure_of_the_enqueue(
    committed: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit has happened; the workers' maintenance looks again."""
    parent = nothing.enqueue()

    def broken(*_: object) -> int:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(DjangoStore, "release_waiting", broken)
    with caplog.at_level(logging.ERROR), transaction.atomic(using=committed):
        child = nothing.using(after=[parent]).enqueue()
    assert JobState(row(committed, child).state) is JobState.AWAITING_PARENT
    assert "out of memory" in caplog.text
