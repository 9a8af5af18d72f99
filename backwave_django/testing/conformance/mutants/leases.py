"""Mutants of chapter 4: fences, heartbeats and sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ....core.events import Renewal, Reported, Verdict
from ....core.outcomes import Lease, Outcome
from ....core.states import JobState
from ....storage.contract import ExpiryDecision
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import Row, Tables
from .jobs import OtherTables
from .registry import breaks


class OtherFence(OtherTables):
    """A store that overlooks a part of the fence."""

    overlooked: tuple[str, ...] = ()

    class tables(Tables):  # noqa: N801
        """Tables with a hole in the fence."""

        overlooked: tuple[str, ...] = ()

        def live(self, lease: Lease) -> Row | None:
            """Give the row of a lease that may differ."""
            row = self.rows.get(lease.job_id)
            if row is None or row.state is not JobState.LEASED:
                return None
            held = row.lease()
            lease = lease._replace(**{name: getattr(held, name) for name in self.overlooked})
            return row if held == lease else None


@breaks("4.1", "4.2", "0.6")
class OverlooksTheWorker(OtherFence):
    """Takes the lease of one worker for that of another."""

    class tables(OtherFence.tables):  # noqa: N801
        """Tables with a hole in the fence."""

        overlooked = ("worker_id",)


@breaks("4.1", "4.2")
class OverlooksTheAttempt(OtherFence):
    """Takes an outcome of any attempt."""

    class tables(OtherFence.tables):  # noqa: N801
        """Tables with a hole in the fence."""

        overlooked = ("attempt",)


@breaks("4.1", "4.2", "4.5")
class OverlooksTheClaimNumber(OtherFence):
    """Takes two claims of one attempt for one."""

    class tables(OtherFence.tables):  # noqa: N801
        """Tables with a hole in the fence."""

        overlooked = ("claim_number",)


@breaks("4.1", "5.1")
class KeepsRequestsToItself(InMemoryStore):
    """Renews a lease and does not tell that its job is to be cancelled."""

    def _renewed(self, lease: Lease, until: datetime) -> Renewal:
        renewal = super()._renewed(lease, until)
        return Renewal.RENEWED if renewal is Renewal.CANCEL_REQUESTED else renewal


@breaks("4.1")
class RenewsNothingThatIsAskedToStop(InMemoryStore):
    """Lets the lease of a job that is to be cancelled run out, and answers in any order."""

    def _renewed(self, lease: Lease, until: datetime) -> Renewal:
        row = self._tables.live(lease)
        if row is not None and row.cancel_cause is not None:
            return Renewal.CANCEL_REQUESTED
        return super()._renewed(lease, until)


@breaks("4.1")
class TakesALapsedLeaseForLost(InMemoryStore):
    """Neither renews nor takes an outcome once a lease has lapsed."""

    def heartbeat(
        self, leases: Sequence[Lease], lease_duration: timedelta, now: datetime
    ) -> Sequence[Renewal]:
        """Renew what has not lapsed, once for each job, and nothing for nobody."""
        found = []
        for lease in leases:
            row = self._tables.live(lease)
            lapsed = row is not None and (row.lease_expires_at or now) <= now
            found.append(Renewal.LOST if lapsed else self._renewed(lease, now + lease_duration))
        return found or [Renewal.LOST]


@breaks("4.1")
class NeverShortensALease(InMemoryStore):
    """Keeps the later of two ends."""

    def _renewed(self, lease: Lease, until: datetime) -> Renewal:
        row = self._tables.live(lease)
        if row is not None and row.lease_expires_at is not None:
            until = max(until, row.lease_expires_at)
        return super()._renewed(lease, until)


@breaks("4.1", "8.1")
class LogsHeartbeats(InMemoryStore):
    """Writes a row for every renewal."""

    def _renewed(self, lease: Lease, until: datetime) -> Renewal:
        row = self._tables.live(lease)
        if row is not None and row.transitions:
            row.transitions.append(row.transitions[-1])
        return super()._renewed(lease, until)


class OtherSweep(InMemoryStore):
    """A store that sweeps something else than it should."""

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Sweep."""
        return super().expire_leases(queues, decide, max_jobs, now)


@breaks("4.6", "0.1")
class SweepsTooEarly(OtherSweep):
    """Takes a lease for lapsed a moment before its end."""

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Sweep ahead."""
        later = now + timedelta(seconds=2)
        return super().expire_leases(queues, decide, max_jobs, later)


@breaks("4.6")
class SweepsTooLate(OtherSweep):
    """Gives a lease a second of grace."""

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Sweep behind."""
        return super().expire_leases(queues, decide, max_jobs, now - timedelta(seconds=1))


@breaks("4.6")
class SweepsEveryQueue(OtherSweep):
    """Sweeps jobs of queues that it was not asked for, and as many as there are."""

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Sweep everything."""
        return super().expire_leases(None, decide, 10_000, now)


@breaks("4.6", "4.7", "8.1", "6.1", "1.3", "3.4")
class SweepsNothing(OtherSweep):
    """Leaves every lapsed lease as it is, and says that it was swept."""

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Sweep nothing."""
        return min(1, super().expire_leases(queues, decide, 0, now) + 1)


@breaks("4.6")
class AsksWithoutFacts(OtherSweep):
    """Asks for a decision with a lease that tells little, and keeps no diagnosis."""

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Sweep, and ask badly."""
        return super().expire_leases(
            queues,
            lambda lapsed: decide(lapsed._replace(queue="", lease_expires_at=now))._replace(
                detail=""
            ),
            max_jobs,
            now,
        )


@breaks("4.6")
class EmptiesSweptJobs(OtherSweep):
    """Loses payload and tags of what it sweeps, and lets the lease be reported."""

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Sweep too much."""
        for row in self._tables.rows.values():
            if row.lease_expires_at is not None and row.lease_expires_at <= now:
                row.payload, row.tags = b"", []
        return super().expire_leases(queues, decide, max_jobs, now)


@breaks("4.6")
class SweepsWithoutAFence(OtherSweep):
    """Lets the worker of a swept lease report all the same."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        row = self._tables.rows.get(outcome.lease.job_id)
        if row is not None and row.state is JobState.SCHEDULED and row.claim_number:
            return Reported(Verdict.APPLIED, JobState.SUCCEEDED)
        return super()._recorded(outcome, now, swept=swept)
