"""Mutants of chapter 0: time, atomicity, concurrency and limits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from ....core.events import Reported
from ....core.outcomes import Failed, LapsedLease, Outcome, Succeeded
from ....storage.contract import ExpiryDecision
from ....storage.errors import StoreMisused
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import Row, Tables
from ....storage.rules import refusal_of
from ....storage.values import (
    EnqueueResult,
    EnqueueStatus,
    JobCount,
    JobSnapshot,
    NewJob,
)
from .registry import Misbelieving, Reenqueued, Retimed, Unlocked, breaks, pause


@breaks("0.1")
class TakesNaiveInstants(Retimed):
    """Takes an instant without a zone for UTC."""

    def _instant(self, now: datetime) -> datetime:
        return now.replace(tzinfo=UTC) if now.tzinfo is None else now


@breaks("0.1")
class TakesEveryZone(Retimed):
    """Reckons instants of other zones itself."""

    def _instant(self, now: datetime) -> datetime:
        return now if now.tzinfo is None else now.astimezone(UTC)


@breaks("0.1")
class TakesNaiveDueTimes(Reenqueued):
    """Takes a due time without a zone for UTC."""

    def _changed(self, job: NewJob) -> NewJob:
        return replace(job, due_time=job.due_time.replace(tzinfo=UTC))


@breaks("0.1")
class DropsMicroseconds(Retimed):
    """Keeps whole seconds of every now."""

    def _instant(self, now: datetime) -> datetime:
        return now.replace(microsecond=0)


@breaks("0.1")
class ReadsItsOwnClock(Retimed):
    """Takes now for advice, and goes by a clock that stands at one instant."""

    def _instant(self, now: datetime) -> datetime:
        return now if now.year == 2026 else now.replace(year=2026)


@breaks("0.1")
class MovesFarInstants(Reenqueued):
    """Has room for instants from 1970 to 2100 only."""

    def _changed(self, job: NewJob) -> NewJob:
        first, last = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
        if job.due_time.tzinfo is None:
            return job
        return replace(job, due_time=min(max(job.due_time, first), last))


@breaks("0.1")
class GivesNaiveInstants(InMemoryStore):
    """Reads instants back without their zone."""

    def get_job(self, job_id: UUID) -> JobSnapshot | None:
        """Read one job, badly."""
        found = super().get_job(job_id)
        return found and replace(found, due_time=found.due_time.replace(tzinfo=None))


@breaks("0.1")
class RefusesWithAnErrorOfItsOwn(InMemoryStore):
    """Refuses a naive instant with an error that no caller expects."""

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue, or fail oddly."""
        try:
            return super().enqueue_many(jobs, now)
        except StoreMisused as error:
            raise TypeError("aware instants only") from error


@breaks("0.2")
class SweepsLeaseByLease(InMemoryStore):
    """Writes each decision before it asks for the next."""

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Sweep one by one."""
        count = 0
        while count < max_jobs and super().expire_leases(queues, decide, 1, now):
            count += 1
        return count


@breaks("0.2", "0.1", "0.6")
class StoresJobByJob(InMemoryStore):
    """Stores the jobs of a batch before it has looked at all of them."""

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue one by one."""
        return [super(StoresJobByJob, self).enqueue_many([job], now)[0] for job in jobs]


@breaks("0.3")
class LooksBeforeItLeaps(Unlocked):
    """Looks for an id first and stores the job later, with time for others between."""

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        known = job.job_id in self._tables.rows
        pause()
        if known:
            return EnqueueResult(EnqueueStatus.DUPLICATE)
        self._tables.rows.pop(job.job_id, None)
        return super()._insert(job, now)


@breaks("0.3")
class LosesJobs(InMemoryStore):
    """Says OK for every fortieth job, and stores it not."""

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        answer = super()._insert(job, now)
        if len(self._tables.rows) % 40 == 0:
            del self._tables.rows[job.job_id]
        return answer


@breaks("0.3", "4.6")
class SweepsWhatItSawBefore(Unlocked):
    """Finds lapsed leases first and disposes of them later, whatever happened between."""

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Sweep with a pause."""

        def slowly(lapsed: LapsedLease) -> Failed:
            pause()
            return decide(lapsed)

        return super().expire_leases(queues, slowly, max_jobs, now)


@breaks("0.4", "2.3")
class KeepsJobsToTheirThread(InMemoryStore):
    """Shows what a thread has written to that thread alone."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._local = threading.local()
        super().__init__(*arguments, **options)

    @property
    def _tables(self) -> Tables:
        if not hasattr(self._local, "tables"):
            self._local.tables = Tables(self.history)
        found: Tables = self._local.tables
        return found

    @_tables.setter
    def _tables(self, tables: Tables) -> None:
        self._local.tables = tables


@breaks("0.4")
class CountsWithALag(InMemoryStore):
    """Answers a count with the answer of the one before."""

    _last: list[JobCount] = []

    def count_jobs(self) -> list[JobCount]:
        """Count as of the last time."""
        last, self._last = self._last, super().count_jobs()
        return last


@breaks("0.5")
class TakesAByteTooMany(Misbelieving):
    """Has every limit one higher than it says."""

    beliefs = {"max_payload_bytes": 65_537, "max_wire_name_length": 129, "max_parents_per_job": 17}


@breaks("0.5")
class TakesAByteTooFew(Misbelieving):
    """Has every limit one lower than it says."""

    beliefs = {
        "max_payload_bytes": 65_535,
        "max_wire_name_length": 127,
        "max_parents_per_job": 15,
        "max_output_bytes": 65_535,
        "max_failure_detail_bytes": 8_190,
    }


@breaks("0.5")
class ClampsNothing(Misbelieving):
    """Gives as much as is asked for, and takes outputs of any size."""

    beliefs = {
        "max_claim_batch": 10_000,
        "max_monitor_page_size": 10_000,
        "max_output_bytes": 10_000_000,
    }


@breaks("0.5", "0.6")
class CutsPayloads(Reenqueued):
    """Cuts what is too long, and what comes after a NUL."""

    def _changed(self, job: NewJob) -> NewJob:
        return replace(job, payload=job.payload[: self.limits.max_payload_bytes].split(b"\0")[0])


@breaks("0.5")
class MeasuresNamesInBytes(InMemoryStore):
    """Counts the bytes of a wire name where it should count its characters."""

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        if len(job.wire_name.encode(errors="ignore")) > self.limits.max_wire_name_length:
            return EnqueueResult(EnqueueStatus.WIRE_NAME_TOO_LONG)
        return super()._insert(job, now)


class Rewriting(InMemoryStore):
    """A store that writes something else of an outcome than it should."""

    def _rewrite(self, row: Row, outcome: Outcome) -> None:
        """Change the row after the outcome was written; here nothing, in each mutant something."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        answer = super()._recorded(outcome, now, swept=swept)
        if answer.state is not None:
            self._rewrite(self._tables.rows[outcome.lease.job_id], outcome)
        return answer


@breaks("0.5", "0.6")
class SplitsCharacters(Rewriting):
    """Cuts a failure detail at a byte, and leaves the rest as it came."""

    def _rewrite(self, row: Row, outcome: Outcome) -> None:
        if isinstance(outcome.result, Failed) and row.transitions:
            raw = outcome.result.detail.encode(errors="surrogatepass")
            cut = raw[: self.limits.max_failure_detail_bytes].decode(errors="replace")
            row.transitions[-1] = row.transitions[-1]._replace(failure_detail=cut)


@breaks("0.5", "0.6")
class KeepsCausesAsTheyCome(Rewriting):
    """Neither cuts a cause nor makes it storable."""

    def _rewrite(self, row: Row, outcome: Outcome) -> None:
        cause = getattr(outcome.result, "cause", None)
        if cause is not None and row.terminal_cause is not None:
            row.terminal_cause = cause


@breaks("0.5")
class TakesNoBytesForNoOutput(Rewriting):
    """Forgets an output that is empty."""

    def _rewrite(self, row: Row, outcome: Outcome) -> None:
        row.output = row.output or None


@breaks("0.5", "4.2")
class CutsOutputs(InMemoryStore):
    """Cuts an output that is too long, and takes the rest."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        result = outcome.result
        if isinstance(result, Succeeded) and result.output is not None:
            result = result._replace(output=result.output[: self.limits.max_output_bytes])
        return super()._recorded(outcome._replace(result=result), now, swept=swept)


@breaks("2.1", "0.5")
class ChecksInAnotherOrder(InMemoryStore):
    """Looks for duplicates and parents before it makes the cheap checks."""

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue, with the checks turned round."""
        answers = []
        for job in jobs:
            unknown = [parent for parent in job.parents if parent not in self._tables.rows]
            if unknown:
                answers.append(EnqueueResult(EnqueueStatus.UNKNOWN_PARENT, unknown[0]))
            elif job.job_id in self._tables.rows:
                answers.append(EnqueueResult(EnqueueStatus.DUPLICATE))
            else:
                refusal = refusal_of(job, replace(self.limits, max_parents_per_job=1_000))
                answers.append(refusal or self._insert(job, now))
        return answers


@breaks("4.1")
class RenewsFromTheOldEnd(InMemoryStore):
    """Adds the duration to the end of the lease, not to now."""

    def _renewed(self, lease: Any, until: datetime) -> Any:
        row = self._tables.live(lease)
        until = (
            until
            if row is None or row.lease_expires_at is None
            else (row.lease_expires_at + timedelta(seconds=60))
        )
        return super()._renewed(lease, until)
