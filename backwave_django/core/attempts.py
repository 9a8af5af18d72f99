"""The attempts of one pump: from the claim until the outcome is recorded.

Each attempt is in one place at a time: *running* (its handler is at work), *finished*
(its outcome waits to be reported), *held* (reported, but its row was locked by someone
else: to be tried again), or *reporting* (in the exchange now in flight). All of them
hold their lease, so all of them are renewed and all of them count against the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import islice

from .events import Execution, Reported, Verdict
from .invariants import require
from .outcomes import ClaimedJob, Failed, Lease, Outcome, Released, Result, tags_of
from .retry import LONGEST_DELAY, RetryPolicy

HOLD = timedelta(milliseconds=250)
"""How long an outcome waits whose row was locked by someone's open transaction."""


class Attempts:
    """The attempts of a pump that are not settled, by their leases.

    By the lease and not by the job: one whose lease was lost may come back to the very
    same pump while its old handler still runs.
    """

    def __init__(self, policy_for: Callable[[str], RetryPolicy], output_bytes_max: int) -> None:
        self._policy_for = policy_for
        self._output_bytes_max = output_bytes_max
        self._jobs: dict[Lease, ClaimedJob] = {}
        self._running: dict[Lease, None] = {}
        self._finished: dict[Lease, Outcome] = {}
        self._held: dict[Lease, Outcome] = {}
        self._cancelling: set[Lease] = set()
        self._lost: set[Lease] = set()
        self.held_until: datetime | None = None

    @property
    def count(self) -> int:
        """Attempts that hold a slot of the pool."""
        return len(self._jobs)

    def leases(self) -> tuple[Lease, ...]:
        """Give every lease that is not settled, in the order of the claims.

        Also those known to be lost: their answer is known, but to ask is how a pump
        whose pool they fill finds out that the store is back.
        """
        return tuple(self._jobs)

    def begin(self, jobs: Iterable[ClaimedJob]) -> None:
        """Take on claimed jobs."""
        for job in jobs:
            require(job.lease not in self._jobs, "no lease is given twice", lease=job.lease)
            self._jobs[job.lease] = job
            self._running[job.lease] = None

    def finish(self, execution: Execution, now: datetime) -> ClaimedJob | None:
        """Take what a handler came to; give its job if the lease was lost meanwhile."""
        lease = execution.lease
        if lease not in self._running:
            return None  # handed back already; the handler was not waited for
        del self._running[lease]
        if lease in self._lost:
            return self._drop(lease)
        job = self._jobs[lease]
        self._finished[lease] = Outcome(lease, self._decided(job, execution, now))
        return None

    def _decided(self, job: ClaimedJob, execution: Execution, now: datetime) -> Result:
        """Decide what follows from a failure: a retry, or no further attempt."""
        result = execution.result
        if not isinstance(result, Failed):
            return result
        policy = self._policy_for(job.wire_name)
        attempt = job.lease.attempt
        if execution.final or not policy.allows_retry(attempt):
            return result._replace(retry_at=None)
        wait = policy.delay(attempt)
        if execution.retry_after is not None:
            wait = timedelta(seconds=min(execution.retry_after, LONGEST_DELAY.total_seconds()))
        return result._replace(retry_at=now + wait)

    def take_outcomes(self, count: int) -> tuple[Outcome, ...]:
        """Take up to ``count`` finished outcomes for a report, oldest first."""
        taken = tuple(islice(self._finished.values(), count))
        for outcome in taken:
            del self._finished[outcome.lease]
        return taken

    def put_back(self, outcomes: tuple[Outcome, ...]) -> None:
        """Keep outcomes whose report failed, before those that finished since."""
        self._finished = {outcome.lease: outcome for outcome in outcomes} | self._finished

    def settle(self, outcome: Outcome, report: Reported, now: datetime) -> ClaimedJob | None:
        """Take the store's answer for one outcome; give its job if that was its end."""
        if report.verdict is Verdict.BUSY:
            self._held[outcome.lease] = outcome
            self.held_until = self.held_until or now + HOLD
            return None
        if report.verdict is Verdict.OUTPUT_TOO_LARGE:
            self._finished[outcome.lease] = self._refused_output(outcome, now)
            return None
        return self._drop(outcome.lease)

    def _refused_output(self, outcome: Outcome, now: datetime) -> Outcome:
        job = self._jobs[outcome.lease]
        size = len(getattr(outcome.result, "output", None) or b"")
        cause = f"output of {size} bytes is over the limit of {self._output_bytes_max} bytes"
        failed = Failed(cause, cause, tags=tags_of(outcome.result))
        return Outcome(job.lease, self._decided(job, Execution(job.lease, failed), now))

    def release_held(self, now: datetime) -> None:
        """Let held outcomes be reported again once they have waited long enough."""
        if self.held_until is not None and now >= self.held_until:
            self._finished |= self._held
            self._held = {}
            self.held_until = None

    def lose(self, lease: Lease) -> bool:
        """Learn that a lease has gone; whether a handler still runs under it.

        An outcome that already waits is reported all the same: the fence refuses it,
        and the refusal is what gets announced.
        """
        if lease not in self._running or lease in self._lost:
            return False
        self._lost.add(lease)
        return True

    def request_cancel(self, lease: Lease) -> bool:
        """Learn of a request to cancel; whether it is news to a running handler."""
        if lease not in self._running or lease in self._cancelling:
            return False
        self._cancelling.add(lease)
        return True

    def hand_back(self, unstarted: frozenset[Lease], *, only_unstarted: bool = False) -> None:
        """Give up on what still runs: release each, or end it at its ceiling."""
        for lease in list(self._running):
            if lease in unstarted or not only_unstarted:
                del self._running[lease]
                self._finished[lease] = Outcome(lease, self._released(lease, unstarted))

    def _released(self, lease: Lease, unstarted: frozenset[Lease]) -> Result:
        policy = self._policy_for(self._jobs[lease].wire_name)
        if lease in unstarted or policy.allows_retry(lease.attempt):
            return Released(started=lease not in unstarted)
        cause = (
            f"worker stopped during attempt {lease.attempt} of {policy.max_attempts}, the last one"
        )
        return Failed(cause, cause, retry_at=None)

    def _drop(self, lease: Lease) -> ClaimedJob:
        self._lost.discard(lease)
        self._cancelling.discard(lease)
        return self._jobs.pop(lease)
