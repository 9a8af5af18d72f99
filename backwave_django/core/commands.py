"""What a node is told to do: the only outputs of the driver.

At most one *store command* (``Exchange``, ``Heartbeat``, ``Sweep``) is in flight per
driver; its answer comes back as an event before the next one is given.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import NamedTuple

from .dispatch import QueueShare
from .outcomes import ClaimedJob, Lease, Outcome, Result
from .states import JobState


class ClaimRequest(NamedTuple):
    """Lease at most ``max_jobs`` jobs: each share first, leftovers in the same order."""

    shares: tuple[QueueShare, ...]
    max_jobs: int
    lease_duration: timedelta


class Exchange(NamedTuple):
    """Report outcomes, then claim; either part may be empty."""

    outcomes: tuple[Outcome, ...]
    claim: ClaimRequest | None


class Heartbeat(NamedTuple):
    """Renew these leases."""

    leases: tuple[Lease, ...]
    lease_duration: timedelta


class SweepKind(Enum):
    """The sweeps that every node takes part in."""

    LAPSED_LEASES = "lapsed leases"
    WAITING_JOBS = "waiting jobs"


class Sweep(NamedTuple):
    """Do one bounded part of the maintenance that keeps the cluster whole."""

    kind: SweepKind
    max_jobs: int


class Execute(NamedTuple):
    """Start an attempt of each job."""

    jobs: tuple[ClaimedJob, ...]


class InterruptReason(Enum):
    """Why a running attempt is told that its result may not be wanted."""

    CANCEL_REQUESTED = "cancellation requested"
    LEASE_LOST = "lease lost"


class Interrupt(NamedTuple):
    """Tell a running attempt; it may obey or not."""

    lease: Lease
    reason: InterruptReason


class Announce(NamedTuple):
    """Say what became of an attempt, for logs and metrics.

    ``state`` is the recorded state, ``None`` where the outcome was displaced: the lease
    had gone to another, and nothing was changed. ``result`` is what was decided.
    """

    job: ClaimedJob
    result: Result
    state: JobState | None


class Finish(NamedTuple):
    """Nothing is left to do: the pump may end."""


StoreCommand = Exchange | Heartbeat | Sweep
Command = StoreCommand | Execute | Interrupt | Announce | Finish
