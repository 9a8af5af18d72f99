"""Mutants of chapter 3: order, shares, pauses, limits and advice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ....core.commands import ClaimRequest
from ....core.dispatch import QueueShare
from ....core.events import Claimed, Reported
from ....core.outcomes import ClaimedJob, Outcome
from ....core.states import JobState
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import Row, Tables
from .jobs import OtherTables
from .registry import Unlocked, breaks, pause


@breaks("3.1", "6.2")
class ClaimsTooEarly(OtherTables):
    """Takes a job a moment before its time."""

    class tables(Tables):  # noqa: N801
        """Tables that run ahead."""

        def ready(self, queue: str, now: datetime) -> list[Row]:
            """Give what will be due soon."""
            return super().ready(queue, now + timedelta(minutes=1))


@breaks("3.1")
class ClaimsTooLate(OtherTables):
    """Does not take the due time itself for due."""

    class tables(Tables):  # noqa: N801
        """Tables that lag behind."""

        def ready(self, queue: str, now: datetime) -> list[Row]:
            """Give what was due before now."""
            return [row for row in super().ready(queue, now) if row.due_time < now]


@breaks("3.1")
class LeasesForAMinuteOfItsOwn(InMemoryStore):
    """Sets the end of a lease by the due time of the job, and for another worker."""

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Claim with a lease that begins elsewhere."""
        claimed = super().claim(worker_id, request, now)
        for job in claimed.jobs:
            row = self._tables.rows[job.lease.job_id]
            row.lease_expires_at = row.due_time + request.lease_duration
        return claimed


@breaks("3.1", "2.5")
class HandsOverBareJobs(InMemoryStore):
    """Forgets tags and payload of what it hands over."""

    def _claimed(self, row: Row) -> ClaimedJob:
        return super()._claimed(row)._replace(tags=(), payload=b"", trace_context=None)


@breaks("3.1")
class TakesTheOldestFirst(InMemoryStore):
    """Claims by sequence, whatever is due first."""

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        return sorted(super()._chosen(request, room, now), key=lambda row: row.sequence)


@breaks("3.1")
class TakesTheNewestFirst(OtherTables):
    """Takes the last of those that are due at one instant."""

    class tables(Tables):  # noqa: N801
        """Tables that are read from their end."""

        def ready(self, queue: str, now: datetime) -> list[Row]:
            """Give the newest first."""
            return super().ready(queue, now)[::-1]


@breaks("3.1", "0.5")
class ClaimsOneMore(InMemoryStore):
    """Takes a job more than was asked for."""

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        return super()._chosen(request, room + 1, now)


@breaks("3.1")
class ClaimsFromEveryQueue(InMemoryStore):
    """Looks into queues that nobody has asked for."""

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        asked = {share.queue for share in request.shares}
        others = sorted({row.queue for row in self._tables.rows.values()} - asked)
        more = tuple(QueueShare(queue, 0) for queue in others)
        return super()._chosen(request._replace(shares=request.shares + more), room, now)


@breaks("3.1")
class OrdersQueuesByName(InMemoryStore):
    """Goes through the queues in an order of its own."""

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        shares = tuple(sorted(request.shares))
        return super()._chosen(request._replace(shares=shares), room, now)


@breaks("3.1")
class KnowsNoShares(InMemoryStore):
    """Gives the first queue all that it has."""

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        shares = tuple(share._replace(most=room) for share in request.shares)
        return super()._chosen(request._replace(shares=shares), room, now)


@breaks("3.1", "3.3")
class LeavesLeftovers(InMemoryStore):
    """Makes no second pass."""

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        rows: list[Row] = []
        for share in request.shares:
            rows += self._tables.ready(share.queue, now)[: min(share.most, room - len(rows))]
        return rows


@breaks("3.1")
class AddsSharesUp(InMemoryStore):
    """Takes every share, whatever they add up to."""

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        return super()._chosen(request, max(room, sum(share.most for share in request.shares)), now)


@breaks("3.2", "3.4", "5.1")
class ClaimsWithoutALock(Unlocked):
    """Chooses jobs, and takes them some time later, whoever has them by then."""

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        rows = super()._chosen(request, room, now)
        pause()
        for row in rows:
            row.state = JobState.SCHEDULED
        return rows


@breaks("3.2")
class ClaimsLapsedLeases(OtherTables):
    """Takes a lapsed lease away before any sweep has."""

    class tables(Tables):  # noqa: N801
        """Tables in which a lapsed job is due."""

        def ready(self, queue: str, now: datetime) -> list[Row]:
            """Give what is due, and what has lapsed."""
            for row in self.rows.values():
                if row.lease_expires_at is not None and row.lease_expires_at <= now:
                    row.state, row.lease_expires_at = JobState.SCHEDULED, None
            return super().ready(queue, now)


@breaks("3.3", "5.4")
class PausesNothing(InMemoryStore):
    """Notes a pause, and claims all the same."""

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        paused, self._tables.paused = self._tables.paused, set()
        try:
            return super()._chosen(request, room, now)
        finally:
            self._tables.paused = paused


@breaks("3.3")
class PausesEverything(InMemoryStore):
    """Claims nothing at all while any queue is paused."""

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        return [] if self._tables.paused else super()._chosen(request, room, now)


@breaks("3.3")
class PausesKnownQueuesOnly(InMemoryStore):
    """Forgets a pause of a queue that has no job yet."""

    def pause_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Pause what is there."""
        if any(row.queue == queue for row in self._tables.rows.values()):
            return super().pause_queue(queue, actor, now)
        return True


@breaks("3.3")
class PausesRunningJobsToo(InMemoryStore):
    """Takes no outcome of a paused queue."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        row = self._tables.rows.get(outcome.lease.job_id)
        if row is not None and row.queue in self._tables.paused:
            outcome = outcome._replace(lease=outcome.lease._replace(claim_number=-1))
        return super()._recorded(outcome, now, swept=swept)


@breaks("3.3", "3.4")
class RemembersSettingsForAWhile(InMemoryStore):
    """Looks at the settings of queues at every tenth claim only."""

    _claims = 0

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Claim by settings that are out of date."""
        self._claims += 1
        if self._claims % 10 == 1:
            return super().claim(worker_id, request, now)
        tables = self._tables
        paused, limits = tables.paused, tables.queue_limits
        tables.paused, tables.queue_limits = set(), {}
        try:
            return super().claim(worker_id, request, now)
        finally:
            tables.paused, tables.queue_limits = paused, limits


@breaks("3.4", "3.5")
class LimitsNothing(InMemoryStore):
    """Notes a limit, and claims all the same."""

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        limits, self._tables.queue_limits = self._tables.queue_limits, {}
        try:
            return super()._chosen(request, room, now)
        finally:
            self._tables.queue_limits = limits


@breaks("3.4")
class LimitsEachClaim(OtherTables):
    """Takes a limit for that of one claim, and counts nothing that runs."""

    class tables(Tables):  # noqa: N801
        """Tables that do not count."""

        def ready(self, queue: str, now: datetime) -> list[Row]:
            """Give as many as the limit says."""
            limit = self.queue_limits.pop(queue, None)
            rows = super().ready(queue, now)
            if limit is not None:
                self.queue_limits[queue] = limit
            return rows[:limit]


@breaks("3.4")
class CountsEveryQueue(OtherTables):
    """Counts what runs in all queues against the limit of one, and never lifts a limit."""

    class tables(Tables):  # noqa: N801
        """Tables that count too much."""

        def ready(self, queue: str, now: datetime) -> list[Row]:
            """Give what the whole cluster leaves."""
            rows, limit = super().ready(queue, now), self.queue_limits.get(queue)
            running = sum(row.state is JobState.LEASED for row in self.rows.values())
            return rows if limit is None else rows[: max(0, limit - running)]


@breaks("3.4")
class LeaksSlots(OtherTables):
    """Counts jobs against a limit that have run before."""

    class tables(Tables):  # noqa: N801
        """Tables that never give a slot back."""

        def ready(self, queue: str, now: datetime) -> list[Row]:
            """Give what the past leaves."""
            rows, limit = super().ready(queue, now), self.queue_limits.get(queue)
            ran = sum(row.claim_number for row in self.rows.values() if row.queue == queue)
            return rows if limit is None else rows[: max(0, limit - ran)]


@breaks("3.4")
class CountsLiveLeasesOnly(OtherTables):
    """Takes a lapsed lease for a free slot."""

    class tables(Tables):  # noqa: N801
        """Tables that do not wait for the sweep."""

        def ready(self, queue: str, now: datetime) -> list[Row]:
            """Give what live leases leave."""
            limit = self.queue_limits.get(queue)
            if limit is None:
                return super().ready(queue, now)
            lapsed = sum(
                row.lease_expires_at is not None and row.lease_expires_at <= now
                for row in self.rows.values()
            )
            self.queue_limits[queue] = limit + lapsed
            try:
                return super().ready(queue, now)
            finally:
                self.queue_limits[queue] = limit


@breaks("3.4")
class CountsBeforeItChooses(Unlocked):
    """Counts what runs, and claims some time later what there was room for."""

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Claim, and take one's time."""
        claimed = super().claim(worker_id, request, now)
        pause()
        return claimed

    def _chosen(self, request: ClaimRequest, room: int, now: datetime) -> list[Row]:
        jobs = list(self._tables.rows.values())
        free = {
            queue: limit - sum(row.state is JobState.LEASED and row.queue == queue for row in jobs)
            for queue, limit in self._tables.queue_limits.items()
        }
        pause()
        rows: list[Row] = []
        for share in request.shares:
            due = [r for r in jobs if r.state is JobState.SCHEDULED and r.queue == share.queue]
            rows += due[: max(0, min(free.get(share.queue, room), room - len(rows)))]
        return rows


@breaks("3.4")
class TakesLeasesAway(InMemoryStore):
    """Ends leases that are over a lowered limit."""

    def set_concurrency_limit(
        self, queue: str, limit: int | None, actor: str | None, now: datetime
    ) -> bool:
        """Bound a queue by force."""
        running = [r for r in self._tables.rows.values() if r.lease_owner and r.queue == queue]
        for row in running[limit or 1_000 :]:
            row.claim_number += 1
        return super().set_concurrency_limit(queue, limit, actor, now)


@breaks("3.5", "4.8")
class GivesNoAdvice(InMemoryStore):
    """Never says when to come back."""

    def _next_due(self, queues: Sequence[str], now: datetime) -> datetime | None:
        return None


@breaks("3.5")
class AdvisesAtOnce(InMemoryStore):
    """Always says to come back at once."""

    def _next_due(self, queues: Sequence[str], now: datetime) -> datetime | None:
        return now


@breaks("3.5")
class AdvisesForEveryQueue(InMemoryStore):
    """Gives advice for queues that nobody has asked for."""

    def _next_due(self, queues: Sequence[str], now: datetime) -> datetime | None:
        found = [row.due_time for row in self._tables.rows.values()]
        return max(min(found), now) if found else None


@breaks("3.5")
class AdvisesTheNextSecond(InMemoryStore):
    """Gives its advice in whole seconds, also where jobs came."""

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Claim, with bad advice."""
        claimed = super().claim(worker_id, request, now)
        advice = claimed.next_due or (now if claimed.jobs else None)
        return claimed._replace(next_due=None if advice is None else advice.replace(microsecond=0))
