"""Several pumps on one store that is away for a while: nothing alive runs twice.

Each pump is a driver and the plainest of loops around it, in virtual time; the store is
the in-memory one, behind a door that can be shut.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from backwave_django.core.commands import Command, Exchange, Execute, Heartbeat, Sweep, SweepKind
from backwave_django.core.dispatch import Strict
from backwave_django.core.driver import NodeDriver
from backwave_django.core.events import (
    Event,
    Exchanged,
    Executed,
    Execution,
    Maintained,
    Renewed,
    StoreFailed,
    Ticked,
)
from backwave_django.core.expiry import decide_expiry
from backwave_django.core.options import WorkerGroupOptions
from backwave_django.core.outcomes import ClaimedJob, Lease, Succeeded
from backwave_django.core.retry import RetryPolicy
from backwave_django.storage.memory import InMemoryStore
from backwave_django.storage.values import NewJob

from .stories import NOW, seconds


class Cluster:
    """One store, the instant, and when the store is away."""

    def __init__(self, away: tuple[float, float]) -> None:
        self.store = InMemoryStore()
        self.now = NOW
        self.away = (NOW + seconds(away[0]), NOW + seconds(away[1]))
        self.runs: list[UUID] = []

    @property
    def is_away(self) -> bool:
        """Whether the database cannot be reached now."""
        return self.away[0] <= self.now < self.away[1]


class Pump:
    """A driver and a loop that obeys it; each job takes ``work`` of time."""

    def __init__(self, cluster: Cluster, name: str, lease: float, work: timedelta) -> None:
        self.cluster = cluster
        self.name = name
        self.work = work
        self.policy = RetryPolicy()
        options = WorkerGroupOptions(name=name, policy=Strict("q"), lease_duration=lease)
        self.driver = NodeDriver(
            options, policy_for=lambda wire: self.policy, output_bytes_max=99, now=cluster.now
        )
        self.ends: dict[Lease, datetime] = {}
        self.tell(Ticked(cluster.now))

    def tell(self, event: Event) -> None:
        """Take a step, and carry out what follows from it until nothing does."""
        for command in self.driver.step(event):
            if isinstance(command, Execute):
                self._start(command.jobs)
            elif isinstance(command, Exchange | Heartbeat | Sweep):
                self.tell(self._answer(command))

    def _start(self, jobs: tuple[ClaimedJob, ...]) -> None:
        for job in jobs:
            self.cluster.runs.append(job.lease.job_id)
            self.ends[job.lease] = self.cluster.now + self.work

    def _answer(self, command: Command) -> Event:
        store, now = self.cluster.store, self.cluster.now
        if self.cluster.is_away:
            return StoreFailed(now)
        match command:
            case Exchange(outcomes=outcomes, claim=claim):
                return Exchanged(now, *store.exchange(self.name, outcomes, claim, now))
            case Heartbeat(leases=leases, lease_duration=duration):
                return Renewed(now, leases, store.heartbeat(leases, duration, now))
            case Sweep(kind=SweepKind.LAPSED_LEASES, max_jobs=most):
                lapsed = store.expire_leases(
                    None, lambda lease: decide_expiry(lease, self.policy, now), most, now
                )
                return Maintained(now, lapsed)
        return Maintained(now, 0)

    def next_at(self) -> datetime:
        """When this pump has something to do."""
        wake_at = self.driver.wake_at()
        assert wake_at is not None
        return min([wake_at, *self.ends.values()])

    def go_on(self) -> None:
        """Do what is due now."""
        done = [lease for lease, at in self.ends.items() if at <= self.cluster.now]
        for lease in done:
            del self.ends[lease]
        executions = [Execution(lease, Succeeded()) for lease in done]
        self.tell(Executed(self.cluster.now, executions))


def times_run(cluster: Cluster, lease: float, second_after: float, *, busy_first: bool) -> int:
    """Play eight leases: five jobs of four leases each, and a second pump that finds none."""
    for number in range(5):
        cluster.store.enqueue(NewJob(UUID(int=number), "work", "q", b"", NOW), NOW)
    busy = Pump(cluster, "busy", lease, work=seconds(4 * lease))
    cluster.now += seconds(second_after)
    idle = Pump(cluster, "idle", lease, work=seconds(4 * lease))
    pumps = [busy, idle] if busy_first else [idle, busy]
    while cluster.now < NOW + seconds(8 * lease):
        cluster.now = min(pump.next_at() for pump in pumps)
        for pump in pumps:
            if pump.next_at() <= cluster.now:
                pump.go_on()
    return len(cluster.runs)


@pytest.mark.parametrize("lease", [60, 30, 6])
@pytest.mark.parametrize("busy_first", [True, False])
@pytest.mark.parametrize("second_after", [0.05, 0.4])
def test_nothing_alive_runs_twice_after_an_outage_of_two_leases(
    lease: float, second_after: float, busy_first: bool
) -> None:
    """One pump is at work when the store goes away for two leases, the other has nothing.

    Whichever of them finds the store again first, no job whose handler still runs may be
    swept and started anew (ruling 7).
    """
    cluster = Cluster(away=(lease / 4 + 0.1, 2.25 * lease + 0.1))
    assert times_run(cluster, lease, second_after, busy_first=busy_first) == 5


def test_a_short_lease_leaves_everybody_the_time_to_find_the_store_again() -> None:
    """The wait between two tries may be longer than a heartbeat interval of 2 seconds."""
    cluster = Cluster(away=(3, 18.6))
    assert times_run(cluster, 6, 0.4, busy_first=True) == 5
