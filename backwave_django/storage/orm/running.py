"""Jobs that come in, run and end, over a database alias."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F

from ...core.commands import ClaimRequest
from ...core.events import Claimed, Renewal, Reported, Verdict
from ...core.outcomes import Lease, Outcome, Succeeded, tags_of
from ...core.settlement import settlement_of
from ...core.tags import tag_set
from ...models import Transition
from ..contract import ExpiryDecision
from ..errors import StoreUnavailable
from ..rules import (
    check_instant,
    check_shares,
    check_worker,
)
from ..values import EnqueueResult, HistoryPolicy, NewJob
from . import enqueue, graph
from .base import StoreBase
from .rows import Settling, TransitionLog
from .undelivered import trim_logs

CONFLICT_TRIES = 5
"""How often an enqueue is tried that the database rolled back for another's sake."""

KEEPS_SLOT = (Verdict.BUSY, Verdict.OUTPUT_TOO_LARGE)
"""Answers after which the outcome is not settled, so that its slot stays taken."""


class RunningOrm(StoreBase):
    """The running part of the Django store; see ``RunningStore``."""

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
        self._trim_long_logs(outcomes, now)
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

    def _trim_long_logs(self, outcomes: Sequence[Outcome], now: datetime) -> None:
        """Let the logs of jobs with many claims age out, before more is written.

        A claim and its outcome are two entries, so nothing else can have a log that is
        too long, but for what operators did; reads cut that off. This way the bound
        costs the others nothing.
        """
        most = self.limits.max_transitions_per_job
        long = [o.lease.job_id for o in outcomes if 2 * o.lease.claim_number >= most]
        if long and self.history is not HistoryPolicy.OFF:
            rows = Transition.objects.using(self.alias).filter(
                job__job_id__in=long, ordinal__lte=F("job__ordinal") - most
            )
            trim_logs(self.dialect, rows, now)

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
