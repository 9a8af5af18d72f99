"""The pump: one thread, one inbox, one store connection, one round trip at a time.

It decides nothing. It turns what happens into events, hands each to the node driver,
and carries out the commands that come back: store commands here, one after the other,
and attempts on the executor. The answer of a store command is the driver's next event.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from django.db import connections

from ..core.commands import (
    Announce,
    Command,
    Exchange,
    Execute,
    Finish,
    Heartbeat,
    Interrupt,
    StoreCommand,
    Sweep,
    SweepKind,
)
from ..core.driver import NodeDriver
from ..core.events import (
    Event,
    Exchanged,
    Executed,
    GraceEnded,
    Hinted,
    Maintained,
    Renewed,
    StopRequested,
    StoreFailed,
    Ticked,
)
from ..core.expiry import decide_expiry
from ..core.options import WorkerGroupOptions
from ..core.outcomes import Failed, LapsedLease, Lease
from ..core.retry import RetryPolicy
from ..handlers.registry import Registry
from ..runtime.clock import ClusterClock
from ..storage.contract import JobStore
from ..storage.errors import StoreUnavailable
from . import telemetry
from .attempt import Ended, route
from .executor import Executor

INBOX_BATCH = 1_000
"""Most messages that are taken from the inbox before the driver is asked again."""


class Stop(NamedTuple):
    """Claim nothing more."""


class EndGrace(NamedTuple):
    """Hand back what still runs."""


class Hint(NamedTuple):
    """Look for work now."""


Message = Ended | Stop | EndGrace | Hint


class Policies:
    """Which retry policy holds for a job: its type's own, else its group's, else default."""

    def __init__(
        self,
        registry: Registry,
        group: WorkerGroupOptions,
        group_of_queue: Callable[[str], WorkerGroupOptions | None],
    ) -> None:
        self._registry = registry
        self._group = group
        self._group_of_queue = group_of_queue

    def of_wire_name(self, wire_name: str) -> RetryPolicy:
        """Give the policy of a job that this group runs."""
        job_type = self._registry.get(wire_name)
        return (
            self._group.retry_policy
            if job_type is None
            else job_type.retry or self._group.retry_policy
        )

    def of_lapsed(self, lapsed: LapsedLease) -> RetryPolicy:
        """Give the policy of a job that any group ran, also one that nobody serves."""
        job_type = self._registry.get(lapsed.wire_name)
        if job_type is not None and job_type.retry is not None:
            return job_type.retry
        group = self._group_of_queue(lapsed.queue)
        return RetryPolicy() if group is None else group.retry_policy


class Pump:
    """Runs one worker group's claim, dispatch and report cycle in a thread.

    Args:
        worker_id: its identity, never used twice.
        options: the group's options.
        store: where the jobs are.
        clock: cluster time.
        registry: from wire names to handlers.
        policies: which retry policy holds.
        sweeps_at_once: see ``NodeDriver``.
        on_end: called from the pump's thread when it ends, for whatever reason.
    """

    def __init__(
        self,
        worker_id: str,
        options: WorkerGroupOptions,
        store: JobStore,
        clock: ClusterClock,
        registry: Registry,
        policies: Policies,
        *,
        sweeps_at_once: bool,
        on_end: Callable[[], None],
    ) -> None:
        self.worker_id = worker_id
        self.fault: BaseException | None = None
        self._options = options
        self._store = store
        self._clock = clock
        self._registry = registry
        self._policies = policies
        self._sweeps_at_once = sweeps_at_once
        self._on_end = on_end
        self._inbox: SimpleQueue[Message] = SimpleQueue()
        self._ended: dict[Lease, Ended] = {}
        self._finished = False
        self._outage = False
        self._driver: NodeDriver | None = None
        self._executor = Executor(f"backwave-{options.name}", options.pool_size, self._inbox.put)
        self._thread = threading.Thread(target=self._main, name=f"backwave-{options.name}-pump")
        self._thread.daemon = True

    # -- from any thread ----------------------------------------------------------

    def start(self) -> None:
        """Start the pump's thread."""
        self._thread.start()

    def tell(self, message: Message) -> None:
        """Put a message into the inbox; safe from a signal handler."""
        self._inbox.put(message)

    @property
    def is_alive(self) -> bool:
        """Whether the pump's thread runs."""
        return self._thread.is_alive()

    @property
    def idle_since(self) -> datetime | None:
        """When the newest claim was asked for, if it found nothing and nothing came since."""
        return None if self._driver is None else self._driver.idle_since

    @property
    def running(self) -> int:
        """Attempts whose handlers have not ended."""
        return self._executor.running

    def join(self, seconds: float | None = None) -> None:
        """Wait for the pump's thread to end."""
        self._thread.join(seconds)

    # -- the pump's thread --------------------------------------------------------

    def _main(self) -> None:
        try:
            self._loop()
        except BaseException as fault:  # noqa: BLE001 — fail-stop: this pump only
            # Its leases lapse and healthy pumps inherit the work.
            self.fault = fault
            telemetry.pump_halted(self.worker_id, fault)
        finally:
            self._executor.stop()
            connections.close_all()
            self._on_end()

    def _loop(self) -> None:
        now = self._now()
        self._driver = NodeDriver(
            self._options,
            policy_for=self._policies.of_wire_name,
            output_bytes_max=self._store.limits.max_output_bytes,
            now=now,
            sweeps_at_once=self._sweeps_at_once,
        )
        self._carry_out(self._driver.step(Ticked(now)))
        while not self._finished:
            messages = self._wait()
            for event in self._events_of(messages):
                self._carry_out(self._driver.step(event))

    def _now(self) -> datetime:
        try:
            return self._clock.now()
        except StoreUnavailable:
            return self._clock.estimate()

    def _wait(self) -> list[Message]:
        """Wait for a message, or for the next instant at which something is due."""
        wake_at = self._driver.wake_at() if self._driver else None
        timeout = None
        if wake_at is not None:
            timeout = max(0.0, (wake_at - self._now()).total_seconds())
        try:
            return [self._inbox.get(timeout=timeout), *self._waiting()]
        except Empty:
            return []

    def _waiting(self) -> Iterable[Message]:
        for _ in range(INBOX_BATCH):
            try:
                yield self._inbox.get_nowait()
            except Empty:
                return

    def _events_of(self, messages: Iterable[Message]) -> list[Event]:
        """Turn messages into events; attempts that ended together are one event."""
        now = self._now()
        ended: list[Ended] = []
        events: list[Event] = []
        for message in messages:
            if isinstance(message, Ended):
                ended.append(message)
            elif isinstance(message, Stop):
                telemetry.pump_stopping(self.worker_id, self._executor.running)
                events.append(StopRequested(now))
            elif isinstance(message, EndGrace):
                events.append(GraceEnded(now, self._executor.unstarted()))
            else:
                events.append(Hinted(now))
        if ended:
            self._ended.update((end.execution.lease, end) for end in ended)
            events.insert(0, Executed(now, [end.execution for end in ended]))
        return events or [Ticked(now)]

    def _carry_out(self, commands: list[Command]) -> None:
        """Carry out commands, and those that follow from the answers."""
        pending = deque(commands)
        while pending:
            command = pending.popleft()
            if isinstance(command, Exchange | Heartbeat | Sweep):
                answer = self._ask_store(command)
                # What ended meanwhile goes into the very next report.
                messages = list(self._waiting())
                for event in self._events_of(messages) if messages else ():
                    pending += self._step(event)
                pending += self._step(answer._replace(now=self._now()))
            else:
                pending += self._act(command)

    def _step(self, event: Event) -> list[Command]:
        assert self._driver is not None
        return self._driver.step(event)

    def _act(self, command: Command) -> list[Command]:
        match command:
            case Execute(jobs=jobs):
                return self._execute(jobs)
            case Interrupt(lease=lease, reason=reason):
                self._executor.interrupt(lease, reason)
            case Announce(job=job):
                ended = self._ended.pop(job.lease, None)
                telemetry.outcome_announced(command, ended)
            case Finish():
                self._finished = True
        return []

    def _execute(self, jobs: Iterable[Any]) -> list[Command]:
        """Route each job and start its attempt; what has no handler has ended already."""
        routed = [
            route(
                job,
                self._registry,
                self._policies.of_wire_name,
                self._store.limits.max_output_bytes,
            )
            for job in jobs
        ]
        self._executor.submit([found for found in routed if not isinstance(found, Ended)])
        unroutable = [found for found in routed if isinstance(found, Ended)]
        for ended in unroutable:
            self.tell(ended)
        return []

    # -- the store ----------------------------------------------------------------

    def _ask_store(self, command: StoreCommand) -> Any:
        try:
            answer = self._answer(command, self._now())
        except StoreUnavailable as error:
            if not self._outage:
                self._outage = True
                telemetry.store_unavailable(self.worker_id, error)
            return StoreFailed(self._now())
        if self._outage:
            self._outage = False
            telemetry.store_back(self.worker_id)
        return answer

    def _answer(self, command: StoreCommand, now: datetime) -> Event:
        match command:
            case Exchange(outcomes=outcomes, claim=claim):
                reports, claimed = self._store.exchange(self.worker_id, outcomes, claim, now)
                return Exchanged(now, reports, claimed)
            case Heartbeat(leases=leases, lease_duration=duration):
                return Renewed(now, leases, self._store.heartbeat(leases, duration, now))
            case Sweep(kind=SweepKind.LAPSED_LEASES, max_jobs=most):
                return Maintained(now, self._expire(most, now))
            case Sweep(max_jobs=most):
                return Maintained(now, self._store.release_waiting(most, now))

    def _expire(self, most: int, now: datetime) -> int:
        """Sweep lapsed leases, and say what became of each."""
        decided: list[tuple[LapsedLease, Failed]] = []

        def decide(lapsed: LapsedLease) -> Failed:
            failed = decide_expiry(lapsed, self._policies.of_lapsed(lapsed), now)
            decided.append((lapsed, failed))
            return failed

        count = self._store.expire_leases(None, decide, most, now)
        for lapsed, failed in decided:
            telemetry.lease_expired(lapsed, failed)
        return count
