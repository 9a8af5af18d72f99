"""Mutants of chapter 7: recurring schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from ....core.schedules import CatchUp
from ....storage.memory import InMemoryStore
from ....storage.rules import check_instant
from ....storage.values import (
    MintDecision,
    Minted,
    NewJob,
    Schedule,
    ScheduleDefinition,
    SkippedTick,
    TriggerResult,
    UpsertResult,
)
from .registry import Unlocked, breaks, pause


class OtherDefinition(InMemoryStore):
    """A store that keeps another definition than it is given."""

    def _kept(self, definition: ScheduleDefinition) -> ScheduleDefinition:
        return definition

    def upsert_schedule(self, definition: ScheduleDefinition, now: datetime) -> UpsertResult:
        """Define something else."""
        return super().upsert_schedule(self._kept(definition), now)


@breaks("7.1")
class FoldsTheCaseOfIds(OtherDefinition):
    """Takes A for a, and forgets the catch-up policy."""

    def _kept(self, definition: ScheduleDefinition) -> ScheduleDefinition:
        return replace(
            definition, schedule_id=definition.schedule_id.lower(), catch_up=CatchUp.SKIP
        )


@breaks("7.1")
class ClipsAPayload(OtherDefinition):
    """Keeps what there is room for."""

    def _kept(self, definition: ScheduleDefinition) -> ScheduleDefinition:
        return replace(definition, payload=definition.payload[: self.limits.max_payload_bytes])


class OtherCursor(InMemoryStore):
    """A store that moves the cursor of a definition otherwise."""

    def _cursor(self, old: Schedule | None, cursor: datetime, now: datetime) -> datetime:
        raise NotImplementedError

    def upsert_schedule(self, definition: ScheduleDefinition, now: datetime) -> UpsertResult:
        """Define, and set the cursor."""
        old = self._tables.schedules.get(definition.schedule_id)
        answer = super().upsert_schedule(definition, now)
        new = self._tables.schedules.get(definition.schedule_id)
        if new is not None:
            cursor = self._cursor(old, new.cursor, now)
            self._tables.schedules[definition.schedule_id] = new._replace(cursor=cursor)
        return answer


@breaks("7.1")
class KeepsTheCursorAlways(OtherCursor):
    """Fills in the past of a new expression."""

    def _cursor(self, old: Schedule | None, cursor: datetime, now: datetime) -> datetime:
        return cursor if old is None else old.cursor


@breaks("7.1")
class MovesTheCursorAlways(OtherCursor):
    """Loses ticks at every deploy."""

    def _cursor(self, old: Schedule | None, cursor: datetime, now: datetime) -> datetime:
        return now


@breaks("7.1")
class RemovesTheJobsToo(InMemoryStore):
    """Takes what a schedule has minted with it."""

    def remove_schedule(self, schedule_id: str) -> bool:
        """Remove everything."""
        rows = self._tables.rows
        for job_id in [j for j, row in rows.items() if row.schedule_id == schedule_id]:
            rows[job_id].payload = b""
        return super().remove_schedule(schedule_id)


@breaks("7.1")
class ListsInTheOrderOfDefinition(InMemoryStore):
    """Gives the newest schedule last."""

    def list_schedules(self, *, after: str | None = None, limit: int = 200) -> list[Schedule]:
        """List what was defined first, first."""
        found = list(self._tables.schedules.values())
        names = [schedule.definition.schedule_id for schedule in found]
        start = names.index(after) + 1 if after in names else 0
        return found[start : start + max(0, limit)]


@breaks("7.1")
class CreatesEachTime(Unlocked):
    """Looks whether a schedule is there, and writes later."""

    def upsert_schedule(self, definition: ScheduleDefinition, now: datetime) -> UpsertResult:
        """Define without taking turns."""
        is_new = definition.schedule_id not in self._tables.schedules
        pause()
        answer = super().upsert_schedule(definition, now)
        return UpsertResult.CREATED if is_new else answer


class OtherMint(InMemoryStore):
    """A store that carries out another decision."""

    def _changed(self, decision: MintDecision) -> MintDecision:
        return decision

    def _mint(self, decision: MintDecision, now: datetime) -> Minted:
        return super()._mint(self._changed(decision), now)


@breaks("7.2")
class MintsFromAnyCursor(OtherMint):
    """Has no fence."""

    def _changed(self, decision: MintDecision) -> MintDecision:
        found = self._tables.schedules.get(decision.schedule_id)
        return decision if found is None else decision._replace(cursor=found.cursor)


@breaks("7.2")
class MovesTheCursorToTheLastTick(OtherMint):
    """Decides for itself how far it has come."""

    def _changed(self, decision: MintDecision) -> MintDecision:
        ticks = [mint.tick for mint in decision.mints]
        return decision._replace(new_cursor=max([*ticks, *decision.missed]))


@breaks("7.2")
class MintsTheDisabled(InMemoryStore):
    """Does not ask whether a schedule is switched off."""

    def _mint(self, decision: MintDecision, now: datetime) -> Minted:
        found = self._tables.schedules.get(decision.schedule_id)
        if found is not None:
            definition = replace(found.definition, enabled=True)
            self._tables.schedules[decision.schedule_id] = found._replace(definition=definition)
        return super()._mint(decision, now)


@breaks("7.2")
class MintsWithoutTurns(Unlocked):
    """Looks at the cursor, and mints later."""

    def mint_due(self, decisions: Sequence[MintDecision], now: datetime) -> Sequence[Minted]:
        """Mint what was due when it looked."""
        answers = []
        for decision in decisions:
            found = self._tables.schedules.get(decision.schedule_id)
            pause()
            if found is not None and found.definition.enabled and found.cursor == decision.cursor:
                self._tables.schedules[decision.schedule_id] = found
                answers.append(self._mint(decision, now))
            else:
                answers.append(Minted(False))
        return answers


class OtherJobs(InMemoryStore):
    """A store that mints other jobs."""

    def _job(self, job: NewJob, now: datetime) -> NewJob:
        return job

    def _insert_minted(self, job: NewJob, now: datetime) -> bool:
        return super()._insert_minted(self._job(job, now), now)


@breaks("7.2")
class MintsForNow(OtherJobs):
    """Makes a minted job due when it is minted, and forgets its tags."""

    def _job(self, job: NewJob, now: datetime) -> NewJob:
        return replace(job, due_time=now, tags=())


@breaks("7.2")
class RemembersTheFirstTemplate(InMemoryStore):
    """Mints what was defined first, whatever came after."""

    def upsert_schedule(self, definition: ScheduleDefinition, now: datetime) -> UpsertResult:
        """Keep the first queue."""
        found = self._tables.schedules.get(definition.schedule_id)
        if found is not None:
            definition = replace(definition, queue=found.definition.queue)
        return super().upsert_schedule(definition, now)


@breaks("7.2")
class MintsOverWhatIsThere(InMemoryStore):
    """Replaces a job that has the id."""

    def _insert_minted(self, job: NewJob, now: datetime) -> bool:
        self._tables.rows.pop(job.job_id, None)
        return super()._insert_minted(job, now)


@breaks("7.2")
class ChecksNoDecision(InMemoryStore):
    """Takes any instants."""

    def mint_due(self, decisions: Sequence[MintDecision], now: datetime) -> Sequence[Minted]:
        """Mint whatever is decided."""
        check_instant(now)
        return [self._mint(decision, now) for decision in decisions]


@breaks("7.2", "7.3")
class LetsJobsOverlap(InMemoryStore):
    """Never looks for a job that lives."""

    def _has_live_job(self, schedule_id: str) -> bool:
        return False


@breaks("7.2")
class LooksForAnyJob(InMemoryStore):
    """Takes a job of any schedule for one in the way."""

    def _has_live_job(self, schedule_id: str) -> bool:
        return any(not row.state.is_terminal for row in self._tables.rows.values())


@breaks("7.3")
class KeepsTheOldestSkips(InMemoryStore):
    """Lets the newest go."""

    def skipped_ticks(self, schedule_id: str) -> list[SkippedTick]:
        """Read the oldest first."""
        return super().skipped_ticks(schedule_id)[::-1]


@breaks("7.3")
class RecordsWithoutBound(InMemoryStore):
    """Keeps every skipped tick."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._all: dict[str, list[SkippedTick]] = {}

    def _mint(self, decision: MintDecision, now: datetime) -> Minted:
        before = set(self._tables.skipped.get(decision.schedule_id, []))
        answer = super()._mint(decision, now)
        fresh = set(self._tables.skipped.get(decision.schedule_id, [])) - before
        self._all.setdefault(decision.schedule_id, []).extend(fresh)
        return answer

    def skipped_ticks(self, schedule_id: str) -> list[SkippedTick]:
        """Read all."""
        return sorted(self._all.get(schedule_id, []), reverse=True)


class OtherTrigger(InMemoryStore):
    """A store that triggers otherwise."""

    def _triggered(self, schedule_id: str, now: datetime) -> None:
        raise NotImplementedError

    def trigger_schedule_now(
        self, schedule_id: str, job_id: UUID, actor: str | None, now: datetime
    ) -> TriggerResult:
        """Trigger, and do something more."""
        answer = super().trigger_schedule_now(schedule_id, job_id, actor, now)
        if schedule_id in self._tables.schedules:
            self._triggered(schedule_id, now)
        return answer


@breaks("7.4")
class MovesTheCursorByATrigger(OtherTrigger):
    """Takes a trigger for a tick."""

    def _triggered(self, schedule_id: str, now: datetime) -> None:
        found = self._tables.schedules[schedule_id]
        self._tables.schedules[schedule_id] = found._replace(cursor=now)


@breaks("7.4")
class TriggersUnseen(OtherTrigger):
    """Audits nothing."""

    def _triggered(self, schedule_id: str, now: datetime) -> None:
        del self._tables.audit[-1:]


@breaks("7.4")
class TriggersWithoutOverlap(InMemoryStore):
    """Lets a living job stand in the way of an operator."""

    def trigger_schedule_now(
        self, schedule_id: str, job_id: UUID, actor: str | None, now: datetime
    ) -> TriggerResult:
        """Trigger, if nothing lives."""
        if self._has_live_job(schedule_id):
            return TriggerResult.DUPLICATE
        return super().trigger_schedule_now(schedule_id, job_id, actor, now)


@breaks("7.4")
class SaysThatItTriggered(InMemoryStore):
    """Does not say when an id was taken."""

    def trigger_schedule_now(
        self, schedule_id: str, job_id: UUID, actor: str | None, now: datetime
    ) -> TriggerResult:
        """Trigger, and be content."""
        answer = super().trigger_schedule_now(schedule_id, job_id, actor, now)
        return TriggerResult.TRIGGERED if answer is TriggerResult.DUPLICATE else answer
