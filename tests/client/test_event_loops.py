"""Handlers that start event loops, or use the database from one, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.management import call_command

from backwave_django import JobState, RetryPolicy, enqueue_many, job, monitor
from backwave_django.conf import configuration
from backwave_django.core.dispatch import Strict
from backwave_django.handlers.registry import registry
from tests.testapp.jobs import nothing
from tests.testapp.models import Effect

ONCE = RetryPolicy(max_attempts=1)
SIDE_BY_SIDE = 8


def _write(key: str) -> None:
    Effect.objects.using(configuration().database).create(key=key)


async def _pause() -> int:
    await asyncio.sleep(0)
    return 1


async def _ten() -> int:
    return sum(await asyncio.gather(*(_pause() for _ in range(10))))


def runs_a_loop() -> None:
    """Use ``asyncio.run`` in a plain function."""
    assert asyncio.run(_ten()) == 10


def calls_async_code() -> None:
    """Use ``async_to_sync`` in a plain function."""
    assert async_to_sync(_ten)() == 10


async def uses_the_orm() -> None:
    """Use the ORM from async code, by each of its ways."""
    await sync_to_async(_write)("orm")
    await Effect.objects.using(configuration().database).acreate(key="orm")


async def enqueues() -> None:
    """Enqueue from async code."""
    await nothing.aenqueue()


@pytest.fixture
def kinds() -> Iterator[list[Any]]:
    """Declare the four kinds of handlers for this test."""
    handlers = (runs_a_loop, calls_async_code, uses_the_orm, enqueues)
    declared = [job(f"loops-{f.__name__}", retry=ONCE)(f) for f in handlers]
    yield declared
    for each in declared:
        registry.remove(each.wire_name)


@pytest.mark.parametrize("rounds", [3, pytest.param(200, marks=pytest.mark.long)])
def test_event_loops_do_not_lock_each_other(
    committed: str, settings: Any, kinds: list[Any], rounds: int
) -> None:
    """Eight of each on four slots, again and again: all end, and none with an error (A093)."""
    group = {"policy": Strict("default"), "pool_size": 4, "poll_interval": 0.05}
    settings.BACKWAVE = {"DATABASE": committed, "WORKER_GROUPS": {"default": group}}
    for _ in range(rounds):
        enqueue_many([kind.payload() for _ in range(SIDE_BY_SIDE) for kind in kinds])
        call_command("backwave_worker", groups=["default"], burst=True, verbosity=0)
    failed = [
        monitor.job_history(found.job_id)[-1].failure_detail
        for found in monitor.list_jobs(state=JobState.DEAD_LETTERED)
    ]
    assert failed == []
    assert {count.state: count.count for count in monitor.count_jobs()} == {
        # Four kinds, and what one of them has enqueued.
        JobState.SUCCEEDED: 5 * SIDE_BY_SIDE * rounds
    }
    assert Effect.objects.using(committed).count() == 2 * SIDE_BY_SIDE * rounds
