"""Retry policies: the default back-off, the ceiling, and back-offs that misbehave."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from backwave_django.core.errors import InvalidOption
from backwave_django.core.retry import LONGEST_DELAY, RetryPolicy, default_backoff

from .stories import seconds


@pytest.mark.parametrize(
    ("attempt", "wait"),
    [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 64), (7, 128), (8, 256), (9, 300), (10, 300)],
)
def test_the_default_waits_two_to_the_power_of_the_attempt(attempt: int, wait: int) -> None:
    """2, 4, 8 … seconds, never more than 300."""
    assert default_backoff(attempt) == seconds(wait)
    assert RetryPolicy().delay(attempt) == seconds(wait)


def test_the_default_costs_nothing_for_a_huge_attempt() -> None:
    """An attempt number beyond all bounds still waits 300 seconds."""
    assert default_backoff(10**9) == seconds(300)


def test_the_default_ceiling_is_ten_attempts() -> None:
    """The ninth failure is retried, the tenth is the last."""
    assert RetryPolicy().max_attempts == 10
    assert RetryPolicy().allows_retry(9)
    assert not RetryPolicy().allows_retry(10)
    assert not RetryPolicy().allows_retry(11)


def test_one_attempt_means_no_retry() -> None:
    """A ceiling of 1 lets nothing be tried again."""
    assert not RetryPolicy(max_attempts=1).allows_retry(1)


def test_a_backoff_gets_the_number_of_the_attempt_that_failed() -> None:
    """The back-off sees 1 for the first attempt."""
    seen: list[int] = []

    def backoff(attempt: int) -> float:
        seen.append(attempt)
        return 1

    RetryPolicy(backoff=backoff).delay(3)
    assert seen == [3]


@pytest.mark.parametrize(
    ("given", "wait"),
    [
        (seconds(7), seconds(7)),
        (7, seconds(7)),
        (0.25, seconds(0.25)),
        (0, seconds(0)),
        (-3, seconds(0)),
        (seconds(-3), seconds(0)),
        (timedelta.min, seconds(0)),
        (timedelta.max, LONGEST_DELAY),
        (1e12, LONGEST_DELAY),
    ],
)
def test_a_backoff_gives_a_timedelta_or_seconds(given: Any, wait: timedelta) -> None:
    """What it gives counts, from no wait at all up to the longest one."""
    assert RetryPolicy(backoff=lambda attempt: given).delay(1) == wait


@pytest.mark.parametrize(
    "given",
    [None, "soon", math.nan, math.inf, -math.inf, 1e300, [], Decimal(3), 1 + 2j, object()],
)
def test_nonsense_is_replaced_by_the_default(given: Any) -> None:
    """A back-off that gives nonsense waits as the default one does."""
    assert RetryPolicy(backoff=lambda attempt: given).delay(3) == seconds(8)


@pytest.mark.parametrize("error", [ValueError, ZeroDivisionError, RecursionError, MemoryError])
def test_a_backoff_that_raises_is_replaced_by_the_default(error: type[Exception]) -> None:
    """A fault in a back-off loses no job."""
    assert RetryPolicy(backoff=_raising(error)).delay(2) == seconds(4)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_backoff_cannot_end_the_worker(error: type[BaseException]) -> None:
    """User code that raises ``SystemExit`` is user code that raises."""
    try:
        wait = RetryPolicy(backoff=_raising(error)).delay(2)
    except BaseException as escaped:  # noqa: BLE001 — it would end the test run as well
        pytest.fail(f"{type(escaped).__name__} escaped from a back-off")
    assert wait == seconds(4)


def _raising(error: type[BaseException]) -> Callable[[int], float]:
    def backoff(attempt: int) -> float:
        raise error

    return backoff


@pytest.mark.parametrize("count", [0, -1, 1.5, "3", None, True, False])
def test_a_wrong_ceiling_is_refused(count: Any) -> None:
    """``max_attempts`` is a whole number from 1 up; the message names it."""
    with pytest.raises(InvalidOption, match="max_attempts") as refusal:
        RetryPolicy(max_attempts=count)
    assert refusal.value.facts == {"value": count}
    assert repr(count) in str(refusal.value)


@pytest.mark.parametrize("backoff", [None, 5, "2s", seconds(1)])
def test_a_backoff_that_cannot_be_called_is_refused(backoff: Any) -> None:
    """``backoff`` is a callable; the message names it."""
    with pytest.raises(InvalidOption, match="backoff must be a callable"):
        RetryPolicy(backoff=backoff)
