"""The strict watcher of a node driver: every step is checked against the rules."""

from __future__ import annotations

from datetime import datetime, timedelta

from backwave_django.core.commands import (
    Announce,
    Command,
    Exchange,
    Execute,
    Finish,
    Heartbeat,
    Interrupt,
    InterruptReason,
    StoreCommand,
    Sweep,
)
from backwave_django.core.driver import NodeDriver
from backwave_django.core.events import (
    Event,
    Exchanged,
    Executed,
    GraceEnded,
    Maintained,
    Renewal,
    Renewed,
    StopRequested,
    StoreFailed,
    Verdict,
)
from backwave_django.core.outcomes import ClaimedJob, Lease


class Watcher:
    """Takes each step for the driver, and fails as soon as a rule is broken."""

    def __init__(self, driver: NodeDriver, now: datetime) -> None:
        self.driver = driver
        self.now = now
        self.in_flight: StoreCommand | None = None
        self.running: dict[Lease, ClaimedJob] = {}
        self.unwritten: dict[Lease, ClaimedJob] = {}
        self.received: list[Lease] = []
        self.executed: list[Lease] = []
        self.announced: list[Lease] = []
        self.interrupted: set[tuple[Lease, InterruptReason]] = set()
        self.lost: set[Lease] = set()
        self.renewed_at: dict[Lease, datetime] = {}
        self.stopping = self.grace_over = self.finished = self.degraded = False
        self.recovered_at: datetime | None = None

    @property
    def held(self) -> set[Lease]:
        """Every lease that the pump has and that was not settled."""
        return {*self.running, *self.unwritten}

    def step(self, event: Event) -> None:
        """Let the driver take one event, and look at what it does."""
        answered = None
        if isinstance(event, Exchanged | Renewed | Maintained | StoreFailed):
            answered, self.in_flight = self.in_flight, None
        self._before(event, answered)
        for command in self.driver.step(event):
            self._watch(command)
        self._check()

    # -- what the event means -----------------------------------------------------

    def _before(self, event: Event, answered: StoreCommand | None) -> None:
        if isinstance(event, StoreFailed):
            self.degraded, self.recovered_at = True, None
        elif answered is not None and self.degraded:
            self.degraded, self.recovered_at = False, self.now
        match event:
            case Executed(executions=executions):
                for execution in executions:
                    self._ended(execution.lease)
            case Exchanged():
                assert isinstance(answered, Exchange)
                self._exchanged(answered, event)
            case Renewed(leases=leases, renewals=renewals):
                self.renewed_at |= dict.fromkeys(leases, self.now)
                answers = zip(leases, renewals, strict=True)
                self.lost |= {lease for lease, renewal in answers if renewal is Renewal.LOST}
            case StopRequested():
                self.stopping = True
            case GraceEnded():
                self.stopping = self.grace_over = True
                self.unwritten |= self.running
                self.running = {}

    def _exchanged(self, exchange: Exchange, event: Exchanged) -> None:
        for outcome, report in zip(exchange.outcomes, event.reports, strict=True):
            if report.verdict in (Verdict.APPLIED, Verdict.STALE):
                del self.unwritten[outcome.lease]
        for job in event.claimed.jobs if event.claimed else ():
            self.received.append(job.lease)
            self.renewed_at[job.lease] = self.now
            where = self.unwritten if self.stopping else self.running
            where[job.lease] = job

    def _ended(self, lease: Lease) -> None:
        job = self.running.pop(lease, None)
        if job is not None and lease not in self.lost:
            self.unwritten[lease] = job

    # -- what the driver does -----------------------------------------------------

    def _watch(self, command: Command) -> None:
        assert not self.finished, f"{command} after the end"
        if isinstance(command, StoreCommand):
            assert self.in_flight is None, "a second store command in flight"
            self.in_flight = command
        match command:
            case Exchange():
                self._watch_exchange(command)
            case Heartbeat(leases=leases):
                assert len(set(leases)) == len(leases)
                assert self.held - self.lost <= set(leases) <= self.held
            case Sweep():
                assert not self.stopping, "a stopping pump sweeps"
                assert not self.degraded, "a sweep as the probe of a store that is away"
                recovered_at = self.recovered_at
                calm = recovered_at is None or self.now >= recovered_at + self._heartbeat
                assert calm, "a sweep right after an outage"
            case Execute(jobs=jobs):
                assert not self.grace_over, "started when nobody waits for it any more"
                self.executed += [job.lease for job in jobs]
                assert set(self.executed) <= set(self.received)
            case Interrupt(lease=lease, reason=reason):
                assert lease in self.running
                assert (lease, reason) not in self.interrupted, "interrupted twice"
                self.interrupted.add((lease, reason))
            case Announce(job=job):
                assert job.lease not in self.held, "announced while it holds a slot"
                self.announced.append(job.lease)
            case Finish():
                assert self.stopping
                assert not self.held
                self.finished = True

    def _watch_exchange(self, exchange: Exchange) -> None:
        leases = [outcome.lease for outcome in exchange.outcomes]
        assert len(set(leases)) == len(leases)
        assert len(leases) <= self.driver.options.outcome_batch
        assert set(leases) <= set(self.unwritten)
        if exchange.claim is None:
            assert leases, "an exchange of nothing"
            return
        assert not self.stopping, "a stopping pump claims"
        free = self.driver.options.pool_size - len(self.held) + len(leases)
        assert 1 <= exchange.claim.max_jobs <= min(free, self.driver.options.max_claim_batch)

    # -- what holds between steps -------------------------------------------------

    @property
    def _heartbeat(self) -> timedelta:
        return self.driver.options.heartbeat

    def _check(self) -> None:
        driver = self.driver
        assert len(self.held) <= driver.options.pool_size
        assert driver.capacity == driver.options.pool_size - len(self.held)
        assert driver.has_work == bool(self.held)
        assert driver.is_degraded == self.degraded
        assert max(map(self.announced.count, self.announced), default=0) <= 1
        wake_at = driver.wake_at()
        if self.in_flight is not None or self.finished:
            assert wake_at is None
            return
        assert wake_at is not None, "nobody would ever wake this pump"
        assert wake_at > self.now, "something is due and was not done"
        if not self.degraded:
            for lease in self.held - self.lost:
                assert wake_at <= self.renewed_at[lease] + self._heartbeat, "a heartbeat is late"
        else:
            assert wake_at <= self.now + timedelta(seconds=15)
