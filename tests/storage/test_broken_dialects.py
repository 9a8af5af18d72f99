"""The tests over SQL can fail: a dialect that is broken on purpose is found out by each."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from django.db import connections

from backwave_django.core.outcomes import Succeeded
from backwave_django.models import Job
from backwave_django.storage.dialects.base import Dialect
from backwave_django.storage.errors import StoreUnavailable
from backwave_django.storage.orm.store import DjangoStore
from backwave_django.testing.conformance import scenario

from . import test_atomicity, test_locks, test_plans
from .conftest import empty
from .databases import without_waiting


class WithoutTransactions(Dialect):
    """Commits each statement by itself."""

    def atomic(self):
        return nullcontext()


class WaitsForLocks(Dialect):
    """Waits where it should pass locked rows by."""

    def locked(self, jobs, *, wait=False):
        return super().locked(jobs, wait=True)


@pytest.mark.parametrize(
    "prepare",
    [
        test_atomicity._enqueue,
        test_atomicity._report_of_a_failure_with_children,
        test_atomicity._claim,
        test_atomicity._cancel,
        test_atomicity._expire,
    ],
)
def test_0_2_a_store_without_transactions_is_found_out(prepare, make_store):
    """Some statement of it fails after another one has left its mark."""
    make_store("sqlite")
    store = DjangoStore("default", dialect=WithoutTransactions("default"))
    with pytest.raises(AssertionError, match="left something"):
        test_atomicity._fail_in_turn(store, prepare(store), after=False, inside=False)


def test_0_7_a_store_that_waits_is_found_out(make_store):
    """Each operation that waits for the application's lock is stopped by the time-out."""
    make_store("postgres")
    store = DjangoStore("postgres", dialect=WaitsForLocks("postgres"))
    lease = scenario.running(store)
    with (
        test_locks.open_transaction(store, test_locks._locks, lease.job_id),
        pytest.raises(StoreUnavailable, match="lock timeout"),
    ):
        without_waiting(store.alias, scenario.end, store, lease, Succeeded())


@pytest.fixture(params=["sqlite", "postgres"])
def without_the_index(request, make_store):
    """A store whose index for claims is gone, and many jobs."""
    store = make_store(request.param)
    (index,) = (index for index in Job._meta.indexes if index.name.endswith("_ready"))
    with connections[store.alias].schema_editor() as editor:
        editor.remove_index(Job, index)
    test_plans._fill(store.alias, "a", 5_000, "'mail'", 4, 0)
    test_plans._analyze(store.alias)
    yield store
    with connections[store.alias].schema_editor() as editor:
        editor.add_index(Job, index)
    empty(store.alias)
    test_plans._analyze(store.alias)


def test_3_6_a_claim_without_its_index_is_found_out(without_the_index):
    """Its plans read the whole table."""
    store = without_the_index
    plans = test_plans._plans(store, lambda: scenario.claim(store))
    assert not any("backwave_ready" in plan for plan in plans)
    assert any(test_plans._scans(store.alias, plan) for plan in plans)
