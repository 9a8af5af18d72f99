"""The node driver: the state machine behind one pump.

One way in: ``step(event)`` takes what happened and gives the commands that follow, in
order. It never waits, never reads a clock and never fails for what a store or a handler
did; the pump and the simulator are its two callers.

What it holds. *Capacity*: ``pool_size`` less the jobs in flight, less the outcomes not
yet written (a finished job keeps its lease until its outcome is recorded). *Cadences*:
the next poll, heartbeat and sweep. *One store command in flight*: nothing else goes to
the store before its answer is back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from .attempts import Attempts
from .commands import (
    Announce,
    ClaimRequest,
    Command,
    Exchange,
    Execute,
    Finish,
    Heartbeat,
    Interrupt,
    InterruptReason,
    StoreCommand,
    Sweep,
    SweepKind,
)
from .dispatch import Dispatcher
from .errors import InvariantViolated
from .events import (
    Claimed,
    Event,
    Exchanged,
    Executed,
    GraceEnded,
    Hinted,
    Maintained,
    Renewal,
    Renewed,
    Reported,
    StopRequested,
    StoreFailed,
    Ticked,
)
from .invariants import require
from .options import WorkerGroupOptions
from .polling import Polling
from .retry import RetryPolicy

Answered = TypeVar("Answered", Exchange, Heartbeat, Sweep)

SWEEP_BATCH = 100
"""Jobs that one sweep changes at most, so that no sweep holds the pump for long."""

RETRY_WAIT_MIN = timedelta(seconds=0.5)
RETRY_WAIT_MAX = timedelta(seconds=15)
"""Waits between two tries while the store is away: doubling from the first to the last,
and never over half a heartbeat interval, so that every pump has found the store again
before any of them sweeps."""


class NodeDriver:
    """All decisions of one pump.

    Args:
        options: the group's options.
        policy_for: the retry policy of a wire name: the job type's own, else the
            group's. It must be a pure look-up.
        output_bytes_max: the store's limit, for the failure text of a larger output.
        now: the instant of the start.
        sweeps_at_once: whether the first sweep comes at the start, and not one heartbeat
            interval later. A pump cannot know what was before its start: where that was
            an outage, others have yet to renew what they hold.
    """

    def __init__(
        self,
        options: WorkerGroupOptions,
        *,
        policy_for: Callable[[str], RetryPolicy],
        output_bytes_max: int,
        now: datetime,
        sweeps_at_once: bool = False,
    ) -> None:
        self.options = options
        self._dispatcher = Dispatcher(options.policy)
        self._polling = Polling(options.poll_floor, options.poll_ceiling, now)
        self._attempts = Attempts(policy_for, output_bytes_max)
        self._in_flight: StoreCommand | None = None
        self._now = now
        self._heartbeat_at = now + options.heartbeat
        self._sweeps: list[SweepKind] = []
        self._sweep_at = now if sweeps_at_once else now + options.heartbeat
        self._sweep_was_full = False
        self._retry_at: datetime | None = None
        self._retry_wait_max = min(RETRY_WAIT_MAX, options.heartbeat / 2)
        self._retry_wait = min(RETRY_WAIT_MIN, self._retry_wait_max)
        self._asked_at = now
        self._stopping = False
        self._finished = False
        self._handlers: dict[type, Callable[..., list[Command]]] = {
            Ticked: lambda event: [],
            Hinted: self._on_hinted,
            Executed: self._on_executed,
            Exchanged: self._on_exchanged,
            Renewed: self._on_renewed,
            Maintained: self._on_maintained,
            StoreFailed: self._on_store_failed,
            StopRequested: self._on_stop_requested,
            GraceEnded: self._on_grace_ended,
        }

    # -- what a caller may ask ----------------------------------------------------

    @property
    def capacity(self) -> int:
        """Jobs that this pump could take on now."""
        return self.options.pool_size - self._attempts.count

    @property
    def has_work(self) -> bool:
        """Whether any job is in flight or any outcome unwritten."""
        return self._attempts.count > 0

    @property
    def is_degraded(self) -> bool:
        """Whether the store failed and has not answered since."""
        return self._retry_at is not None

    @property
    def idle_since(self) -> datetime | None:
        """When the newest claim was asked for, if it found nothing and nothing came since."""
        return None if self.has_work else self._polling.empty_at

    def wake_at(self) -> datetime | None:
        """Give the next instant at which something is due, if no event comes before.

        ``None``: nothing is due by time alone (a store command is in flight, or all is
        finished).
        """
        if self._in_flight is not None or self._finished:
            return None
        if self._retry_at is not None:
            return self._retry_at
        instants = [at for at in (self._attempts.held_until,) if at is not None]
        if self._attempts.count:
            instants.append(self._heartbeat_at)
        if not self._stopping:
            instants.append(self._sweep_at)
            if self.capacity > 0:
                instants.append(self._polling.next_at)
        return min(instants, default=None)

    # -- the one way in -----------------------------------------------------------

    def step(self, event: Event) -> list[Command]:
        """Take one event; give the commands that follow from it, in order."""
        require(event.now >= self._now, "time went back", before=self._now, now=event.now)
        if event.now - self._now > self.options.lease:
            # The host slept, or this thread did not get to run: so did others, perhaps.
            self._sweep_at = max(self._sweep_at, event.now + self.options.heartbeat)
        self._now = event.now
        commands = self._handlers[type(event)](event)
        if self._in_flight is None and not self._finished:
            commands += self._next_commands()
        return commands

    def _next_commands(self) -> list[Command]:
        self._attempts.release_held(self._now)
        if self._stopping and not self._attempts.count:
            self._finished = True
            return [Finish()]
        if self._retry_at is not None and self._now < self._retry_at:
            return []
        command = self._next_store_command()
        self._in_flight = command
        return [] if command is None else [command]

    def _next_store_command(self) -> StoreCommand | None:
        """Choose: leases first, then the cluster's upkeep, then this node's work.

        A long run of full sweeps takes turns with this node's work.
        """
        leases = self._attempts.leases() if self._now >= self._heartbeat_at else ()
        if leases:
            return Heartbeat(leases, self.options.lease)
        # No sweep while the store is away: the first one comes when others could renew.
        sweep = not self._stopping and self._retry_at is None and self._now >= self._sweep_at
        if not sweep or self._sweep_was_full:
            self._sweep_was_full = False
            exchange = self._next_exchange()
            if exchange is not None:
                return exchange
        if not sweep:
            return None
        if not self._sweeps:
            self._sweeps = [SweepKind.LAPSED_LEASES, SweepKind.WAITING_JOBS]
        return Sweep(self._sweeps[0], SWEEP_BATCH)

    def _next_exchange(self) -> Exchange | None:
        outcomes = self._attempts.take_outcomes(self.options.outcome_batch)
        # The outcomes of an exchange are written before its claim is made: their slots are
        # free by then, and what they released is there to be claimed.
        claim = self._claim_request(self.capacity + len(outcomes), reporting=bool(outcomes))
        return Exchange(outcomes, claim) if outcomes or claim else None

    def _claim_request(self, capacity: int, *, reporting: bool) -> ClaimRequest | None:
        if self._stopping or not (reporting or self._polling.is_due(self._now)):
            return None
        max_jobs = min(capacity, self.options.max_claim_batch)
        if max_jobs < 1:
            return None
        self._asked_at = self._now
        self._polling.asked()
        return ClaimRequest(self._dispatcher.plan(max_jobs), max_jobs, self.options.lease)

    # -- events -------------------------------------------------------------------

    def _on_hinted(self, event: Hinted) -> list[Command]:
        self._polling.hint(event.now)
        return []

    def _on_executed(self, event: Executed) -> list[Command]:
        commands: list[Command] = []
        for execution in event.executions:
            displaced = self._attempts.finish(execution, event.now)
            if displaced is not None:
                commands.append(Announce(displaced, execution.result, None))
        return commands

    def _on_exchanged(self, event: Exchanged) -> list[Command]:
        exchange = self._answered(Exchange)
        require(
            len(event.reports) == len(exchange.outcomes),
            "a report answers each outcome",
            sent=len(exchange.outcomes),
            answered=len(event.reports),
        )
        commands = self._settle(exchange, event.reports)
        if exchange.claim is not None and event.claimed is not None:
            # What was not settled kept its slot, so the claim had that much less room.
            kept = len(exchange.outcomes) - len(commands)
            request = exchange.claim._replace(max_jobs=exchange.claim.max_jobs - kept)
            commands += self._take_on(request, event.claimed)
        return commands

    def _settle(self, exchange: Exchange, reports: Sequence[Reported]) -> list[Command]:
        commands: list[Command] = []
        for outcome, report in zip(exchange.outcomes, reports, strict=True):
            job = self._attempts.settle(outcome, report, self._now)
            if job is not None:
                commands.append(Announce(job, outcome.result, report.state))
        return commands

    def _take_on(self, request: ClaimRequest, claimed: Claimed) -> list[Command]:
        jobs = tuple(claimed.jobs)
        require(len(jobs) <= max(0, request.max_jobs), "a claim gives no more than was asked for")
        taken = Counter(job.queue for job in jobs)
        self._dispatcher.charge(taken, request.shares, request.max_jobs)
        self._polling.claimed(
            self._now,
            asked_at=self._asked_at,
            found=len(jobs),
            wanted=request.max_jobs,
            next_due=claimed.next_due,
        )
        if not jobs:
            return []
        if not self._attempts.count:
            self._heartbeat_at = self._now + self.options.heartbeat
        self._attempts.begin(jobs)
        require(self.capacity >= 0, "claims never exceed the pool", capacity=self.capacity)
        if self._stopping:
            # Claimed before the stop, here after it: given back before anything begins.
            self._attempts.hand_back(frozenset(job.lease for job in jobs), only_unstarted=True)
            return []
        return [Execute(jobs)]

    def _on_renewed(self, event: Renewed) -> list[Command]:
        self._answered(Heartbeat)
        self._heartbeat_at = event.now + self.options.heartbeat
        commands: list[Command] = []
        for lease, renewal in zip(event.leases, event.renewals, strict=True):
            if renewal is Renewal.LOST and self._attempts.lose(lease):
                commands.append(Interrupt(lease, InterruptReason.LEASE_LOST))
            elif renewal is Renewal.CANCEL_REQUESTED and self._attempts.request_cancel(lease):
                commands.append(Interrupt(lease, InterruptReason.CANCEL_REQUESTED))
        return commands

    def _on_maintained(self, event: Maintained) -> list[Command]:
        self._answered(Sweep)
        self._sweep_was_full = event.changed >= SWEEP_BATCH
        if not self._sweep_was_full:
            self._sweeps = self._sweeps[1:]
        if not self._sweeps:
            self._sweep_at = event.now + self.options.maintenance
        if event.changed:
            self._polling.stir(event.now)
        return []

    def _on_store_failed(self, event: StoreFailed) -> list[Command]:
        failed = self._in_flight
        require(failed is not None, "a failure answers a command")
        self._in_flight = None
        if isinstance(failed, Exchange):
            self._attempts.put_back(failed.outcomes)
        self._retry_at = event.now + self._retry_wait
        # What is tried next is a heartbeat, or a claim where there is nothing to renew.
        self._heartbeat_at = event.now
        self._polling.hint(event.now)
        self._retry_wait = min(2 * self._retry_wait, self._retry_wait_max)
        return []

    def _on_stop_requested(self, event: StopRequested) -> list[Command]:
        self._stopping = True
        return []

    def _on_grace_ended(self, event: GraceEnded) -> list[Command]:
        self._stopping = True
        self._attempts.hand_back(event.unstarted)
        return []

    def _answered(self, kind: type[Answered]) -> Answered:
        command = self._in_flight
        if not isinstance(command, kind):
            raise InvariantViolated("an answer without its command", command=command, kind=kind)
        self._in_flight = None
        if self._retry_at is not None:
            self._recover()
        return command

    def _recover(self) -> None:
        """Leave an outage, and sweep only when everybody has had time to renew.

        All nodes were cut off alike, so leases that lapsed meanwhile may well belong to
        workers that are alive and about to renew them.
        """
        self._retry_at = None
        self._retry_wait = min(RETRY_WAIT_MIN, self._retry_wait_max)
        self._sweeps = []
        self._sweep_at = max(self._sweep_at, self._now + self.options.heartbeat)
