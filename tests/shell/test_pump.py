"""The pump and its supervisor, over a store that can be made to fail."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from backwave_django.core.retry import RetryPolicy
from backwave_django.core.states import JobState
from backwave_django.runtime.clock import elapsed
from backwave_django.storage.errors import StoreRejected, StoreUnavailable
from tests.support.processes import wait_until

from .conftest import World


def events(caplog: pytest.LogCaptureFixture, name: str) -> list[logging.LogRecord]:
    """Give the log records of one event."""
    return [record for record in caplog.records if getattr(record, "event", "") == name]


def test_a_burst_runs_everything_that_is_due(world: World) -> None:
    """Jobs that a job enqueues are run as well, before the burst ends."""
    ran: list[Any] = []
    world.handler("leaf", lambda payload, ctx: ran.append(payload))
    world.handler("root", lambda payload, ctx: world.enqueue("leaf", b"7"))
    for _ in range(10):
        world.enqueue("root")
    assert world.supervisor(burst=True).run() == 0
    assert ran == [7] * 10


def test_two_pumps_of_a_burst_wait_for_each_other(world: World) -> None:
    """An idle pump goes on while its sibling still runs a job that may enqueue for it."""
    ran: list[str] = []
    gate = threading.Event()

    def root(payload: Any, ctx: Any) -> None:
        gate.wait(10)
        world.enqueue("leaf")

    world.handler("root", root)
    world.handler("leaf", lambda payload, ctx: ran.append("leaf"))
    world.enqueue("root")
    supervisor = world.start(burst=True, pumps=2)
    idle_pump = lambda: [p for p in supervisor.pumps if p.idle_since is not None]  # noqa: E731
    wait_until(idle_pump, message="one pump is idle")
    gate.set()
    assert world.stop_when_done() == [0]
    assert ran == ["leaf"]


def test_handlers_run_side_by_side_up_to_the_pool(world: World) -> None:
    """Twenty handlers that wait for each other all get a thread."""
    barrier = threading.Barrier(20)
    world.handler("meet", lambda payload, ctx: barrier.wait(20))
    ids = [world.enqueue("meet") for _ in range(40)]
    assert world.supervisor(burst=True, pool_size=20).run() == 0
    assert {world.state(job_id) for job_id in ids} == {JobState.SUCCEEDED}


def test_no_more_than_the_pool_runs_at_once(world: World) -> None:
    """The pool is a bound, whatever is due."""
    lock, now, most = threading.Lock(), [0], [0]

    def count(payload: Any, ctx: Any) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        threading.Event().wait(0.002)
        with lock:
            now[0] -= 1

    world.handler("count", count)
    for _ in range(60):
        world.enqueue("count")
    assert world.supervisor(burst=True, pool_size=3).run() == 0
    assert most[0] == 3


def test_async_handlers_wait_side_by_side(world: World) -> None:
    """Four async attempts that wait for each other all end."""
    barriers: list[asyncio.Barrier] = []

    async def handler(payload: Any, ctx: Any) -> None:
        barriers[:] = barriers or [asyncio.Barrier(4)]
        await barriers[0].wait()

    world.handler("a", handler, is_async=True)
    ids = [world.enqueue("a") for _ in range(4)]
    assert world.supervisor(burst=True).run() == 0
    assert {world.state(job_id) for job_id in ids} == {JobState.SUCCEEDED}


def test_an_outage_is_said_once_and_loses_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """While the store is away outcomes are kept; afterwards each is recorded once."""
    began, go_on = threading.Event(), threading.Event()

    def handler(payload: Any, ctx: Any) -> None:
        began.set()
        go_on.wait(10)

    world.handler("w", handler)
    job_id = world.enqueue("w")
    with caplog.at_level(logging.INFO, "backwave_django"):
        world.start()
        assert began.wait(10)
        world.store.fault = StoreUnavailable("away")
        calls = world.store.calls
        go_on.set()
        wait_until(lambda: world.store.calls >= calls + 2, message="it tries again")
        assert world.state(job_id) is JobState.LEASED
        world.store.fault = None
        wait_until(lambda: world.state(job_id) is JobState.SUCCEEDED, message="it is recorded")
        assert world.stop() == [0]
    assert len(events(caplog, "store unavailable")) == 1
    assert len(events(caplog, "store back")) == 1
    endings = [t for t in world.store.job_history(job_id) if t.state.is_terminal]
    assert len(endings) == 1


def test_an_outage_of_two_leases_makes_nothing_run_twice(world: World) -> None:
    """After an outage a pump renews first and sweeps later, so the living keep their jobs."""
    runs: list[int] = []
    go_on = threading.Event()

    def handler(payload: Any, ctx: Any) -> None:
        runs.append(ctx.attempt)
        go_on.wait(20)

    world.handler("w", handler)
    jobs = [world.enqueue("w") for _ in range(4)]
    lease = 0.6
    for _ in range(2):
        world.start(lease_duration=lease)
    wait_until(lambda: len(runs) == 4, message="all run")
    world.store.fault = StoreUnavailable("away")
    away_since = elapsed()
    wait_until(lambda: elapsed() > away_since + 2 * lease, message="two leases go by")
    world.store.fault = None
    calls = world.store.calls
    wait_until(lambda: world.store.calls > calls + 40, message="sweeps go on")
    go_on.set()
    wait_until(
        lambda: all(world.state(job_id) is JobState.SUCCEEDED for job_id in jobs),
        message="all end",
    )
    assert runs == [1] * 4
    assert world.stop() == [0, 0]


def test_a_fault_that_retrying_cannot_mend_halts_the_pump(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The pump ends, says why, and the exit code tells it."""
    world.store.fault = StoreRejected("no such table")
    with caplog.at_level(logging.INFO, "backwave_django"):
        assert world.supervisor().run() == 3
    (record,) = events(caplog, "pump halted")
    assert record.levelno == logging.CRITICAL
    assert "no such table" in record.getMessage()


def test_a_lost_lease_is_announced_and_its_outcome_dropped(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker that loses its lease tells the handler, and records nothing for it (A011)."""
    began = threading.Event()
    told: list[bool] = []

    def handler(payload: Any, ctx: Any) -> None:
        if ctx.attempt > 1:
            return
        began.set()
        wait_until(lambda: ctx.cancel_requested, message="the handler is told")
        told.append(True)

    world.handler("w", handler, retry=RetryPolicy(5, lambda attempt: 0))
    job_id = world.enqueue("w")
    with caplog.at_level(logging.INFO, "backwave_django"):
        world.start(lease_duration=0.3)
        assert began.wait(10)
        row = world.store._tables.rows[job_id]
        row.lease_owner = "a thief"
        wait_until(lambda: told, message="the first attempt ends")
        wait_until(lambda: world.state(job_id) is JobState.SUCCEEDED, 30, "the lease lapses")
        assert world.stop() == [0]
    assert len(events(caplog, "job displaced")) == 1
    endings = [t for t in world.store.job_history(job_id) if t.state.is_terminal]
    assert len(endings) == 1


def test_a_log_line_cannot_be_forged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """What an error says is written by ``repr``: no new line, no raw control character."""

    def handler(payload: Any, ctx: Any) -> None:
        raise ValueError("x\n2026-01-01 CRITICAL forged \x1b[31m \ud800")

    world.handler("w", handler, retry=RetryPolicy(1))
    world.enqueue("w")
    with caplog.at_level(logging.INFO, "backwave_django"):
        world.supervisor(burst=True).run()
    (record,) = events(caplog, "job dead-lettered")
    assert "\n" not in record.getMessage()
    assert "\x1b" not in record.getMessage()
    assert record.exc_text is not None
    record.exc_text.encode()


def test_jobs_whose_reports_fail_for_three_leases_are_kept_and_run_once(world: World) -> None:
    """Finished and unreported jobs are renewed and fill the pool, so no more is claimed (A013)."""
    lease = 0.6
    runs: list[str] = []
    refuse = threading.Event()
    refuse.set()
    exchange = world.store.exchange

    def reluctant(worker_id: str, outcomes: Any, request: Any, now: Any) -> Any:
        if outcomes and refuse.is_set():
            raise StoreUnavailable("the disk is busy")
        return exchange(worker_id, outcomes, request, now)

    world.store.exchange = reluctant  # type: ignore[method-assign]
    world.handler("w", lambda payload, ctx: runs.append(str(ctx.job_id)))
    ids = [world.enqueue("w") for _ in range(40)]
    for _ in range(2):
        world.start(lease_duration=lease, pool_size=4)
    wait_until(lambda: len(runs) == 8, message="both pools are full")
    since = elapsed()
    wait_until(lambda: elapsed() > since + 3 * lease, message="three leases go by")
    assert len(runs) == 8
    refuse.clear()
    wait_until(
        lambda: all(world.state(job_id) is JobState.SUCCEEDED for job_id in ids),
        message="all end",
    )
    assert sorted(runs) == sorted(map(str, ids))
    assert world.stop() == [0, 0]
