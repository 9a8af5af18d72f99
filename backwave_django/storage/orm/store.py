"""The Django store: the contract over a database alias.

Checks what needs no database, hands the hot operations to the dialect, and turns
database errors into the two kinds that a caller can act on. Thread-safe: it holds no
connection, each thread uses its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from ...core.commands import ClaimRequest
from ...core.events import Claimed, Renewal, Reported, Verdict
from ...core.limits import Limits
from ...core.outcomes import Lease, Outcome, Succeeded, tags_of
from ...core.settlement import settlement_of
from ...core.tags import Tag, tag_set
from ..capabilities import Capabilities
from ..contract import ExpiryDecision
from ..dialects import dialect_for
from ..dialects.base import Dialect
from ..errors import StoreRejected, StoreUnavailable
from ..rules import (
    can_be_found,
    check_actor,
    check_instant,
    check_limit,
    check_queue,
    check_shares,
    check_worker,
)
from ..values import (
    CancelResult,
    EnqueueResult,
    HistoryPolicy,
    JobCount,
    JobFilter,
    JobSnapshot,
    NewJob,
    Transition,
)
from . import enqueue, graph, operators, reads
from .rows import Settling, TransitionLog

CONFLICT_TRIES = 5
"""How often an enqueue is tried that the database rolled back for another's sake."""

KEEPS_SLOT = (Verdict.BUSY, Verdict.OUTPUT_TOO_LARGE)
"""Answers after which the outcome is not settled, so that its slot stays taken."""


class DjangoStore:
    """A ``JobStore`` over the models of this app.

    Args:
        alias: the database alias, resolved once and for all.
        limits: the store's limits.
        history: what the transition log records.
        dialect: how the database does the hot operations; by default the alias's own.
    """

    def __init__(
        self,
        alias: str = "default",
        limits: Limits | None = None,
        history: HistoryPolicy = HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL,
        dialect: Dialect | None = None,
    ) -> None:
        self.alias = alias
        self.limits = limits or Limits()
        self.history = history
        self.dialect = dialect or dialect_for(alias)
        self.dialect.history = history

    @property
    def capabilities(self) -> Capabilities:
        """What the database can do."""
        return self.dialect.capabilities

    @property
    def supports_transactional_enqueue(self) -> bool:
        """Whether an enqueue joins the application's own transaction.

        True on the alias that holds the application's tables, taken to be ``default``.
        """
        return self.alias == "default"

    def current_time(self) -> datetime:
        """Read the database's clock; see ``JobStore.current_time``."""
        with self.faults():
            return self.dialect.current_time()

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Turn database errors into ``StoreUnavailable`` or ``StoreRejected``.

        In a caller's open transaction they pass unchanged: it is the caller's to retry.
        Outside, a connection found dead is dropped, so that the next call opens a new
        one.
        """
        try:
            yield
        except (DatabaseError, InterfaceError) as error:
            connection = self.dialect.connection
            connected = connection.connection is not None
            if connection.in_atomic_block or (connected and not connection.autocommit):
                raise
            transient = self.dialect.is_transient(error)
            if connected:
                connection.close_if_unusable_or_obsolete()
            kind = StoreUnavailable if transient else StoreRejected
            raise kind(f"database {self.alias!r}: {error}".strip()) from error

    # -- enqueue ------------------------------------------------------------------

    def enqueue(self, job: NewJob, now: datetime) -> EnqueueResult:
        """Store one job; see ``JobStore.enqueue``."""
        return self.enqueue_many([job], now)[0]

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Store jobs; see ``JobStore.enqueue_many``."""
        check_instant(now)
        tries_left = CONFLICT_TRIES
        while True:
            tries_left -= 1
            try:
                with self.faults():
                    return enqueue.enqueue_many(self.dialect, self.limits, jobs, now)
            except StoreUnavailable as error:
                # Two batches that share ids in another order: one was rolled back whole.
                if not tries_left or not self.dialect.is_conflict(error.__cause__):
                    raise

    # -- the hot path -------------------------------------------------------------

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Lease due jobs; see ``JobStore.claim``."""
        check_instant(now)
        with self.faults():
            return self.dialect.claim(check_worker(worker_id), self._clamped(request), now)

    def _clamped(self, request: ClaimRequest) -> ClaimRequest:
        check_shares(request)
        most = self.limits.max_claim_batch
        return request if request.max_jobs <= most else request._replace(max_jobs=most)

    def heartbeat(
        self, leases: Sequence[Lease], lease_duration: timedelta, now: datetime
    ) -> Sequence[Renewal]:
        """Renew leases; see ``JobStore.heartbeat``."""
        check_instant(now)
        asked = list(dict.fromkeys(leases))
        if not asked:
            return []
        with self.faults():
            renewals = self.dialect.renew(asked, lease_duration, now)
        answers = dict(zip(asked, renewals, strict=True))
        return [answers[lease] for lease in leases]

    def report(self, outcomes: Sequence[Outcome], now: datetime) -> Sequence[Reported]:
        """Record outcomes under their fences; see ``JobStore.report``."""
        check_instant(now)
        with self.faults():
            return self._report(None, outcomes, now)

    def _report(
        self,
        log: TransitionLog | None,
        outcomes: Sequence[Outcome],
        now: datetime,
        *,
        swept: bool = False,
    ) -> list[Reported]:
        """Settle in a transaction of its own, or in the one that ``log`` belongs to.

        ``swept``: the worker is lost, so a request to cancel holds at the last attempt
        too (5.1).
        """
        answers, batch = self._settlings(outcomes, now, swept=swept)
        if batch:
            items = list(batch.values())
            if log is None:
                settled = self.dialect.settle(items, now)
            else:
                settled = self.dialect.settle_in(log, items)
            answers.update(zip(batch, self._settle_endings(log, items, settled, now), strict=True))
        return [answers[place] for place in range(len(outcomes))]

    def _settlings(
        self, outcomes: Sequence[Outcome], now: datetime, *, swept: bool = False
    ) -> tuple[dict[int, Reported], dict[int, Settling]]:
        """Say what each outcome means, by its place; or answer it, if that is plain."""
        answers: dict[int, Reported] = {}
        batch: dict[int, Settling] = {}
        seen: set[Lease] = set()
        for place, outcome in enumerate(outcomes):
            if outcome.lease in seen:
                answers[place] = Reported(Verdict.STALE)
            elif self._has_room_for(outcome):
                seen.add(outcome.lease)
                settlement = settlement_of(outcome.result, self.limits, now)
                settlement = settlement._replace(yields_to_cancel=True) if swept else settlement
                batch[place] = Settling(outcome.lease, settlement, tag_set(tags_of(outcome.result)))
            else:
                answers[place] = Reported(Verdict.OUTPUT_TOO_LARGE)
        return answers, batch

    def _settle_endings(
        self,
        log: TransitionLog | None,
        items: list[Settling],
        answers: Sequence[Reported | None],
        now: datetime,
    ) -> list[Reported]:
        """Write the ends that the dialect held back, with what they release."""
        ending = [item for item, answer in zip(items, answers, strict=True) if answer is None]
        if not ending:
            return [answer for answer in answers if answer is not None]
        if log is None:
            with self.dialect.writing(now) as log:
                second = iter(graph.settle_endings(self.dialect, log, ending))
        else:
            second = iter(graph.settle_endings(self.dialect, log, ending))
        return [next(second) if answer is None else answer for answer in answers]

    def _has_room_for(self, outcome: Outcome) -> bool:
        result = outcome.result
        if not isinstance(result, Succeeded) or result.output is None:
            return True
        return len(result.output) <= self.limits.max_output_bytes

    def exchange(
        self,
        worker_id: str,
        outcomes: Sequence[Outcome],
        request: ClaimRequest | None,
        now: datetime,
    ) -> tuple[Sequence[Reported], Claimed | None]:
        """Report, then claim; see ``JobStore.exchange``."""
        check_instant(now)
        check_worker(worker_id)
        with self.faults():
            if not outcomes or request is None:
                reports = self._report(None, outcomes, now) if outcomes else []
                return reports, self._claim_rest(None, worker_id, reports, request, now)
            if not self.dialect.joins_exchange:
                return self._exchange(worker_id, outcomes, request, now)
            with self.dialect.writing(now) as log:
                reports = self._report(log, outcomes, now)
                return reports, self._claim_rest(log, worker_id, reports, request, now)

    def _exchange(
        self, worker_id: str, outcomes: Sequence[Outcome], request: ClaimRequest, now: datetime
    ) -> tuple[Sequence[Reported], Claimed | None]:
        """Exchange by the dialect, and see to what it leaves to be done."""
        answers, batch = self._settlings(outcomes, now)
        items = list(batch.values())
        kept = sum(answer.verdict in KEEPS_SLOT for answer in answers.values())
        asked = self._clamped(request._replace(max_jobs=max(0, request.max_jobs - kept)))
        claimed = None
        if batch:
            settled, claimed = self.dialect.exchange(items, worker_id, asked, now)
            answers.update(zip(batch, self._settle_endings(None, items, settled, now), strict=True))
        reports = [answers[place] for place in range(len(outcomes))]
        if claimed is None:
            claimed = self._claim_rest(None, worker_id, reports, request, now)
        return reports, claimed

    def _claim_rest(
        self,
        log: TransitionLog | None,
        worker_id: str,
        reports: Sequence[Reported],
        request: ClaimRequest | None,
        now: datetime,
    ) -> Claimed | None:
        if request is None:
            return None
        room = request.max_jobs - sum(report.verdict in KEEPS_SLOT for report in reports)
        if room < 1:
            return Claimed((), now)
        request = self._clamped(request._replace(max_jobs=room))
        if log is None:
            return self.dialect.claim(worker_id, request, now)
        return self.dialect.claim_in(log, worker_id, request)

    # -- sweeps -------------------------------------------------------------------

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Dispose of lapsed leases; see ``JobStore.expire_leases``."""
        check_instant(now)
        with self.faults():
            # Most sweeps find nothing: look before opening a transaction.
            if not self.dialect.lapsed(queues, 1, now, lock=False):
                return 0
            with self.dialect.writing(now) as log:
                lapsed = self.dialect.lapsed(queues, max_jobs, now, lock=True)
                outcomes = [Outcome(found.lease, decide(found)) for found in lapsed]
                reports = self._report(log, outcomes, now, swept=True)
            return sum(report.verdict is Verdict.APPLIED for report in reports)

    def release_waiting(
        self, max_jobs: int, now: datetime, job_ids: Sequence[UUID] | None = None
    ) -> int:
        """Move on jobs whose parents ended unseen; see ``JobStore.release_waiting``."""
        check_instant(now)
        with self.faults():
            return graph.release_waiting(self.dialect, max_jobs, now, job_ids)

    # -- operators ----------------------------------------------------------------

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel a job, or ask for it; see ``JobStore.cancel``."""
        check_instant(now)
        check_actor(actor)
        with self.faults():
            return operators.cancel(self.dialect, job_id, actor, now)

    def pause_queue(self, queue: str) -> bool:
        """Pause a queue; see ``JobStore.pause_queue``."""
        with self.faults():
            return operators.set_paused(self.dialect, check_queue(queue), paused=True)

    def resume_queue(self, queue: str) -> bool:
        """Resume a queue; see ``JobStore.resume_queue``."""
        with self.faults():
            return operators.set_paused(self.dialect, check_queue(queue), paused=False)

    def set_concurrency_limit(self, queue: str, limit: int | None) -> bool:
        """Bound a queue; see ``JobStore.set_concurrency_limit``."""
        check_limit(limit)
        with self.faults():
            return operators.set_limit(self.dialect, check_queue(queue), limit)

    # -- reads --------------------------------------------------------------------

    def get_job(self, job_id: UUID) -> JobSnapshot | None:
        """Read one job."""
        with self.faults():
            return reads.get_job(self.dialect, job_id)

    def list_jobs(
        self,
        job_filter: JobFilter,
        *,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 50,
    ) -> list[JobSnapshot]:
        """Read a page of jobs; see ``JobStore.list_jobs``."""
        limit = max(0, min(limit, self.limits.max_monitor_page_size))
        if not can_be_found(job_filter):
            return []
        with self.faults():
            return reads.list_jobs(self.dialect, job_filter, after, newest_first, limit)

    def count_jobs(self) -> list[JobCount]:
        """Count jobs by queue and state."""
        with self.faults():
            return reads.count_jobs(self.dialect)

    def job_history(self, job_id: UUID) -> list[Transition]:
        """Read a job's transition log."""
        with self.faults():
            return reads.job_history(self.dialect, job_id)

    def job_output(self, job_id: UUID) -> bytes | None:
        """Read a job's output."""
        with self.faults():
            return reads.job_bytes(self.dialect, job_id, "output")

    def job_payload(self, job_id: UUID) -> bytes | None:
        """Read a job's payload."""
        with self.faults():
            return reads.job_bytes(self.dialect, job_id, "payload")

    def job_tags(self, job_id: UUID) -> list[Tag]:
        """Read a job's tags."""
        with self.faults():
            return reads.job_tags(self.dialect, job_id)
