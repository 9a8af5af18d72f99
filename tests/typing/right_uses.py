"""What users write, and what a type checker has to take; only checked, never run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_type
from uuid import UUID

import msgspec

from backwave_django import (
    DuplicateJob,
    GiveUp,
    JobContext,
    JobState,
    OnAnyTerminal,
    OnSuccess,
    RetryAfter,
    RetryPolicy,
    Strict,
    Weighted,
    aenqueue,
    enqueue,
    enqueue_dependency,
    enqueue_many,
    handles,
    job,
    monitor,
    operations,
)
from backwave_django.monitor import JobSnapshot
from backwave_django.operations import CancelResult


@job("plain", queue="emails", labels=["mail"], retry=RetryPolicy(max_attempts=5))
def plain(order_id: int, note: str = "") -> str:
    """Take no context."""
    return note * order_id


@job("first")
def first(ctx: JobContext, order_id: int, *, at: datetime | None = None) -> None:
    """Take the context first: the rest is fully typed."""


@job("last")
def last(order_id: int, ctx: JobContext) -> None:
    """Take the context last: accepted, with any arguments."""


@job("third")
def third(order_id: int, note: str, ctx: JobContext) -> None:
    """Take it in third place."""


@job("later")
async def later(ctx: JobContext, url: str) -> int:
    """Be async."""
    if ctx.cancel_requested:
        raise GiveUp("no longer wanted")
    raise RetryAfter(timedelta(seconds=5))


@job("variadic")
def variadic(*numbers: int, **words: str) -> None:
    """Take any number of each."""


@job("charged")
@dataclass(frozen=True)
class Charged:
    """A payload."""

    order_id: UUID


@job("struct")
class Struct(msgspec.Struct):
    """A payload of msgspec's."""

    x: int


@handles(Charged)
class ChargedHandler:
    """Its handler."""

    def handle(self, job: Charged, ctx: JobContext) -> None:
        """Handle it."""
        ctx.add_tag("vip")
        ctx.add_tag(("tenant", "acme"))
        ctx.add_tag("tenant", "acme")
        ctx.set_output({"order": job.order_id})
        assert_type(ctx.job_id, UUID)
        assert_type(ctx.attempt, int)
        assert_type(ctx.tick, datetime | None)


@handles(Struct)
class AsyncHandler:
    """An async handler."""

    async def handle(self, job: Struct, ctx: JobContext) -> None:
        """Handle it."""


def callers(parent: UUID) -> None:
    """Enqueue in every way there is."""
    assert_type(plain.enqueue(42), UUID)
    assert_type(plain.enqueue(order_id=42, note="x"), UUID)
    assert_type(plain(2, "x"), str)
    assert_type(plain.wire_name, str)
    assert_type(first.enqueue(42), UUID)
    assert_type(first.enqueue(order_id=42, at=None), UUID)
    last.enqueue(order_id=42)
    last.enqueue(42)
    third.enqueue(42, note="x")
    variadic.enqueue(1, 2, 3, a="b")
    assert_type(later.enqueue(url="x"), UUID)
    prepared = plain.using(
        due=timedelta(hours=2),
        queue="slow",
        tags=["vip", ("tenant", "acme")],
        idempotency_key="k",
        on_duplicate="return",
        after=[parent],
        mode=OnAnyTerminal,
    )
    assert_type(prepared.enqueue(42, note="x"), UUID)
    first.using(due=datetime.now().astimezone(), job_id=parent).enqueue(42)
    assert_type(enqueue(Charged(order_id=parent), due=timedelta(1), tags=("a",)), UUID)
    assert_type(enqueue(plain.payload(42)), UUID)
    assert_type(enqueue_many([plain.payload(1), Struct(x=2)]), list[UUID])
    assert_type(enqueue_dependency(Struct(x=1), parents=[parent], mode=OnSuccess), UUID)
    try:
        plain.enqueue(1)
    except DuplicateJob as error:
        assert_type(error.job_id, UUID)


async def async_callers() -> None:
    """Do so from async code."""
    assert_type(await plain.aenqueue(42, note="x"), UUID)
    assert_type(await first.using(queue="q").aenqueue(42), UUID)
    assert_type(await aenqueue(plain.payload(1), queue="q"), UUID)


def classes_stay_classes() -> None:
    """The decorators give back the class itself."""
    assert_type(Charged(order_id=UUID(int=1)), Charged)
    assert_type(Charged(order_id=UUID(int=1)).order_id, UUID)
    assert_type(Struct(x=1).x, int)
    assert_type(ChargedHandler(), ChargedHandler)
    checked: type[Charged] = Charged
    assert checked


def operators(job_id: UUID) -> None:
    """Operate and look."""
    assert_type(operations.cancel(job_id, actor="ada"), CancelResult)
    assert_type(operations.pause_queue("q"), bool)
    assert_type(operations.set_concurrency_limit("q", None), bool)
    assert_type(monitor.get_job(job_id), JobSnapshot | None)
    assert_type(monitor.list_jobs(state=JobState.LEASED, tags=["a"]), list[JobSnapshot])
    assert_type(JobState.LEASED.is_terminal, bool)


BACKWAVE = {
    "WORKER_GROUPS": {
        "default": {"policy": Strict("urgent", "default")},
        "mail": {"policy": Weighted({"emails": 3, "reports": 1}), "pool_size": 50},
    },
}
RETRIES = [
    RetryPolicy(backoff=lambda attempt: 2**attempt),
    RetryPolicy(3, lambda attempt: timedelta(seconds=attempt)),
]
