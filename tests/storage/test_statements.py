"""Round trips: how many statements a job costs, transactions included."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

import pytest
from django.db import connections

from backwave_django.core.outcomes import Outcome, Succeeded
from backwave_django.core.tags import Tag
from backwave_django.storage.orm.store import DjangoStore
from backwave_django.testing.conformance.scenario import (
    LEASE,
    QUEUE,
    START,
    WORKER,
    after,
    claim,
    give_up,
    new_job,
    request,
    running,
    store_all,
)

BATCH = 32
OWN_DIALECTS = pytest.mark.parametrize("name", ["sqlite", "postgres"])


class Sent:
    """What was sent to a database: statements, and how often an answer was waited for."""

    def __init__(self, statements: int, trips: int) -> None:
        self.statements = statements
        self.trips = trips


@contextmanager
def counted(store: DjangoStore) -> Iterator[Callable[[], Sent]]:
    """Count all that is sent to the database, BEGIN and COMMIT included.

    Not as Django sees it: SQLite says itself what it runs, and for PostgreSQL the messages
    of the protocol are counted.
    """
    connection = connections[store.alias]
    connection.ensure_connection()
    if connection.vendor == "sqlite":
        seen: list[str] = []
        connection.connection.set_trace_callback(seen.append)
        try:
            yield lambda: Sent(len(seen), len(seen))
        finally:
            connection.connection.set_trace_callback(None)
        return
    found: list[Sent] = []
    with tempfile.TemporaryFile() as file:
        connection.connection.pgconn.trace(file.fileno())
        try:
            yield lambda: found[0]
        finally:
            connection.connection.pgconn.untrace()
            found.append(_read_trace(file))


def _read_trace(file: IO[bytes]) -> Sent:
    """Count messages by the direction, F to the server or B back, and by their kind.

    The format is that of https://www.postgresql.org/docs/current/libpq-control.html
    (PQtrace): a time, the direction, the length, the kind, and what it holds, by tabs.
    """
    file.seek(0)
    found = Counter(
        (fields[1], fields[3])
        for fields in (line.split(b"\t") for line in file.read().split(b"\n"))
        if len(fields) > 3
    )
    return Sent(
        found[b"F", b"Execute"] + found[b"F", b"Query"], trips=found[b"B", b"ReadyForQuery"]
    )


def _exchange_of_a_full_batch(store: DjangoStore, output: bytes | None = None) -> Sent:
    """Report a batch with tags, and claim the next one; give the statements."""
    tags = (Tag(None, "new"), Tag("tenant", "acme"))
    store_all(store, [new_job(tags=tags[1:]) for _ in range(3 * BATCH)])
    wanted = request(QUEUE, max_jobs=BATCH)
    jobs = store.claim(WORKER, wanted, START).jobs
    outcomes = [Outcome(job.lease, Succeeded(output, tags)) for job in jobs]
    _, claimed = store.exchange(WORKER, outcomes, wanted, START)  # warms what is remembered
    assert claimed is not None
    outcomes = [Outcome(job.lease, Succeeded(output, tags)) for job in claimed.jobs]
    with counted(store) as sent:
        reports, claimed = store.exchange(WORKER, outcomes, wanted, START)
    assert claimed is not None
    assert (len(reports), len(claimed.jobs)) == (BATCH, BATCH)
    return sent()


@OWN_DIALECTS
def test_4_8_a_full_exchange_costs_a_fifth_of_a_statement_per_job(name, make_store):
    """Report and claim of 32 jobs, with tags and the full log."""
    sent = _exchange_of_a_full_batch(make_store(name))
    assert 3 <= sent.statements <= 0.2 * BATCH
    if name == "postgres":
        assert sent.trips == 1


@OWN_DIALECTS
def test_4_8_outputs_cost_one_statement_more_and_a_limit_a_few(name, make_store):
    """Neither costs a statement per job."""
    store = make_store(name)
    assert _exchange_of_a_full_batch(store, b"out").statements <= 0.2 * BATCH + 1
    store.set_concurrency_limit(QUEUE, 10 * BATCH, None, START)
    assert _exchange_of_a_full_batch(store, b"out").statements <= 0.2 * BATCH + 4


@OWN_DIALECTS
def test_2_2_a_batch_of_jobs_costs_a_few_statements(name, make_store):
    """One round trip per few hundred jobs, not one per job."""
    store = make_store(name)
    jobs = [new_job(tags=(Tag(None, "a"),)) for _ in range(500)]
    with counted(store) as sent:
        store_all(store, jobs)
    assert 1 <= sent().statements <= 8


@OWN_DIALECTS
def test_3_5_an_idle_claim_costs_one_round_trip(name, make_store):
    """A pump that polls an empty queue writes nothing."""
    store = make_store(name)
    claim(store)
    with counted(store) as sent:
        assert not claim(store).jobs
    assert sent().trips == 1


@OWN_DIALECTS
def test_4_1_a_heartbeat_and_an_idle_sweep_cost_one_round_trip_each(name, make_store):
    """Whatever the number of leases."""
    store = make_store(name)
    leases = [running(store) for _ in range(BATCH)]
    with counted(store) as sent:
        store.heartbeat(leases, LEASE, after(1))
    assert sent().trips == 1
    with counted(store) as sent:
        assert store.expire_leases(None, give_up, 100, after(2)) == 0
    assert sent().trips == 1
