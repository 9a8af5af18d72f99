"""Observers over real databases: what a slow transaction commits late is not passed over."""

from __future__ import annotations

import pytest
from django.db import connections, transaction

from backwave_django.core.states import JobState
from backwave_django.models import Observer
from backwave_django.storage.values import DeliveryVerdict, ObserverDefinition
from backwave_django.testing.conformance.scenario import LEASE, START, WORKER, new_job, stored

from .databases import there

NAME = "audit"


@pytest.fixture
def store(make_store):
    """The store on PostgreSQL, with an observer of everything."""
    store = make_store("postgres")
    store.register_observer(ObserverDefinition(NAME, frozenset(JobState)))
    return store


def _deliver(store):
    """Deliver what there is; give the ids of the jobs."""
    claimed = store.claim_deliveries(NAME, WORKER, 100, LEASE, START)
    if claimed is None:
        return []
    through = claimed.deliveries[-1].position
    verdict = store.report_deliveries(claimed.lease, through, None, START)
    assert verdict is DeliveryVerdict.APPLIED
    return [delivery.job_id for delivery in claimed.deliveries]


def test_9_2_a_slow_transaction_is_waited_for(store):
    """Its row has the lower id and comes later; it is delivered all the same, and first."""
    slow = new_job()
    with transaction.atomic(using="postgres"):
        store.enqueue(slow, START)
        quick = there(stored, store)
        assert there(_deliver, store) == there(_deliver, store) == []
    assert _deliver(store) + _deliver(store) == [slow.job_id, quick]
    assert _deliver(store) == []


def test_9_2_what_was_looked_at_before_is_delivered_while_it_is_open(store):
    """Only what comes after its beginning waits for it."""
    with transaction.atomic(using="postgres"):
        store.enqueue(new_job(), START)
        early = there(stored, store)
        assert there(_deliver, store) == []
    with transaction.atomic(using="postgres"):
        slow = new_job()
        store.enqueue(slow, START)
        late = there(stored, store)
        seen = there(_deliver, store)
        assert early in seen
        assert late not in seen
    assert _deliver(store) + _deliver(store) == [slow.job_id, late]


def test_9_2_under_steady_traffic_the_cursor_moves_on(store):
    """There is always some transaction open, but none for long: a mark frees what is older."""
    first = stored(store)
    seen = []
    for _ in range(4):
        with transaction.atomic(using="postgres"):
            store.enqueue(new_job(), START)
            seen += there(_deliver, store)
    assert first in seen


def test_9_2_a_transaction_that_does_not_write_to_the_log_holds_nothing_up(store):
    """It may be anybody's, for hours: of another application, of another database."""
    with transaction.atomic(using="postgres"), connections["postgres"].cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()")
        cursor.execute("DELETE FROM testapp_effect")
        job_ids = [there(stored, store), there(stored, store)]
        assert there(_deliver, store) == job_ids


def test_9_2_a_reader_of_the_log_holds_nothing_up(store):
    """It has an id and a lock on the table, but none that writes."""
    with transaction.atomic(using="postgres"), connections["postgres"].cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id(), count(*) FROM backwave_transition")
        job_id = there(stored, store)
        assert there(_deliver, store) == [job_id]


def test_9_2_in_a_callers_transaction_its_own_rows_count(store):
    """As under Django's TestCase, where nothing is ever committed."""
    with transaction.atomic(using="postgres"):
        job_id = stored(store)
        assert _deliver(store) == [job_id]
        transaction.set_rollback(True, using="postgres")
    assert _deliver(store) == []


def test_9_3_an_idle_observer_writes_nothing_on_the_hot_path(store):
    """Its row is touched by its own claims alone."""
    before = Observer.objects.using("postgres").get(name=NAME).cursor
    stored(store)
    assert Observer.objects.using("postgres").get(name=NAME).cursor == before
    connections["postgres"].close()
