"""Retry policies: how long to wait after a failed attempt, and when to give up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from .errors import InvalidOption

DEFAULT_MAX_ATTEMPTS = 10
DEFAULT_BACKOFF_MAX = timedelta(seconds=300)
LONGEST_DELAY = timedelta(days=366)
"""No back-off waits longer: a wrong one must not reach past the end of the calendar."""

Backoff = Callable[[int], "timedelta | float | int"]
"""From the number of the attempt that failed (1 for the first) to the wait, in seconds
where it is a number."""


def default_backoff(attempt: int) -> timedelta:
    """Wait 2 to the power of ``attempt`` seconds, at most 300."""
    # 2 ** 9 is past the cap already; a bigger power of a big attempt costs for nothing.
    return min(timedelta(seconds=2 ** min(attempt, 9)), DEFAULT_BACKOFF_MAX)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A ceiling of attempts and the back-off between them.

    Args:
        max_attempts: attempts in all, the first included; at least 1.
        backoff: from the number of the attempt that failed to the wait before the next.
            A backoff that raises, or gives no duration, is replaced by the default one
            for that attempt: a fault in it must not lose the job. A negative wait is
            none, and none is longer than a year.
    """

    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    backoff: Backoff = default_backoff

    def __post_init__(self) -> None:
        count = self.max_attempts
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidOption(
                f"max_attempts must be a whole number of at least 1, not {count!r}", value=count
            )
        if not callable(self.backoff):
            raise InvalidOption(
                f"backoff must be a callable from attempt to seconds, not {self.backoff!r}",
                value=self.backoff,
            )

    def delay(self, attempt: int) -> timedelta:
        """Give the wait after attempt number ``attempt`` failed; never negative."""
        try:
            wait = self.backoff(attempt)
            if not isinstance(wait, timedelta):
                wait = timedelta(seconds=wait)
        except BaseException:  # noqa: BLE001 — user code; see the class docstring
            wait = default_backoff(attempt)
        return min(max(wait, timedelta(0)), LONGEST_DELAY)

    def allows_retry(self, attempt: int) -> bool:
        """Whether there is an attempt after number ``attempt``."""
        return attempt < self.max_attempts
