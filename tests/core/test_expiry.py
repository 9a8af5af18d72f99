"""A lease that lapsed is a failed attempt: retried by the policy, or the last one."""

from __future__ import annotations

from uuid import UUID

from backwave_django.core.expiry import decide_expiry
from backwave_django.core.outcomes import LapsedLease, Lease
from backwave_django.core.retry import RetryPolicy

from .stories import NOW, seconds

TWO = RetryPolicy(max_attempts=2, backoff=lambda attempt: 10 * attempt)


def lapsed(attempt: int) -> LapsedLease:
    """Make a lease that lapsed five seconds ago."""
    lease = Lease(UUID(int=1), "host-7", attempt, 4)
    return LapsedLease(lease, "work", "default", NOW - seconds(5))


def test_a_lapse_is_retried_at_the_backoff_of_its_policy() -> None:
    """The wait counts from the sweep, not from the end of the lease."""
    failed = decide_expiry(lapsed(1), TWO, NOW)
    assert failed.retry_at == NOW + seconds(10)


def test_a_lapse_at_the_ceiling_is_the_end() -> None:
    """The last attempt is not tried again."""
    assert decide_expiry(lapsed(2), TWO, NOW).retry_at is None
    assert decide_expiry(lapsed(3), TWO, NOW).retry_at is None


def test_the_cause_says_which_attempt_who_and_when() -> None:
    """The cause tells an operator what to look for."""
    failed = decide_expiry(lapsed(2), TWO, NOW)
    assert failed.cause == (
        "worker lost: the lease of attempt 2 of 2 expired at 2025-12-31T23:59:55+00:00 "
        "(held by host-7)"
    )
    assert failed.detail == failed.cause
    assert failed.tags == ()


def test_a_broken_backoff_does_not_stop_a_sweep() -> None:
    """A policy whose back-off raises waits as the default one does."""
    broken = RetryPolicy(backoff=lambda attempt: 1 / 0)
    assert decide_expiry(lapsed(1), broken, NOW).retry_at == NOW + seconds(2)
