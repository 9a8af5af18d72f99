"""What operators do, and what came of it."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import NamedTuple


class CancelResult(Enum):
    """What a cancel came to."""

    CANCELLED_IMMEDIATELY = "cancelled immediately"
    CANCELLATION_REQUESTED = "cancellation requested"
    NOT_CANCELLABLE = "not cancellable"
    NOT_FOUND = "not found"


class RequeueResult(Enum):
    """What a requeue came to."""

    REQUEUED = "requeued"
    NOT_REQUEUEABLE = "not requeueable"
    NOT_FOUND = "not found"


class RescheduleResult(Enum):
    """What a reschedule came to."""

    RESCHEDULED = "rescheduled"
    NOT_RESCHEDULABLE = "not reschedulable"
    NOT_FOUND = "not found"


class BulkResult(NamedTuple):
    """What one batch of a bulk action came to.

    Attributes:
        looked_at: the jobs that matched; 0 means that nothing is left to do.
        changed: those of them that the action changed.
        after: the sequence to go on from, ``None`` where nothing matched.
    """

    looked_at: int
    changed: int
    after: int | None


class AuditAction(Enum):
    """What an operator did. The values are what is stored."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    RESCHEDULE = "reschedule"
    PAUSE_QUEUE = "pause queue"
    RESUME_QUEUE = "resume queue"
    SET_CONCURRENCY_LIMIT = "set concurrency limit"
    TRIGGER_SCHEDULE = "trigger schedule"

    @property
    def is_on_job(self) -> bool:
        """Whether the target is a job id; otherwise it is a name."""
        return self in (AuditAction.CANCEL, AuditAction.REQUEUE, AuditAction.RESCHEDULE)


class AuditRecord(NamedTuple):
    """One thing that an operator did.

    Attributes:
        number: grows with every record.
        at: when, aware UTC.
        actor: who; ``None`` for nobody in particular.
        action: what.
        target: a job id in its canonical form, or the name of a queue or schedule.
        detail: what the action was given, such as the new limit; empty where nothing.
    """

    number: int
    at: datetime
    actor: str | None
    action: AuditAction
    target: str
    detail: str
