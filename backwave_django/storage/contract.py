"""The storage contract: the one seam between every decision and every database.

The rules have numbers; they stand in ``docs/reference/storage-contract.md``, and the
conformance suite has at least one test per number. Rules that hold for every operation:

* No operation reads a clock. ``now`` is an aware UTC ``datetime``; a naive one raises
  ``StoreMisused`` (0.1).
* Every operation is atomic: all of its effects or none (0.2).
* Every operation may run at once with any other, and surfaces no raw database error for
  what is only a race (0.3). What is transient raises ``StoreUnavailable``.
* Called inside the caller's open transaction it joins it; outside, it commits by
  itself (0.4).
* No lock that a caller's transaction holds makes ``claim``, ``heartbeat``, ``report`` or
  a sweep wait (0.7).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from ..core.commands import ClaimRequest
from ..core.events import Claimed, Renewal, Reported
from ..core.limits import Limits
from ..core.outcomes import Failed, LapsedLease, Lease, Outcome
from ..core.tags import Tag
from .capabilities import Capabilities
from .values import (
    CancelResult,
    EnqueueResult,
    HistoryPolicy,
    JobCount,
    JobFilter,
    JobSnapshot,
    NewJob,
    Transition,
)

ExpiryDecision = Callable[[LapsedLease], Failed]
"""What a sweep asks the Core for each lapsed lease; it must be pure."""


class JobStore(Protocol):
    """What every store guarantees."""

    limits: Limits
    history: HistoryPolicy

    @property
    def capabilities(self) -> Capabilities:
        """What the store can do."""
        ...

    @property
    def supports_transactional_enqueue(self) -> bool:
        """Whether an enqueue joins the transaction of the application's own writes."""
        ...

    def current_time(self) -> datetime:
        """Give the database's own time, for the cluster clock; one statement.

        Only a store that declares ``cluster_clock`` has it. Nothing else here reads a
        clock.
        """
        ...

    def enqueue(self, job: NewJob, now: datetime) -> EnqueueResult:
        """Store one job, due at ``job.due_time`` (rules 2.1 to 2.5).

        Returns:
            ``OK``, or the first check that failed, in the order payload, wire name,
            parent count, duplicate, unknown parent. Anything but ``OK`` leaves no trace.

        Guarantees:
            In a caller's transaction that rolls back, the job never existed. A
            ``DUPLICATE`` leaves that transaction usable. It waits only for another
            open transaction that enqueued the same ``job_id``.
        """
        ...

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Store jobs in a few statements; an answer per job, in the order given (2.2).

        A rejected job rejects only itself; a failing statement rejects all. Sequences
        follow the order given; a parent may stand earlier in the batch, and the second
        job with one id is a ``DUPLICATE``.
        """
        ...

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Lease due jobs to ``worker_id`` (rules 3.1 to 3.6).

        Returns:
            At most ``request.max_jobs`` jobs (clamped to the limit ``MaxClaimBatch``),
            queue by queue in the order of the shares, within a queue by due time, then
            sequence. Each share is a most for the first pass; what is left over goes to
            any of the queues, in the same order. Fewer may come while others hold rows
            locked. ``next_due`` is computed only where no job came.
        """
        ...

    def heartbeat(
        self, leases: Sequence[Lease], lease_duration: timedelta, now: datetime
    ) -> Sequence[Renewal]:
        """Renew leases to ``now + lease_duration``; an answer per lease, in order (4.1).

        A lease that has lapsed but was not yet swept is renewed. ``BUSY``: the row is
        locked by someone's open transaction, so nothing is known and nothing changed.
        """
        ...

    def report(self, outcomes: Sequence[Outcome], now: datetime) -> Sequence[Reported]:
        """Record outcomes, each under the fence of its lease (4.2 to 4.5).

        Returns:
            An answer per outcome, in order. ``APPLIED`` says the state that was
            recorded (a request to cancel turns a retry into ``CANCELLED``). ``STALE``:
            the lease is not alive, nothing changed. ``BUSY``: a row that it needs is
            locked, nothing changed, try again. ``OUTPUT_TOO_LARGE``: nothing changed.
        """
        ...

    def exchange(
        self,
        worker_id: str,
        outcomes: Sequence[Outcome],
        request: ClaimRequest | None,
        now: datetime,
    ) -> tuple[Sequence[Reported], Claimed | None]:
        """Report, then claim, in as few round trips as the database allows (4.8).

        The claim asks for ``request.max_jobs`` less the outcomes that were not settled
        (``BUSY``, ``OUTPUT_TOO_LARGE``), since those keep their slots. Whether the two
        are one transaction is the store's choice; each by itself is atomic.
        """
        ...

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Dispose of up to ``max_jobs`` lapsed leases, each exactly once (4.6).

        A lease has lapsed when ``lease_expires_at <= now``. Only jobs of ``queues``;
        ``None`` means all of them, also those that nobody serves any more.
        Concurrent sweeps share the work. Returns how many were disposed of.
        """
        ...

    def release_waiting(
        self, max_jobs: int, now: datetime, job_ids: Sequence[UUID] | None = None
    ) -> int:
        """Move waiting jobs on whose parents have ended unseen by them (2.4, 6.4).

        The client asks for this after a commit that enqueued dependents, naming them,
        and every maintenance pass does for all. Jobs whose rows are locked are left for
        the next pass. Returns how many jobs were looked at and moved on.
        """
        ...

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel a job, or ask for it where it runs (5.1).

        A job that does not run is cancelled now, with its on-success descendants. For a
        leased one the request is noted, and its next heartbeat says so. ``actor`` says
        who asked, at most 150 characters.
        """
        ...

    def pause_queue(self, queue: str) -> bool:
        """Let every later claim pass ``queue`` by; whether that changed anything (5.4)."""
        ...

    def resume_queue(self, queue: str) -> bool:
        """Undo ``pause_queue``; whether that changed anything (5.4)."""
        ...

    def set_concurrency_limit(self, queue: str, limit: int | None) -> bool:
        """Bound the leased jobs of ``queue`` in the cluster; ``None`` lifts it (3.4, 5.4)."""
        ...

    def get_job(self, job_id: UUID) -> JobSnapshot | None:
        """Read one job."""
        ...

    def list_jobs(
        self,
        job_filter: JobFilter,
        *,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 50,
    ) -> list[JobSnapshot]:
        """Read a page of jobs by sequence, beyond ``after``; clamped to the page limit (8.4)."""
        ...

    def count_jobs(self) -> list[JobCount]:
        """Count jobs by queue and state, ordered by both; zero counts are left out."""
        ...

    def job_history(self, job_id: UUID) -> list[Transition]:
        """Read a job's transition log, oldest first."""
        ...

    def job_output(self, job_id: UUID) -> bytes | None:
        """Read the output that a succeeded job left, if it left one."""
        ...

    def job_payload(self, job_id: UUID) -> bytes | None:
        """Read a job's payload; ``None`` where there is no such job."""
        ...

    def job_tags(self, job_id: UUID) -> list[Tag]:
        """Read a job's tags in first-seen order; the key is ``None`` for a label."""
        ...
