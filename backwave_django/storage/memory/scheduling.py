"""Schedules, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from ...core.schedules import SkipReason
from ...core.states import Move
from ..rules import (
    check_actor,
    check_decision,
    check_instant,
    check_schedule,
    is_anew,
    minted_job,
    refusal_of_schedule,
)
from ..values import (
    AuditAction,
    MintDecision,
    Minted,
    NewJob,
    Schedule,
    ScheduleDefinition,
    SkippedTick,
    TriggerResult,
    UpsertResult,
)
from .base import MemoryBase


class SchedulingMemory(MemoryBase):
    """The scheduling part of the in-memory store; see ``SchedulingStore``."""

    def upsert_schedule(self, definition: ScheduleDefinition, now: datetime) -> UpsertResult:
        """Define a schedule, or redefine it."""
        check_instant(now)
        refusal = refusal_of_schedule(definition, self.limits)
        if refusal is not None:
            return refusal
        with self._lock:
            old = self._tables.schedules.get(definition.schedule_id)
            if old is not None and old.definition == definition:
                return UpsertResult.UNCHANGED
            cursor = now if old is None or is_anew(old.definition, definition) else old.cursor
            self._tables.schedules[definition.schedule_id] = Schedule(definition, cursor, now)
            return UpsertResult.CREATED if old is None else UpsertResult.CHANGED

    def remove_schedule(self, schedule_id: str) -> bool:
        """Forget a schedule."""
        check_schedule(schedule_id)
        with self._lock:
            self._tables.skipped.pop(schedule_id, None)
            return self._tables.schedules.pop(schedule_id, None) is not None

    def list_schedules(self, *, after: str | None = None, limit: int = 200) -> list[Schedule]:
        """Read a page of schedules."""
        with self._lock:
            names = sorted(n for n in self._tables.schedules if after is None or n > after)
            return [self._tables.schedules[name] for name in names[: self._page(limit)]]

    def mint_due(self, decisions: Sequence[MintDecision], now: datetime) -> Sequence[Minted]:
        """Carry out what a node has decided."""
        check_instant(now)
        for decision in decisions:
            check_decision(decision)
        with self._lock:
            return [self._mint(decision, now) for decision in decisions]

    def _mint(self, decision: MintDecision, now: datetime) -> Minted:
        found = self._tables.schedules.get(decision.schedule_id)
        if found is None or not found.definition.enabled or found.cursor != decision.cursor:
            return Minted(False)
        minted = []
        skipped = [SkippedTick(tick, SkipReason.MISSED, now) for tick in decision.missed]
        for tick, job_id in decision.mints:
            if found.definition.no_overlap and self._has_live_job(decision.schedule_id):
                skipped.append(SkippedTick(tick, SkipReason.OVERLAP, now))
            elif self._insert_minted(minted_job(found.definition, job_id, tick, tick), now):
                minted.append(job_id)
        self._tables.schedules[decision.schedule_id] = found._replace(cursor=decision.new_cursor)
        kept = [*self._tables.skipped.get(decision.schedule_id, []), *skipped]
        kept.sort(reverse=True)
        self._tables.skipped[decision.schedule_id] = kept[: self.limits.max_recorded_skipped_ticks]
        return Minted(True, tuple(minted))

    def _has_live_job(self, schedule_id: str) -> bool:
        return any(
            row.schedule_id == schedule_id and not row.state.is_terminal
            for row in self._tables.rows.values()
        )

    def _insert_minted(self, job: NewJob, now: datetime) -> bool:
        if job.job_id in self._tables.rows:
            return False
        self._tables.move(self._tables.insert(job, now, set()), Move.ENQUEUE, now)
        return True

    def skipped_ticks(self, schedule_id: str) -> list[SkippedTick]:
        """Read the newest ticks that minted nothing."""
        with self._lock:
            return list(self._tables.skipped.get(schedule_id, []))

    def trigger_schedule_now(
        self, schedule_id: str, job_id: UUID, actor: str | None, now: datetime
    ) -> TriggerResult:
        """Mint one job of a schedule."""
        check_instant(now)
        check_actor(actor)
        with self._lock:
            found = self._tables.schedules.get(schedule_id)
            if found is None:
                return TriggerResult.NOT_FOUND
            if not self._insert_minted(minted_job(found.definition, job_id, now, None), now):
                return TriggerResult.DUPLICATE
            self._audit(AuditAction.TRIGGER_SCHEDULE, schedule_id, actor, now, str(job_id))
            return TriggerResult.TRIGGERED
