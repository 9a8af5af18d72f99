"""A tiny store for one pump, and the strict watcher of what its driver does.

The store knows just enough of leases to give true answers: which claim of a job is the
newest, until when it holds, and whether it was taken away. The watcher looks at every
command and says at once when a rule is broken.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from backwave_django.core.commands import ClaimRequest
from backwave_django.core.events import Claimed, Renewal, Reported, Verdict
from backwave_django.core.outcomes import (
    Cancelled,
    ClaimedJob,
    Failed,
    Lease,
    Outcome,
    Released,
    Succeeded,
)
from backwave_django.core.states import JobState

OUTPUT_BYTES_MAX = 10


@dataclass
class Row:
    """One job: waiting (``lease`` is ``None``), leased, elsewhere, or ended."""

    job_id: UUID
    queue: str
    due: datetime
    attempt: int = 0
    claims: int = 0
    lease: Lease | None = None
    expires: datetime | None = None
    cancel: bool = False
    gone: bool = False


@dataclass
class ToyStore:
    """The rows, and the answers to the commands of one pump."""

    rows: dict[UUID, Row] = field(default_factory=dict)
    locked: set[UUID] = field(default_factory=set)

    def add(self, queue: str, now: datetime) -> None:
        """Enqueue one job."""
        job_id = UUID(int=len(self.rows) + 1)
        self.rows[job_id] = Row(job_id, queue, now)

    def live(self, lease: Lease) -> Row | None:
        """Give the row of a lease that is alive."""
        row = self.rows[lease.job_id]
        return row if row.lease == lease else None

    def claim(self, request: ClaimRequest, room: int, now: datetime) -> Claimed:
        """Lease due jobs: shares first, leftovers in their order."""
        chosen: list[Row] = []
        taken: Counter[str] = Counter()
        for first in (True, False):
            for share in request.shares:
                for row in self.rows.values():
                    most = share.most if first else room
                    fits = len(chosen) < room and taken[share.queue] < most
                    if fits and row not in chosen and self._is_ready(row, share.queue, now):
                        chosen.append(row)
                        taken[share.queue] += 1
        jobs = []
        for row in chosen:
            row.attempt += 1
            row.claims += 1
            row.lease = Lease(row.job_id, "pump", row.attempt, row.claims)
            row.expires = now + request.lease_duration
            jobs.append(ClaimedJob(row.lease, "work", row.queue, b""))
        waiting = [row.due for row in self.rows.values() if not row.lease and not row.gone]
        return Claimed(jobs, None if jobs else min(waiting, default=None))

    @staticmethod
    def _is_ready(row: Row, queue: str, now: datetime) -> bool:
        return row.queue == queue and row.lease is None and not row.gone and row.due <= now

    def report(self, outcome: Outcome, now: datetime) -> Reported:
        """Record one outcome under its fence."""
        row = self.live(outcome.lease)
        if row is None:
            return Reported(Verdict.STALE)
        if row.job_id in self.locked:
            return Reported(Verdict.BUSY)
        match outcome.result:
            case Succeeded(output=output) if len(output or b"") > OUTPUT_BYTES_MAX:
                return Reported(Verdict.OUTPUT_TOO_LARGE)
            case Failed(retry_at=datetime() as due):
                return self._again(row, due)
            case Released(started=started):
                row.attempt -= not started
                return self._again(row, now)
            case Cancelled():
                state = JobState.CANCELLED
            case Failed():
                state = JobState.DEAD_LETTERED
            case _:
                state = JobState.SUCCEEDED
        row.lease, row.gone = None, True
        return Reported(Verdict.APPLIED, state)

    @staticmethod
    def _again(row: Row, due: datetime) -> Reported:
        row.lease, row.due, row.gone = None, due, row.cancel
        return Reported(Verdict.APPLIED, JobState.CANCELLED if row.cancel else JobState.SCHEDULED)

    def renew(self, lease: Lease, until: timedelta, now: datetime) -> Renewal:
        """Renew one lease."""
        row = self.live(lease)
        if row is None:
            return Renewal.LOST
        if row.job_id in self.locked:
            return Renewal.BUSY
        row.expires = now + until
        return Renewal.CANCEL_REQUESTED if row.cancel else Renewal.RENEWED

    def take_away(self, lease: Lease, now: datetime, *, comes_back: bool) -> None:
        """Let the lease be swept; the job is due again, or claimed by another node."""
        row = self.rows[lease.job_id]
        row.lease, row.due, row.gone = None, now, not comes_back

    def sweep(self, now: datetime, most: int) -> int:
        """Dispose of lapsed leases; the jobs are due again."""
        held = [(row.lease, row.expires) for row in self.rows.values()]
        lapsed = [lease for lease, expires in held if lease and expires and expires <= now][:most]
        for lease in lapsed:
            self.take_away(lease, now, comes_back=True)
        return len(lapsed)
