"""What one attempt came to, and the lease that speaks for it.

An outcome is recorded once: it carries the lease that it was earned under, and a store
applies it only while exactly that lease is alive.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from .tags import Tag


class Lease(NamedTuple):
    """One claim of one job by one worker.

    ``claim_number`` never decreases for a job, while ``attempt`` may repeat (a requeue
    sets it to 0, a hand-back gives one back); so the claim number is what tells two
    claims of one job apart.
    """

    job_id: UUID
    worker_id: str
    attempt: int
    claim_number: int


class ClaimedJob(NamedTuple):
    """A job as its claimer gets it.

    ``payload`` is opaque bytes; ``tags`` stand in first-seen order; ``tick`` is the
    instant for which ``schedule_id`` minted the job, if one did.
    """

    lease: Lease
    wire_name: str
    queue: str
    payload: bytes
    tags: tuple[Tag, ...] = ()
    schedule_id: str | None = None
    tick: datetime | None = None
    trace_context: str | None = None


class LapsedLease(NamedTuple):
    """A lease past its end, as a sweep finds it."""

    lease: Lease
    wire_name: str
    queue: str
    lease_expires_at: datetime


class Succeeded(NamedTuple):
    """The handler returned. ``output`` is ``None`` when it set none."""

    output: bytes | None = None
    tags: tuple[Tag, ...] = ()


class Failed(NamedTuple):
    """The attempt failed: retried at ``retry_at``, dead-lettered where that is ``None``.

    ``cause`` is the short reason that a dead letter is given, ``detail`` the diagnosis
    of this attempt.
    """

    cause: str
    detail: str = ""
    retry_at: datetime | None = None
    tags: tuple[Tag, ...] = ()


class Cancelled(NamedTuple):
    """The handler obeyed a request to cancel."""

    cause: str
    tags: tuple[Tag, ...] = ()


class Unroutable(NamedTuple):
    """No handler knows the wire name, or the payload does not decode: quarantined."""

    cause: str


class Released(NamedTuple):
    """Handed back by a worker that stops; ``started`` if its handler had begun."""

    started: bool


Result = Succeeded | Failed | Cancelled | Unroutable | Released


class Outcome(NamedTuple):
    """A result under the lease that it was earned under."""

    lease: Lease
    result: Result


def tags_of(result: Result) -> tuple[Tag, ...]:
    """Give the tags that a result adds to its job."""
    if isinstance(result, Succeeded | Failed | Cancelled):
        return result.tags
    return ()
