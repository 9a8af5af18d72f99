"""What a type checker has to refuse: each marked line gives exactly that error, no other any."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from backwave_django import JobContext, RetryAfter, RetryPolicy, enqueue, enqueue_many, handles, job


@job("plain")
def plain(order_id: int, note: str = "") -> str:
    """Take no context."""
    return note * order_id


@job("first")
def first(ctx: JobContext, order_id: int, *, flag: bool = False) -> None:
    """Take the context first."""


@job("later")
async def later(ctx: JobContext, url: str) -> int:
    """Be async."""
    return 1


@job("charged")
@dataclass(frozen=True)
class Charged:
    """A payload."""

    order_id: UUID


def arguments_of_another_type() -> None:
    """Each is checked against the handler's own annotation."""
    plain.enqueue("42")  # E: arg-type
    plain.enqueue(order_id="42")  # E: arg-type
    plain.enqueue(42, note=7)  # E: arg-type
    first.enqueue(None)  # E: arg-type
    first.enqueue(42, flag="yes")  # E: arg-type
    later.enqueue(url=b"x")  # E: arg-type
    plain.payload("42")  # E: arg-type


def arguments_that_do_not_fit() -> None:
    """Too few, too many, of a wrong name."""
    plain.enqueue()  # E: call-arg
    plain.enqueue(1, "a", 2)  # E: call-arg
    plain.enqueue(order=42)  # E: call-arg
    plain.enqueue(1, order_id=2)  # E: misc
    first.enqueue()  # E: call-arg
    first.enqueue(42, True)  # E: call-arg
    plain.payload()  # E: call-arg


def the_context_is_not_passed(ctx: JobContext) -> None:
    """The worker does that."""
    first.enqueue(ctx, 42)  # E: call-arg,arg-type
    first.enqueue(42, ctx=ctx)  # E: call-arg


def options_have_their_own_place() -> None:
    """Not among the handler's arguments."""
    plain.enqueue(42, queue="slow")  # E: call-arg
    plain.using(42)  # E: call-arg
    plain.using(delay=5)  # E: call-arg
    plain.using(due=5)  # E: arg-type
    plain.using(queue=3)  # E: arg-type
    plain.using(tags=[3])  # E: list-item
    plain.using(job_id="x")  # E: arg-type
    plain.using(on_duplicate="ignore")  # E: arg-type
    plain.using(due=timedelta(1)).enqueue("42")  # E: arg-type
    first.using(queue="q").enqueue()  # E: call-arg
    enqueue(plain.payload(1), due_time=5)  # E: call-arg
    enqueue_many(plain.payload(1))  # E: arg-type


async def async_code() -> None:
    """The same checks."""
    await plain.aenqueue("42")  # E: arg-type
    await later.using(queue="q").aenqueue()  # E: call-arg
    await plain.enqueue(42)  # E: misc


def results() -> None:
    """An id is no result, and a job no function of another shape."""
    wrong: str = plain.enqueue(42)  # E: assignment
    number: int = plain(42, "x")  # E: assignment
    other: type[dict[str, int]] = Charged  # E: assignment
    assert wrong, number
    assert other


def payloads() -> None:
    """A payload class is checked as it is."""
    enqueue(Charged(order_id="x"))  # E: arg-type
    enqueue(Charged())  # E: call-arg


def declarations() -> None:
    """Options of the decorators, and what they stand on."""
    job()  # E: call-arg
    job("a", queue=3)  # E: arg-type
    job("a", labels=[("k", "v")])  # E: list-item
    job("a", retry=3)  # E: arg-type
    job("a", unknown=3)  # E: call-arg
    RetryPolicy(max_attempts="3")  # E: arg-type
    RetryAfter("soon")  # E: arg-type

    @handles(Charged)
    class WithoutHandle:  # E: type-var
        """No method."""
