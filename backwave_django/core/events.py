"""What can happen to a node: the only inputs of the driver.

Every event carries ``now``, an aware UTC instant that never goes back from one event
of a pump to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from .outcomes import ClaimedJob, Lease, Result
from .states import JobState


class Ticked(NamedTuple):
    """Time went by: an instant that ``NodeDriver.wake_at`` gave has come."""

    now: datetime


class Hinted(NamedTuple):
    """Something may have been enqueued; only a hint, never needed."""

    now: datetime


class Execution(NamedTuple):
    """One attempt that ended, and what it came to.

    A ``Failed`` result says what happened, not what follows: the driver decides the
    retry. ``retry_after`` is the wait that the handler itself asked for, in seconds;
    ``final`` says that it wants no further attempt.
    """

    lease: Lease
    result: Result
    retry_after: float | None = None
    final: bool = False


class Executed(NamedTuple):
    """Attempts ended; several at once where several ended together."""

    now: datetime
    executions: Sequence[Execution]


class Verdict(Enum):
    """What a store answers for one reported outcome."""

    APPLIED = "applied"
    STALE = "stale"
    BUSY = "busy"
    OUTPUT_TOO_LARGE = "output too large"


class Reported(NamedTuple):
    """The answer for one outcome, with the state that it led to if it was applied."""

    verdict: Verdict
    state: JobState | None = None


class Claimed(NamedTuple):
    """The answer to a claim.

    ``next_due`` is advice: when a claim on these queues could return work; ``None``
    where nothing waits, or where the store did not compute it.
    """

    jobs: Sequence[ClaimedJob] = ()
    next_due: datetime | None = None


class Exchanged(NamedTuple):
    """An exchange came back: an answer per outcome in order, and the claim's answer."""

    now: datetime
    reports: Sequence[Reported]
    claimed: Claimed | None


class Renewal(Enum):
    """What a store answers for one lease in a heartbeat."""

    RENEWED = "renewed"
    CANCEL_REQUESTED = "renewed, cancellation requested"
    LOST = "lost"
    BUSY = "busy"


class Renewed(NamedTuple):
    """A heartbeat came back: an answer per lease, in the order in which they were sent."""

    now: datetime
    leases: Sequence[Lease]
    renewals: Sequence[Renewal]


class Maintained(NamedTuple):
    """A sweep came back; ``changed`` jobs were moved by it."""

    now: datetime
    changed: int


class StoreFailed(NamedTuple):
    """The store command in flight failed for a while: the database is away or overloaded.

    Whether it was carried out is not known.
    """

    now: datetime


class StopRequested(NamedTuple):
    """Claim nothing more; finish what runs, then finish."""

    now: datetime


class GraceEnded(NamedTuple):
    """Wait no longer: hand back what still runs. ``unstarted`` had not begun."""

    now: datetime
    unstarted: frozenset[Lease]


Event = (
    Ticked | Hinted | Executed | Exchanged | Renewed | Maintained
    | StoreFailed | StopRequested | GraceEnded
)  # fmt: skip
