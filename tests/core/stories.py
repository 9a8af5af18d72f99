"""Stories about one node driver, told through ``step(event)`` alone, in virtual time.

A ``Story`` keeps the driver, the instant and what is in flight, and answers the store
command in flight with as little as a test has to say. It also holds the one rule that
every story must keep: there is never more than one store command in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from backwave_django.core.commands import (
    Announce,
    Command,
    Exchange,
    Execute,
    Finish,
    Heartbeat,
    Interrupt,
    StoreCommand,
    Sweep,
)
from backwave_django.core.dispatch import Strict
from backwave_django.core.driver import NodeDriver
from backwave_django.core.events import (
    Claimed,
    Event,
    Exchanged,
    Executed,
    Execution,
    GraceEnded,
    Hinted,
    Maintained,
    Renewal,
    Renewed,
    Reported,
    StopRequested,
    StoreFailed,
    Ticked,
    Verdict,
)
from backwave_django.core.options import WorkerGroupOptions
from backwave_django.core.outcomes import (
    Cancelled,
    ClaimedJob,
    Failed,
    Lease,
    Outcome,
    Released,
    Result,
    Succeeded,
)
from backwave_django.core.retry import RetryPolicy
from backwave_django.core.states import JobState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
OUTPUT_BYTES_MAX = 100

T = TypeVar("T", bound=StoreCommand)


def seconds(count: float) -> timedelta:
    """Give a span of time."""
    return timedelta(seconds=count)


def job(number: int, *, attempt: int = 1, claim: int = 1, queue: str = "default") -> ClaimedJob:
    """Make a claimed job; ``number`` is its identity."""
    lease = Lease(UUID(int=number), "pump", attempt, claim)
    return ClaimedJob(lease, "work", queue, b"{}")


def jobs(count: int, *, first: int = 1) -> list[ClaimedJob]:
    """Make several claimed jobs."""
    return [job(number) for number in range(first, first + count)]


def ended(claimed: ClaimedJob, result: Result | None = None, **extra: Any) -> Execution:
    """Say that an attempt ended; by success where nothing is said."""
    return Execution(claimed.lease, result or Succeeded(), **extra)


def applied(outcome: Outcome) -> Reported:
    """Give what a store answers for an outcome whose lease is alive."""
    match outcome.result:
        case Succeeded():
            state = JobState.SUCCEEDED
        case Failed(retry_at=None):
            state = JobState.DEAD_LETTERED
        case Failed() | Released():
            state = JobState.SCHEDULED
        case Cancelled():
            state = JobState.CANCELLED
        case _:
            state = JobState.QUARANTINED
    return Reported(Verdict.APPLIED, state)


BUSY = Reported(Verdict.BUSY)
STALE = Reported(Verdict.STALE)
TOO_LARGE = Reported(Verdict.OUTPUT_TOO_LARGE)


class Story:
    """A driver, the instant, and the commands of the newest step.

    The sweeps of the start are answered at once, so that a story begins with its first
    claim in flight; maintenance comes once an hour unless a test says otherwise.
    """

    def __init__(
        self,
        *,
        policy_for: Callable[[str], RetryPolicy] | None = None,
        begin: bool = True,
        sweeps_at_once: bool = True,
        **options: Any,
    ) -> None:
        settings: dict[str, Any] = {
            "name": "main",
            "policy": Strict("default"),
            "pool_size": 4,
            "maintenance_interval": HOUR,
        }
        self.options = WorkerGroupOptions(**(settings | options))
        self.now = NOW
        self.driver = NodeDriver(
            self.options,
            policy_for=policy_for or (lambda wire_name: self.options.retry_policy),
            output_bytes_max=OUTPUT_BYTES_MAX,
            now=NOW,
            sweeps_at_once=sweeps_at_once,
        )
        self.in_flight: StoreCommand | None = None
        self.commands: list[Command] = []
        if begin:
            self.tick()
            self.maintained()
            self.maintained()

    def tell(self, event: Event) -> list[Command]:
        """Take one step."""
        self.commands = self.driver.step(event)
        for command in self.commands:
            if isinstance(command, StoreCommand):
                assert self.in_flight is None, "a second store command in flight"
                self.in_flight = command
        return self.commands

    def pass_time(self, by: float) -> None:
        """Let time go by without telling the driver."""
        self.now += seconds(by)

    # -- what happens of itself ---------------------------------------------------

    def tick(self, after: float = 0) -> list[Command]:
        """Let time go by and tell it."""
        self.pass_time(after)
        return self.tell(Ticked(self.now))

    def wake(self) -> list[Command]:
        """Let time go by up to ``wake_at``."""
        wake_at = self.driver.wake_at()
        assert wake_at is not None
        self.now = wake_at
        return self.tell(Ticked(self.now))

    def hint(self, after: float = 0) -> list[Command]:
        """Give a hint."""
        self.pass_time(after)
        return self.tell(Hinted(self.now))

    def executed(self, *executions: Execution | ClaimedJob, after: float = 0) -> list[Command]:
        """Let attempts end; a job alone has succeeded."""
        self.pass_time(after)
        listed = [ended(e) if isinstance(e, ClaimedJob) else e for e in executions]
        return self.tell(Executed(self.now, listed))

    def stop(self, after: float = 0) -> list[Command]:
        """Ask the driver to stop."""
        self.pass_time(after)
        return self.tell(StopRequested(self.now))

    def grace_ended(self, unstarted: Iterable[ClaimedJob] = (), after: float = 0) -> list[Command]:
        """Let the grace of a stop end."""
        self.pass_time(after)
        ids = frozenset(claimed.lease for claimed in unstarted)
        return self.tell(GraceEnded(self.now, ids))

    # -- what the store answers ---------------------------------------------------

    def answering(self, kind: type[T]) -> T:
        """Take the command in flight, which must be of this kind."""
        command, self.in_flight = self.in_flight, None
        assert isinstance(command, kind), f"{command!r} is in flight"
        return command

    def exchanged(
        self,
        *claimed: ClaimedJob,
        reports: Mapping[ClaimedJob, Reported] | None = None,
        next_due: datetime | None = None,
        after: float = 0,
    ) -> list[Command]:
        """Answer the exchange: outcomes applied unless said otherwise, these jobs claimed."""
        self.pass_time(after)
        exchange = self.answering(Exchange)
        said = {claimed.lease: report for claimed, report in (reports or {}).items()}
        answers = [said.get(outcome.lease) or applied(outcome) for outcome in exchange.outcomes]
        claim = None if exchange.claim is None else Claimed(claimed, next_due)
        return self.tell(Exchanged(self.now, answers, claim))

    def renewed(self, renewals: Mapping[ClaimedJob, Renewal] | None = None) -> list[Command]:
        """Answer the heartbeat: all renewed unless said otherwise."""
        leases = self.answering(Heartbeat).leases
        said = {claimed.lease: renewal for claimed, renewal in (renewals or {}).items()}
        answers = [said.get(lease, Renewal.RENEWED) for lease in leases]
        return self.tell(Renewed(self.now, leases, answers))

    def maintained(self, count: int = 0) -> list[Command]:
        """Answer the sweep."""
        self.answering(Sweep)
        return self.tell(Maintained(self.now, count))

    def store_failed(self, after: float = 0) -> list[Command]:
        """Let the command in flight fail."""
        self.pass_time(after)
        self.in_flight = None
        return self.tell(StoreFailed(self.now))

    # -- what the newest step gave ------------------------------------------------

    @property
    def exchange(self) -> Exchange:
        """The exchange in flight."""
        assert isinstance(self.in_flight, Exchange), f"{self.in_flight!r} is in flight"
        return self.in_flight

    @property
    def wanted(self) -> int:
        """How many jobs the exchange in flight asks for."""
        return 0 if self.exchange.claim is None else self.exchange.claim.max_jobs

    @property
    def results(self) -> list[Result]:
        """The results that the exchange in flight reports."""
        return [outcome.result for outcome in self.exchange.outcomes]

    @property
    def started(self) -> list[ClaimedJob]:
        """The jobs that the newest step started."""
        executes = [c for c in self.commands if isinstance(c, Execute)]
        return [claimed for execute in executes for claimed in execute.jobs]

    @property
    def announced(self) -> list[Announce]:
        """What the newest step announced."""
        return [command for command in self.commands if isinstance(command, Announce)]

    @property
    def interrupts(self) -> list[Interrupt]:
        """The interrupts of the newest step."""
        return [command for command in self.commands if isinstance(command, Interrupt)]

    @property
    def finished(self) -> bool:
        """Whether the newest step ended the pump."""
        return Finish() in self.commands
