"""Observers of the transition log, and what is delivered to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from ...core.states import JobState


@dataclass(frozen=True, slots=True)
class ObserverDefinition:
    """Which transitions an observer wants; conditions join with AND.

    Attributes:
        name: its identity, at most 128 characters.
        states: the states whose being reached is delivered; at least one.
        wire_names: only jobs of these types; empty means all.
        queues: only jobs of these queues; empty means all.
    """

    name: str
    states: frozenset[JobState]
    wire_names: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()


class ObserverLease(NamedTuple):
    """The right to deliver to an observer; the fence of what is reported."""

    name: str
    worker_id: str
    claim_number: int


class Delivery(NamedTuple):
    """One transition on its way to an observer; ``position`` grows along the log."""

    position: int
    job_id: UUID
    wire_name: str
    queue: str
    ordinal: int
    at: datetime
    state: JobState
    attempt: int
    claim_number: int


class ObserverClaim(NamedTuple):
    """What a worker shall deliver, in order, under a lease.

    Attributes:
        lease: under which it is reported.
        deliveries: the transitions; at least one.
        tries: how often the first of them has failed before.
    """

    lease: ObserverLease
    deliveries: tuple[Delivery, ...]
    tries: int


class RetryDelivery(NamedTuple):
    """The delivery failed and shall be tried again, not before ``retry_at``."""

    retry_at: datetime


class DropDelivery(NamedTuple):
    """The delivery failed for good: it is recorded as a dead letter, and passed."""

    cause: str


class DeliveryVerdict(Enum):
    """What became of a report. ``STALE``: the lease is another's, nothing changed."""

    APPLIED = "applied"
    STALE = "stale"


class DeadDelivery(NamedTuple):
    """A delivery that was given up, with why and when."""

    number: int
    delivery: Delivery
    cause: str
    failed_at: datetime


class ObserverState(NamedTuple):
    """An observer as a read finds it.

    Attributes:
        definition: what it wants.
        cursor: the position up to which it has been served.
        lag: matching transitions behind the cursor.
        tries: how often the next delivery has failed.
        not_before: when that is tried again.
        lease_owner: who delivers to it; the lease may have lapsed.
        lease_expires_at: when the lease lapses.
        dead: dead deliveries.
        lost: matching transitions that were let go before they were delivered.
    """

    definition: ObserverDefinition
    cursor: int
    lag: int
    tries: int
    not_before: datetime | None
    lease_owner: str | None
    lease_expires_at: datetime | None
    dead: int
    lost: int
