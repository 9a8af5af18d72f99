"""What the contract lets operators do, and what it remembers of it."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol
from uuid import UUID

from ..values import (
    AuditRecord,
    BulkResult,
    CancelResult,
    JobFilter,
    RequeueResult,
    RescheduleResult,
)


class OperatingStore(Protocol):
    """Operator actions: moves of the state machine, never edits of a row.

    Each takes ``actor``, who asked (at most 150 characters, ``None`` for nobody in
    particular), and each that changed something leaves an audit record in the same
    transaction (5.5).
    """

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel a job, or ask for it where it runs (5.1).

        A job that does not run is cancelled now, with its on-success descendants. For a
        leased one the request is noted, and its next heartbeat says so.
        """
        ...

    def requeue(self, job_id: UUID, actor: str | None, now: datetime) -> RequeueResult:
        """Schedule a dead-lettered or quarantined job again, due now, from attempt 0 (5.2).

        What its failure cancelled stays cancelled.
        """
        ...

    def reschedule(
        self, job_id: UUID, due_time: datetime, actor: str | None, now: datetime
    ) -> RescheduleResult:
        """Move the due time of a job that is scheduled or awaits a parent (5.3)."""
        ...

    def cancel_many(
        self,
        job_filter: JobFilter,
        actor: str | None,
        now: datetime,
        *,
        after: int = 0,
        max_jobs: int = 100,
    ) -> BulkResult:
        """Cancel a batch of the jobs that match, as ``cancel`` does each (5.5).

        In order of sequence, beyond ``after``; only jobs that have not ended. At most
        ``max_jobs``, clamped to ``MaxMonitorPageSize``. The batch is one transaction; a
        caller goes on with ``after`` of the answer until ``looked_at`` is 0.
        """
        ...

    def requeue_many(
        self,
        job_filter: JobFilter,
        actor: str | None,
        now: datetime,
        *,
        after: int = 0,
        max_jobs: int = 100,
    ) -> BulkResult:
        """Requeue a batch of the jobs that match, as ``cancel_many`` cancels (5.5)."""
        ...

    def pause_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Let every later claim pass ``queue`` by; whether that changed anything (5.4)."""
        ...

    def resume_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Undo ``pause_queue``; whether that changed anything (5.4)."""
        ...

    def set_concurrency_limit(
        self, queue: str, limit: int | None, actor: str | None, now: datetime
    ) -> bool:
        """Bound the leased jobs of ``queue`` in the cluster; ``None`` lifts it (3.4, 5.4)."""
        ...

    def list_audit(
        self,
        *,
        target: str | None = None,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 50,
    ) -> list[AuditRecord]:
        """Read a page of audit records by number, beyond ``after`` (5.5).

        ``target``: only those of one job id, queue or schedule, as ``AuditRecord`` has
        it. Clamped to ``MaxMonitorPageSize``.
        """
        ...
