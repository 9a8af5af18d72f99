"""A play of one pump: chance chooses what happens next, the watcher looks on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from backwave_django.core.commands import Exchange, Heartbeat, Sweep
from backwave_django.core.dispatch import Strict, Weighted
from backwave_django.core.driver import NodeDriver
from backwave_django.core.events import (
    Claimed,
    Exchanged,
    Executed,
    Execution,
    GraceEnded,
    Hinted,
    Maintained,
    Renewed,
    Reported,
    StopRequested,
    StoreFailed,
    Ticked,
    Verdict,
)
from backwave_django.core.options import WorkerGroupOptions
from backwave_django.core.outcomes import Cancelled, Failed, Lease, Succeeded, Unroutable
from backwave_django.core.retry import RetryPolicy

from .toy_store import OUTPUT_BYTES_MAX, ToyStore
from .watcher import Watcher

START = datetime(2026, 1, 1, tzinfo=UTC)
QUEUES = ("a", "b", "c")
POLICIES: list[Strict | Weighted] = [Strict(*QUEUES), Weighted({"a": 5, "b": 3, "c": 1})]
ENDS: list[dict[str, Any]] = [
    {"result": Succeeded()},
    {"result": Succeeded(b"x" * (OUTPUT_BYTES_MAX + 1))},
    {"result": Failed("boom")},
    {"result": Failed("boom"), "retry_after": 0.0},
    {"result": Failed("boom"), "final": True},
    {"result": Cancelled("asked")},
    {"result": Unroutable("who?")},
]


class Play:
    """One pump, its store, and everything that may happen to them.

    ``told`` lists what happened, for a reader of a failure; ``seen`` counts it, so that
    a test can say that the play was worth watching.
    """

    def __init__(self, seed: int) -> None:
        self.dice = dice = Random(seed)
        self.options = WorkerGroupOptions(
            name="main",
            policy=dice.choice(POLICIES),
            pool_size=dice.choice([1, 1, 2, 3, 6]),
            max_claim_batch=dice.randint(1, 6),
            max_outcome_batch=dice.choice([None, 1, 2, 6]),
            poll_interval=dice.choice([1, 1, 40]),
            max_poll_interval=dice.choice([0, 0, 60]),
            lease_duration=dice.choice([6, 60]),
            retry_policy=RetryPolicy(3, lambda attempt: attempt),
        )
        driver = NodeDriver(
            self.options,
            policy_for=lambda wire_name: self.options.retry_policy,
            output_bytes_max=OUTPUT_BYTES_MAX,
            now=START,
            sweeps_at_once=True,
        )
        self.store = ToyStore()
        self.watcher = Watcher(driver, START)
        self.told: list[str] = []
        self.seen: Counter[str] = Counter()
        # How often each thing happens, beside the others that can happen now.
        self.moves: dict[Callable[[], None], int] = {
            self.time_passes: 3,
            self.wakes: 4,
            self.jobs_are_enqueued: 4,
            self.attempts_end: 6,
            self.the_store_answers: 14,
            self.the_store_fails: 2,
            self.a_lease_is_taken_away: 1,
            self.a_row_is_locked_or_freed: 2,
            self.a_cancel_is_requested: 1,
        }
        self.watcher.step(Ticked(START))

    @property
    def now(self) -> datetime:
        """The instant."""
        return self.watcher.now

    def go_on(self, steps: int) -> None:
        """Let things happen."""
        names, weights = list(self.moves), list(self.moves.values())
        for _ in range(steps):
            (move,) = self.dice.choices(names, weights)
            self.told.append(move.__name__)
            move()

    # -- time and the application -------------------------------------------------

    def time_passes(self) -> None:
        """Time goes by, and the driver hears of it."""
        by = self.dice.choice([0.0, 0.01, 0.3, 1.0, 2.5, 7.0, 25.0])
        self.watcher.now += timedelta(seconds=by)
        self.watcher.step(Ticked(self.now))

    def wakes(self) -> None:
        """The driver is woken just when it asked to be."""
        wake_at = self.watcher.driver.wake_at()
        if wake_at is not None:
            self.watcher.now = wake_at
            self.watcher.step(Ticked(self.now))

    def jobs_are_enqueued(self) -> None:
        """The application enqueues, with a hint or without."""
        queue = self.dice.choice(QUEUES)
        for _ in range(self.dice.randint(1, 4)):
            self.store.add(queue, self.now)
        if self.dice.random() < 0.5:
            self.watcher.step(Hinted(self.now))

    def attempts_end(self) -> None:
        """Some attempts end, each in its own way."""
        running = list(self.watcher.running)
        self.dice.shuffle(running)
        leases = running[: self.dice.randint(0, len(running))]
        ended = [Execution(lease, **self.dice.choice(ENDS)) for lease in leases]
        self.seen["attempts that ended without their lease"] += len(
            self.watcher.lost.intersection(leases)
        )
        self.watcher.step(Executed(self.now, ended))

    # -- the store ----------------------------------------------------------------

    def the_store_answers(self) -> None:
        """The command in flight is carried out and answered."""
        command = self.watcher.in_flight
        if isinstance(command, Exchange):
            reports, claimed = self._carried_out(command)
            self.seen.update(report.verdict.value for report in reports)
            if claimed and claimed.jobs:
                self.seen["claims"] += 1
                still_here = {lease.job_id for lease in self.watcher.held}
                self.seen["jobs that came back beside their old attempt"] += len(
                    still_here & {job.lease.job_id for job in claimed.jobs}
                )
                self.seen["claims after a stop"] += self.watcher.stopping
                self.seen["claims after the grace"] += self.watcher.grace_over
            self.watcher.step(Exchanged(self.now, reports, claimed))
        elif isinstance(command, Heartbeat):
            until = command.lease_duration
            renewals = [self.store.renew(lease, until, self.now) for lease in command.leases]
            self.seen.update(f"heartbeat: {renewal.value}" for renewal in renewals)
            self.watcher.step(Renewed(self.now, command.leases, renewals))
        elif isinstance(command, Sweep):
            count = self.store.sweep(self.now, command.max_jobs)
            full = self.dice.random() < 0.1
            self.watcher.step(Maintained(self.now, command.max_jobs if full else count))

    def _carried_out(self, command: Exchange) -> tuple[list[Reported], Claimed | None]:
        reports = [self.store.report(outcome, self.now) for outcome in command.outcomes]
        if command.claim is None:
            return reports, None
        kept = sum(r.verdict in (Verdict.BUSY, Verdict.OUTPUT_TOO_LARGE) for r in reports)
        return reports, self.store.claim(command.claim, command.claim.max_jobs - kept, self.now)

    def the_store_fails(self) -> None:
        """The answer is lost; the work may have been done all the same."""
        command = self.watcher.in_flight
        if command is None:
            return
        if isinstance(command, Exchange) and self.dice.random() < 0.5:
            self.seen["work done and its answer lost"] += 1
            self._carried_out(command)
        self.seen["failures of the store"] += 1
        self.watcher.step(StoreFailed(self.now))

    def _some_lease(self) -> Lease | None:
        held = sorted(self.watcher.held)
        return self.dice.choice(held) if held else None

    def a_lease_is_taken_away(self) -> None:
        """Another node has swept the job; it goes there, or comes back here."""
        lease = self._some_lease()
        if lease and self.store.live(lease):
            self.store.take_away(lease, self.now, comes_back=self.dice.random() < 0.5)

    def a_row_is_locked_or_freed(self) -> None:
        """Someone's open transaction holds a row, or ends."""
        lease = self._some_lease()
        if lease:
            self.store.locked ^= {lease.job_id}

    def a_cancel_is_requested(self) -> None:
        """An operator asks for a running job to be cancelled."""
        lease = self._some_lease()
        if lease:
            self.store.rows[lease.job_id].cancel = True

    # -- the end ------------------------------------------------------------------

    def stop(self) -> None:
        """Ask the pump to stop."""
        self.told.append("stop")
        self.watcher.step(StopRequested(self.now))

    def end_grace(self) -> None:
        """Wait no longer for what still runs; some of it had not begun."""
        self.told.append("the grace ends")
        running = sorted(self.watcher.running)
        unstarted = self.dice.sample(running, self.dice.randint(0, len(running)))
        self.watcher.step(GraceEnded(self.now, frozenset(unstarted)))

    def finish(self) -> None:
        """Let all that runs end well, and the pump with it."""
        self.store.locked.clear()
        for _ in range(300):
            if self.watcher.finished:
                return
            if self.watcher.in_flight is not None:
                self.the_store_answers()
            elif self.watcher.running:
                ended = [Execution(lease, Succeeded()) for lease in self.watcher.running]
                self.watcher.step(Executed(self.now, ended))
            else:
                self.wakes()
        raise AssertionError("a stopped pump never ends")
