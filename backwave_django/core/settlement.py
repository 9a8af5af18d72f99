"""From a result to what is written: the one place where outcomes become states.

Every store asks this, so that no two of them can read an outcome differently.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, assert_never
from uuid import UUID

from .limits import Limits
from .outcomes import Cancelled, Failed, Released, Result, Succeeded, Unroutable
from .states import JobState, Move
from .text import storable_cause, storable_detail


class Settlement(NamedTuple):
    """What one live outcome writes.

    ``due_time`` is set exactly where the job is scheduled again, ``cause`` exactly
    where it ends other than by success. ``yields_to_cancel``: a request to cancel that
    stands on the job turns this into ``CANCELLED``, with the cause of the request.
    """

    move: Move
    state: JobState
    due_time: datetime | None = None
    cause: str | None = None
    detail: str | None = None
    output: bytes | None = None
    gives_attempt_back: bool = False
    yields_to_cancel: bool = False


def settlement_of(result: Result, limits: Limits, now: datetime) -> Settlement:
    """Give what ``result`` writes when its lease is alive at ``now``."""
    match result:
        case Succeeded(output=output):
            return Settlement(Move.SUCCEED, JobState.SUCCEEDED, output=output)
        case Failed(cause=cause, detail=detail, retry_at=retry_at):
            stored = storable_detail(detail, limits.max_failure_detail_bytes) or None
            if retry_at is not None:
                return Settlement(
                    Move.RETRY, JobState.SCHEDULED, retry_at, detail=stored, yields_to_cancel=True
                )
            return Settlement(
                Move.DEAD_LETTER,
                JobState.DEAD_LETTERED,
                cause=storable_cause(cause) or "failed",
                detail=stored,
            )
        case Cancelled(cause=cause):
            return Settlement(
                Move.CANCEL,
                JobState.CANCELLED,
                cause=storable_cause(cause) or "cancelled",
                yields_to_cancel=True,
            )
        case Unroutable(cause=cause):
            return Settlement(
                Move.QUARANTINE, JobState.QUARANTINED, cause=storable_cause(cause) or "unroutable"
            )
        case Released(started=started):
            return Settlement(
                Move.HAND_BACK,
                JobState.SCHEDULED,
                now,
                gives_attempt_back=not started,
                yields_to_cancel=True,
            )
        case _:
            assert_never(result)


def cancel_cause(actor: str | None) -> str:
    """Give the terminal cause of a job that was cancelled on request."""
    return f"cancelled by {actor}" if actor else "cancelled on request"


def parent_cause(parent_id: UUID, state: JobState) -> str:
    """Give the terminal cause of a job whose on-success parent ended otherwise."""
    return f"parent {parent_id} ended as {state.label}"
