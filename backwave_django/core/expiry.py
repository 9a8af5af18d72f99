"""What becomes of a job whose lease lapsed: the attempt failed, whoever held it."""

from __future__ import annotations

from datetime import datetime

from .outcomes import Failed, LapsedLease
from .retry import RetryPolicy


def decide_expiry(lapsed: LapsedLease, policy: RetryPolicy, now: datetime) -> Failed:
    """Give the outcome of an attempt whose worker was lost.

    A worker that dies says nothing, so the lapse is the only witness: it counts as a
    failed attempt, retried by the job's policy and dead-lettered at its ceiling.
    """
    attempt = lapsed.lease.attempt
    cause = (
        f"worker lost: the lease of attempt {attempt} of {policy.max_attempts} expired at "
        f"{lapsed.lease_expires_at.isoformat()} (held by {lapsed.lease.worker_id})"
    )
    retry_at = now + policy.delay(attempt) if policy.allows_retry(attempt) else None
    return Failed(cause=cause, detail=cause, retry_at=retry_at)
