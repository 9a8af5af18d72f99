"""Rule 3.6: what a claim costs beside many finished jobs, later jobs and other queues."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from backwave_django.core.instants import to_micros
from backwave_django.core.outcomes import Outcome, Succeeded
from backwave_django.models import Job, JobContent
from backwave_django.storage.orm.store import DjangoStore
from backwave_django.testing.conformance.scenario import (
    LEASE,
    QUEUE,
    START,
    WORKER,
    after,
    claim,
    give_up,
    ids_of,
    request,
    stored,
)

from .conftest import DATABASE_STORES, FULL, POSTGRES_STORES, STORES, empty
from .databases import Statements

FINISHED = 20_000
OTHERS = 4_000
"""Due later in the same queue, and as many due in a hundred other queues."""

_NUMBERS = {
    "postgresql": "SELECT n FROM generate_series(1, %s) AS numbers(n)",
    "sqlite": "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers"
    " WHERE n < %s) SELECT n FROM numbers",
}
_ID = {
    "postgresql": "md5('{kind}' || n)::uuid",
    "sqlite": "'{kind}' || substr('0000000000000000000000000000000' || n, -31)",
}


def _fill(alias: str, kind: str, count: int, queue: str, state: int, due: int) -> None:
    vendor = connections[alias].vendor
    ended = to_micros(START) if state >= 4 else "NULL"
    with connections[alias].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {Job._meta.db_table} (job_id, wire_name, queue, state, attempt,"
            " claim_number, ordinal, due_time, enqueued_at, terminal_at, mode, latch)"
            f" SELECT {_ID[vendor].format(kind=kind)}, 'w', {queue}, {state}, 0, 0, 1, {due} + n,"
            f" {due}, {ended}, 1, 0 FROM ({_NUMBERS[vendor]}) AS numbers",
            [count],
        )
        cursor.execute(
            f"INSERT INTO {JobContent._meta.db_table} (job_id, payload)"
            f" SELECT sequence, %s FROM {Job._meta.db_table} WHERE sequence NOT IN"
            f" (SELECT job_id FROM {JobContent._meta.db_table})",
            [b""],
        )


def _analyze(alias: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute("ANALYZE")


@pytest.fixture(params=["fresh", "stale"])
def statistics(request: pytest.FixtureRequest) -> str:
    """Whether the planner knows of the crowd, or still thinks that the tables are empty."""
    return request.param


@pytest.fixture(params=DATABASE_STORES)
def crowded(
    request: pytest.FixtureRequest, statistics: str, databases: None
) -> Iterator[DjangoStore]:
    """A store with few due jobs among very many others."""
    store: Any = STORES[request.param](FULL)
    alias, now = store.alias, to_micros(START)
    empty(alias)
    _analyze(alias)
    _fill(alias, "a", FINISHED, f"'{QUEUE}'", 4, now - 1_000_000)
    _fill(alias, "b", OTHERS, f"'{QUEUE}'", 1, now + 3_600_000_000)
    _fill(alias, "c", OTHERS, "'other-' || (n %% 100)", 1, now - 1_000_000)
    if statistics == "fresh":
        _analyze(alias)
    yield store
    empty(alias)
    _analyze(alias)


def _plan(alias: str, sql: str, params: Any) -> str:
    """Ask the database how it would run a statement, with the parameters of the driver."""
    is_sqlite = connections[alias].vendor == "sqlite"
    with connections[alias].cursor() as cursor:
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' * is_sqlite}{sql}", params)
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def _scans(alias: str, plan: str) -> list[str]:
    """Give the lines of a plan that read the whole table of jobs."""
    table = Job._meta.db_table
    if connections[alias].vendor == "postgresql":
        return [line for line in plan.splitlines() if re.search(rf"Seq Scan on {table}\b", line)]
    return [
        line
        for line in plan.splitlines()
        if line.startswith(f"SCAN {table}") and "INDEX backwave_" not in line
    ]


def _plans(store: DjangoStore, operation: Any) -> list[str]:
    """Run an operation and give the plan of each of its statements on jobs."""
    with Statements(connections[store.alias]).collected() as seen:
        operation()
    asked = [
        (sql, params)
        for sql, params in list(seen)
        if Job._meta.db_table in sql and sql.lstrip().startswith(("SELECT", "WITH", "UPDATE"))
    ]
    assert asked
    return [f"{sql}\n{_plan(store.alias, sql, params)}" for sql, params in asked]


def test_3_6_a_claim_reads_only_the_ready_index(crowded):
    """Finished jobs, later ones and those of other queues are not looked at."""
    for queue in ("nothing-here", QUEUE):
        plans = _plans(crowded, lambda queue=queue: claim(crowded, queue))
        assert any("backwave_ready" in plan for plan in plans)
        for plan in plans:
            assert _scans(crowded.alias, plan) == [], plan


def test_3_6_a_claim_by_shares_under_limits_reads_only_partial_indexes(crowded):
    """Two passes over three queues, of which one has a limit."""
    crowded.set_concurrency_limit("other-7", 5, None, START)
    shares = [(QUEUE, 3), ("other-7", 2), ("other-8", 1)]
    for plan in _plans(crowded, lambda: claim(crowded, *shares, max_jobs=20)):
        assert _scans(crowded.alias, plan) == [], plan
    leased = {count.queue: count.count for count in crowded.count_jobs() if count.state == 3}
    assert leased == {"other-7": 5, "other-8": 15}


def test_3_6_reports_and_heartbeats_read_no_finished_job(crowded):
    """They look rows up by their ids."""
    ids = [stored(crowded) for _ in range(20)]
    claimed = claim(crowded, max_jobs=20)
    assert ids_of(claimed) == ids
    leases = [job.lease for job in claimed.jobs]
    outcomes = [Outcome(lease, Succeeded(b"out")) for lease in leases[:10]]
    for operation in (
        lambda: crowded.heartbeat(leases, LEASE, START),
        lambda: crowded.report(outcomes, START),
        lambda: crowded.exchange(WORKER, [], request(QUEUE), START),
    ):
        for plan in _plans(crowded, operation):
            assert _scans(crowded.alias, plan) == [], plan


# The portable dialect cannot tell SQLite which index to use.
@pytest.mark.parametrize("crowded", ["sqlite", *POSTGRES_STORES], indirect=True)
@pytest.mark.parametrize("queues", [None, [QUEUE]], ids=["all-queues", "one-queue"])
def test_4_6_a_sweep_reads_no_finished_job(crowded, queues):
    """Neither one that finds nothing, which most of them are, nor one that finds something."""
    for lapsed in (0, 1):
        ids = [stored(crowded) for _ in range(lapsed)]
        assert ids_of(claim(crowded)) == ids
        plans = _plans(crowded, lambda: crowded.expire_leases(queues, give_up, 10, after(99)))
        for plan in plans:
            assert _scans(crowded.alias, plan) == [], plan


def test_6_4_a_sweep_of_waiting_jobs_reads_no_finished_job(crowded):
    """It begins at the edges that are open."""
    parent = stored(crowded)
    stored(crowded, parents=(parent,))
    for plan in _plans(crowded, lambda: crowded.release_waiting(10, START)):
        assert _scans(crowded.alias, plan) == [], plan


def test_3_6_the_check_of_plans_sees_a_scan(crowded):
    """What nobody has an index for is found out."""
    plan = _plan(crowded.alias, f"SELECT sum(attempt) FROM {Job._meta.db_table}", [])
    assert _scans(crowded.alias, plan)
