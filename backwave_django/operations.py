"""What an operator does to jobs and queues.

Each action is one move of the state machine, never an edit of a row. Called in an open
transaction on the store's alias it is part of it.
"""

from __future__ import annotations

from uuid import UUID

from .deployment import clock, store
from .storage.rules import check_job_id
from .storage.values import CancelResult

__all__ = [
    "CancelResult",
    "cancel",
    "pause_queue",
    "resume_queue",
    "set_concurrency_limit",
]


def cancel(job_id: UUID, *, actor: str | None = None) -> CancelResult:
    """Cancel a job that does not run yet, with all that waits for its success.

    Args:
        job_id: the job.
        actor: who asks; becomes part of the terminal cause. At most 150 characters.

    Returns:
        ``CANCELLED_IMMEDIATELY``; or ``CANCELLATION_REQUESTED`` for a running job, whose
        handler learns of it with the next heartbeat; ``NOT_CANCELLABLE`` for one that
        has ended; ``NOT_FOUND``.
    """
    return store().cancel(check_job_id(job_id), actor, clock().now())


def pause_queue(queue: str, *, actor: str | None = None) -> bool:
    """Let every claim that starts from now on pass a queue by.

    Jobs that run go on. Returns whether the queue was not paused before.
    """
    return store().pause_queue(queue, actor, clock().now())


def resume_queue(queue: str, *, actor: str | None = None) -> bool:
    """Let claims take from a paused queue again; whether it was paused."""
    return store().resume_queue(queue, actor, clock().now())


def set_concurrency_limit(queue: str, limit: int | None, *, actor: str | None = None) -> bool:
    """Bound how many jobs of a queue run at once in the whole cluster.

    Args:
        queue: the queue.
        limit: at least 1; ``None`` lifts the bound. A lower one takes no lease away, it
            only stops new ones.
        actor: who asks; kept with the audit. At most 150 characters.

    Returns:
        Whether that changed anything.
    """
    return store().set_concurrency_limit(queue, limit, actor, clock().now())
