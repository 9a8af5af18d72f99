"""What a handler is given, and what it may raise."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backwave_django import (
    GiveUp,
    InvalidOption,
    InvalidPayload,
    JobCancelled,
    OutputTooLarge,
    RetryAfter,
)
from backwave_django.core.tags import Tag
from backwave_django.handlers.context import Cancellation, added_tags, cancellation_of, output_of

from .conftest import JOB_ID, context


def test_the_context_shows_the_attempt() -> None:
    """Each fact under its documented name."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    ctx = context(tags=(Tag("tenant", "acme"),), schedule_id="nightly", tick=at)
    assert (ctx.job_id, ctx.attempt, ctx.max_attempts) == (JOB_ID, 2, 7)
    assert (ctx.wire_name, ctx.queue, ctx.tags) == ("wire", "mail", (Tag("tenant", "acme"),))
    assert (ctx.schedule_id, ctx.tick) == ("nightly", at)
    assert repr(ctx) == f"<JobContext 'wire' {JOB_ID} attempt 2>"
    plain = context()
    assert (plain.tags, plain.schedule_id, plain.tick) == ((), None, None)


@pytest.mark.parametrize(
    "name", ["job_id", "attempt", "wire_name", "queue", "tags", "schedule_id", "tick", "anything"]
)
def test_a_handler_cannot_change_it(name: str) -> None:
    """Facts are read, and nothing is hung on it by a mistyped name."""
    with pytest.raises(AttributeError):
        setattr(context(), name, 1)


# --- Tags ------------------------------------------------------------------------------


def test_tags_are_added_as_a_set_in_first_seen_order() -> None:
    """Labels and keyed tags, in each of the forms; twice is once."""
    ctx = context()
    ctx.add_tag("vip")
    ctx.add_tag(("tenant", "acme"))
    ctx.add_tag("tenant", "globex")
    ctx.add_tag("a:b")
    ctx.add_tag("vip")
    ctx.add_tag("tenant", "acme")
    assert added_tags(ctx) == (
        Tag(None, "vip"), Tag("tenant", "acme"), Tag("tenant", "globex"), Tag(None, "a:b"),
    )  # fmt: skip
    # Those of the claim are what was there before.
    assert ctx.tags == ()


@pytest.mark.parametrize(
    "arguments",
    [("",), (" a",), ("a\x00",), ("\ud800",), ("t" * 257,), (3,), (None,), (("a", "b", "c"),),
     ("k", ""), ("", "v"), ("k" * 65, "v"), ("k", "v" * 257), ("k", 3), (("k", "v"), "w")],
    ids=repr,
)  # fmt: skip
def test_what_cannot_be_a_tag_is_refused(arguments: tuple[Any, ...]) -> None:
    """At once, in the handler, and none is kept."""
    ctx = context()
    with pytest.raises(InvalidOption):
        ctx.add_tag(*arguments)
    assert added_tags(ctx) == ()


# --- Output ----------------------------------------------------------------------------


def test_no_output_is_not_an_output_of_none() -> None:
    """``None`` can be set, and is then there."""
    ctx = context()
    assert output_of(ctx) is None
    ctx.set_output(None)
    assert output_of(ctx) == b"null"


def test_the_last_output_counts() -> None:
    """Setting it again replaces it."""
    ctx = context()
    ctx.set_output({"at": datetime(2026, 1, 1, tzinfo=UTC)})
    ctx.set_output([1, "ä"])
    assert output_of(ctx) == '[1,"ä"]'.encode()


@pytest.mark.parametrize(("size", "fits"), [(99, True), (100, True), (101, False)])
def test_the_limit_of_an_output_is_in_bytes_of_its_encoding(size: int, fits: bool) -> None:
    """At the limit it is taken; one byte more is refused, and the output before stays."""
    ctx = context(output_bytes_max=100)
    ctx.set_output("before")
    text = "x" * (size - 4) + "ä"  # two quotes, and two bytes for the last letter
    if fits:
        ctx.set_output(text)
        assert len(output_of(ctx) or b"") == size
        return
    with pytest.raises(OutputTooLarge, match=r"output of job 'wire' is 101 bytes, .* of 100") as e:
        ctx.set_output(text)
    assert e.value.facts == {"size": 101, "limit": 100}
    assert output_of(ctx) == b'"before"'


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"a": [math.nan]}, r"output: a\[0\]: NaN and Infinity"),
        ({"a": object()}, "output: a: a object has no JSON form"),
        (object(), "output: value: a object has no JSON form"),
        (lambda: 1, "output: value: a function or class"),
        ("\ud800", "output: .*lone surrogate"),
    ],
)
def test_an_output_that_cannot_travel_is_refused(value: Any, why: str) -> None:
    """With the place in it, and the output before stays (A050)."""
    ctx = context()
    ctx.set_output(1)
    with pytest.raises(InvalidPayload, match=f"^{why}"):
        ctx.set_output(value)
    assert output_of(ctx) == b"1"


# --- Cancellation ----------------------------------------------------------------------


def test_nobody_asked() -> None:
    """Then there is nothing to obey."""
    ctx = context()
    assert not ctx.cancel_requested
    ctx.raise_if_cancelled()


@pytest.mark.parametrize("reason", ["requested", "lease_lost"])
def test_a_request_is_seen_while_the_handler_runs(reason: str) -> None:
    """Both an operator's request and a lost lease end the attempt at the next look."""
    flag = Cancellation()
    ctx = context(flag)
    assert cancellation_of(ctx) is flag
    setattr(flag, reason, True)
    assert ctx.cancel_requested
    with pytest.raises(JobCancelled):
        ctx.raise_if_cancelled()


def test_a_broad_except_lets_a_cancellation_pass() -> None:
    """It is no ``Exception``."""
    flag = Cancellation()
    flag.requested = True
    with pytest.raises(JobCancelled):
        try:
            context(flag).raise_if_cancelled()
        except Exception:  # noqa: BLE001 — what handlers of users do
            pytest.fail("swallowed")


# --- RetryAfter, GiveUp ----------------------------------------------------------------


@given(st.timedeltas(timedelta(0)))
def test_a_wait_may_be_any_timedelta_from_zero(wait: timedelta) -> None:
    """It is kept in seconds."""
    assert RetryAfter(wait).seconds == wait.total_seconds()


@pytest.mark.parametrize(
    ("wait", "seconds"), [(0, 0.0), (2, 2.0), (0.5, 0.5), (Decimal("1.5"), 1.5)]
)
def test_a_wait_may_be_seconds(wait: Any, seconds: float) -> None:
    """Zero is a wait of zero, not the default one (A041)."""
    error = RetryAfter(wait)
    assert error.seconds == seconds
    assert str(error) == f"retry after {seconds:g} seconds"


@pytest.mark.parametrize("wait", [-1, timedelta(-1), math.nan, math.inf, -math.inf])
def test_a_wait_that_cannot_be_is_refused(wait: Any) -> None:
    """The message shows it."""
    with pytest.raises(InvalidOption, match="RetryAfter needs a wait of 0 seconds or more, not"):
        RetryAfter(wait)


@pytest.mark.parametrize("wait", [None, "soon", [1], datetime(2026, 1, 1, tzinfo=UTC)])
def test_a_wait_of_a_wrong_type_is_refused(wait: Any) -> None:
    """Where it is raised, not later in the worker."""
    with pytest.raises((TypeError, ValueError)):
        RetryAfter(wait)


def test_giving_up_has_a_reason_or_none() -> None:
    """Both are exceptions that a handler can raise."""
    assert str(GiveUp("no such order")) == "no such order"
    assert str(GiveUp()) == ""
    assert issubclass(GiveUp, Exception)
