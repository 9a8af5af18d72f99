"""What the contract lets clients and workers do: the hot path, and its sweeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from ...core.commands import ClaimRequest
from ...core.events import Claimed, Renewal, Reported
from ...core.limits import Limits
from ...core.outcomes import Failed, LapsedLease, Lease, Outcome
from ..capabilities import Capabilities
from ..values import (
    EnqueueResult,
    HistoryPolicy,
    NewJob,
)

ExpiryDecision = Callable[[LapsedLease], Failed]
"""What a sweep asks the Core for each lapsed lease; it must be pure."""


class RunningStore(Protocol):
    """How jobs come in, are run, and end."""

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
