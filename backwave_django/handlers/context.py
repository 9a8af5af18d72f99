"""What a handler is given of its attempt, and what it may raise."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from ..core.errors import InvalidOption
from ..core.outcomes import ClaimedJob
from ..core.tags import Tag, TagLike, tag_from, tag_set
from .codec import Codec
from .errors import OutputTooLarge


class RetryAfter(Exception):
    """Raised by a handler: this attempt failed, try again after a wait of its choosing.

    It counts as an attempt; at the ceiling the job is dead-lettered all the same.

    Args:
        wait: a ``timedelta``, or seconds; not negative.
    """

    def __init__(self, wait: timedelta | float) -> None:
        seconds = wait.total_seconds() if isinstance(wait, timedelta) else float(wait)
        if not math.isfinite(seconds) or seconds < 0:
            raise InvalidOption(f"RetryAfter needs a wait of 0 seconds or more, not {wait!r}")
        super().__init__(f"retry after {seconds:g} seconds")
        self.seconds = seconds


class GiveUp(Exception):
    """Raised by a handler: no further attempt would help; the job is dead-lettered now.

    Args:
        reason: why; the terminal cause becomes ``GiveUp: reason``.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


class JobCancelled(BaseException):
    """Raised by ``JobContext.raise_if_cancelled``; ends the attempt as cancelled.

    Not an ``Exception``, so that a handler's own ``except Exception`` lets it pass.
    """


class Cancellation:
    """Whether an attempt has been asked to stop, and why; set from another thread."""

    __slots__ = ("lease_lost", "requested")

    def __init__(self) -> None:
        self.requested = False
        self.lease_lost = False


class JobContext:
    """One attempt, seen from its handler.

    Attributes:
        job_id: the job's identity.
        attempt: the number of this attempt; 1 for the first.
        max_attempts: the ceiling of attempts.
        wire_name: the job type's declared identity.
        queue: the queue that it was claimed from.
        tags: the tags that it had when it was claimed.
        schedule_id: the schedule that minted it, if one did.
        tick: the instant for which it was minted; aware UTC.
    """

    __slots__ = (
        "_added_tags",
        "_cancellation",
        "_claimed",
        "_output",
        "_output_bytes_max",
        "max_attempts",
    )

    def __init__(
        self,
        claimed: ClaimedJob,
        *,
        max_attempts: int,
        output_bytes_max: int,
        cancellation: Cancellation | None = None,
    ) -> None:
        self._claimed = claimed
        self.max_attempts = max_attempts
        self._output_bytes_max = output_bytes_max
        self._cancellation = cancellation or Cancellation()
        self._added_tags: list[Tag] = []
        self._output: bytes | None = None

    def __repr__(self) -> str:
        return f"<JobContext {self.wire_name!r} {self.job_id} attempt {self.attempt}>"

    @property
    def job_id(self) -> UUID:
        """The job's identity."""
        return self._claimed.lease.job_id

    @property
    def attempt(self) -> int:
        """The number of this attempt; 1 for the first."""
        return self._claimed.lease.attempt

    @property
    def wire_name(self) -> str:
        """The job type's declared identity."""
        return self._claimed.wire_name

    @property
    def queue(self) -> str:
        """The queue that the job was claimed from."""
        return self._claimed.queue

    @property
    def tags(self) -> tuple[Tag, ...]:
        """The tags that the job had when it was claimed, in first-seen order."""
        return self._claimed.tags

    @property
    def schedule_id(self) -> str | None:
        """The schedule that minted the job, if one did."""
        return self._claimed.schedule_id

    @property
    def tick(self) -> datetime | None:
        """The instant for which the job was minted; aware UTC."""
        return self._claimed.tick

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody asked for the job to be cancelled, or its lease was lost."""
        return self._cancellation.requested or self._cancellation.lease_lost

    def raise_if_cancelled(self) -> None:
        """End this attempt here if it was asked to stop.

        Raises:
            JobCancelled: it was; let it pass.
        """
        if self.cancel_requested:
            raise JobCancelled

    def add_tag(self, tag: TagLike, value: str | None = None) -> None:
        """Add a label (``"vip"``) or a keyed tag (``("tenant", "acme")``, or two arguments).

        Kept with whatever this attempt comes to, also a failure. Adding it twice is
        adding it once.

        Raises:
            InvalidOption: a text that cannot be a tag.
        """
        if value is not None:
            tag = (str(tag), value) if isinstance(tag, str) else ("", value)
        self._added_tags.append(tag_from(tag))

    def set_output(self, value: Any) -> None:
        """Leave an output for the jobs that come after; stored only if the job succeeds.

        Raises:
            InvalidPayload: a part of it has no JSON form.
            OutputTooLarge: over the limit ``MaxOutputBytes``; nothing was set.
        """
        encoded = _OUTPUT.encode(value)
        if len(encoded) > self._output_bytes_max:
            raise OutputTooLarge(
                f"output of job {self.wire_name!r} is {len(encoded)} bytes, over the limit "
                f"MaxOutputBytes of {self._output_bytes_max}; store it elsewhere, set a reference",
                size=len(encoded),
                limit=self._output_bytes_max,
            )
        self._output = encoded


_OUTPUT = Codec("output", Any, exact=False)


def added_tags(context: JobContext) -> tuple[Tag, ...]:
    """Give the tags that a handler added, as a set."""
    return tag_set(context._added_tags)


def output_of(context: JobContext) -> bytes | None:
    """Give the encoded output that a handler set."""
    return context._output


def cancellation_of(context: JobContext) -> Cancellation:
    """Give the flag by which an attempt is asked to stop."""
    return context._cancellation
