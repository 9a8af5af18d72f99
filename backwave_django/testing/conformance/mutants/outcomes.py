"""Mutants of chapter 4: outcomes, hand-backs and the exchange."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from ....core.commands import ClaimRequest
from ....core.events import Claimed, Reported, Verdict
from ....core.outcomes import Failed, Outcome, Released, Succeeded, tags_of
from ....core.states import JobState
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import Row
from .registry import breaks


@breaks("4.2", "0.3")
class TakesNoLateOutcome(InMemoryStore):
    """Takes an outcome for stale once its lease has lapsed."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        row = self._tables.live(outcome.lease)
        lapsed = row is not None and (row.lease_expires_at or now) <= now
        return Reported(Verdict.STALE) if lapsed else super()._recorded(outcome, now, swept=swept)


@breaks("4.2")
class StopsAtTheFirstStaleOutcome(InMemoryStore):
    """Takes nothing of a batch after a stale row."""

    def report(self, outcomes: Sequence[Outcome], now: datetime) -> Sequence[Reported]:
        """Report until something is stale."""
        answers: list[Reported] = []
        for outcome in outcomes:
            if answers and answers[-1].verdict is not Verdict.APPLIED:
                answers.append(Reported(Verdict.STALE))
            else:
                answers += super().report([outcome], now)
        return answers or [Reported(Verdict.STALE)]


@breaks("4.2")
class AppliesTheLastOutcome(InMemoryStore):
    """Lets the last of several outcomes for one lease count."""

    def report(self, outcomes: Sequence[Outcome], now: datetime) -> Sequence[Reported]:
        """Report backwards."""
        return list(super().report(outcomes[::-1], now))[::-1]


@breaks("4.2", "0.5")
class FailsOnALargeOutput(InMemoryStore):
    """Dead-letters a job whose output is too large."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        answer = super()._recorded(outcome, now, swept=swept)
        if answer.verdict is Verdict.OUTPUT_TOO_LARGE:
            super()._recorded(outcome._replace(result=Failed("output too large")), now, swept=swept)
        return answer


@breaks("4.3", "1.2", "0.1", "4.2")
class RetriesForEver(InMemoryStore):
    """Tries every failure again, at once."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        if isinstance(outcome.result, Failed):
            outcome = outcome._replace(result=outcome.result._replace(retry_at=now))
        return super()._recorded(outcome, now, swept=swept)


@breaks("4.3", "6.1")
class EndsEverythingAsSuccess(InMemoryStore):
    """Takes whatever is reported for a success."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        if getattr(outcome.result, "cause", None) is not None:
            outcome = outcome._replace(result=Succeeded())
        return super()._recorded(outcome, now, swept=swept)


@breaks("4.3", "4.6", "1.3", "5.1")
class GivesEveryEndOneCause(InMemoryStore):
    """Writes its own words for every cause, and one that is empty for none."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        answer = super()._recorded(outcome, now, swept=swept)
        row = self._tables.rows.get(outcome.lease.job_id)
        if row is not None and row.terminal_cause is not None:
            cause = getattr(outcome.result, "cause", "")
            row.terminal_cause = "it ended" if cause else ""
        return answer


@breaks("4.4", "6.1", "1.2")
class MovesNoChildren(InMemoryStore):
    """Leaves children to some later sweep."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        return


@breaks("4.4")
class GoesFiftyLevelsDown(InMemoryStore):
    """Gives up on a cascade that is deep, and on one that is wide."""

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        children = len(self._tables.rows)
        if children < 150:
            super()._follow(ended, now, *others)


@breaks("4.5", "4.4", "4.2", "0.5", "0.6")
class KeepsNoOutput(InMemoryStore):
    """Loses the output of a success."""

    def job_output(self, job_id: UUID) -> bytes | None:
        """Read nothing."""
        return None


@breaks("4.5")
class GivesEveryJobAnOutput(InMemoryStore):
    """Gives an output to jobs that have left none."""

    def job_output(self, job_id: UUID) -> bytes | None:
        """Read something."""
        found = super().job_output(job_id)
        return b"" if found is None and job_id in self._tables.rows else found


@breaks("4.5", "5.1", "8.1", "8.2")
class AddsTagsWithSuccessOnly(InMemoryStore):
    """Drops the tags of an attempt that failed."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        if isinstance(outcome.result, Failed):
            outcome = outcome._replace(result=outcome.result._replace(tags=()))
        return super()._recorded(outcome, now, swept=swept)


@breaks("4.5")
class AddsTagsAtTheFront(InMemoryStore):
    """Puts new tags before the old ones, and adds them whether the lease lives or not."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        answer = super()._recorded(outcome, now, swept=swept)
        row = self._tables.rows.get(outcome.lease.job_id)
        if row is not None:
            row.tags = list(dict.fromkeys([*tags_of(outcome.result), *row.tags]))
        return answer


@breaks("4.7", "4.2")
class GivesNoAttemptBack(InMemoryStore):
    """Takes every hand-back for one of a job that had begun."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        if isinstance(outcome.result, Released):
            outcome = outcome._replace(result=Released(started=True))
        return super()._recorded(outcome, now, swept=swept)


@breaks("4.7")
class GivesEveryAttemptBack(InMemoryStore):
    """Takes every hand-back for one of a job that had not begun, and a sweep for one too."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        answer = super()._recorded(outcome, now, swept=swept)
        if answer.state is JobState.SCHEDULED:
            self._tables.rows[outcome.lease.job_id].attempt = 0
        return answer


@breaks("4.7", "6.4")
class EndsWhatIsHandedBack(InMemoryStore):
    """Lets the children of a job go that was handed back."""

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        answer = super()._recorded(outcome, now, swept=swept)
        if isinstance(outcome.result, Released):
            for child in self._tables.waiting_for(outcome.lease.job_id):
                child.state = JobState.SCHEDULED
        return answer


@breaks("4.8")
class ClaimsBeforeItReports(InMemoryStore):
    """Makes the halves of an exchange in the wrong order."""

    def exchange(
        self,
        worker_id: str,
        outcomes: Sequence[Outcome],
        request: ClaimRequest | None,
        now: datetime,
    ) -> tuple[Sequence[Reported], Claimed | None]:
        """Claim, then report."""
        claimed = None if request is None else self.claim(worker_id, request, now)
        return self.report(outcomes, now), claimed


@breaks("4.8")
class ForgetsKeptSlots(InMemoryStore):
    """Claims as much as was asked for, whatever is still held, and also if nothing was."""

    def exchange(
        self,
        worker_id: str,
        outcomes: Sequence[Outcome],
        request: ClaimRequest | None,
        now: datetime,
    ) -> tuple[Sequence[Reported], Claimed | None]:
        """Report, then claim all."""
        reports = self.report(outcomes, now)
        if request is None:
            return reports, Claimed((), now)
        return reports, self.claim(worker_id, request, now)
