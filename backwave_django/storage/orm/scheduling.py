"""Schedules, over the ORM."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from ...core.schedules import CatchUp, SkipReason
from ...core.states import LIVE_STATES, JobState
from ...core.tags import Tag
from ...models import AuditRecord as AuditRow
from ...models import Schedule as ScheduleRow
from ...models import SkippedTick as SkippedRow
from ..rules import (
    check_actor,
    check_decision,
    check_instant,
    check_schedule,
    is_anew,
    is_storable,
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
from .base import StoreBase, guarded
from .rows import CHUNK, NewRow


class SchedulingOrm(StoreBase):
    """The scheduling part of the Django store; see ``SchedulingStore``."""

    def upsert_schedule(self, definition: ScheduleDefinition, now: datetime) -> UpsertResult:
        """Define a schedule, or redefine it."""
        check_instant(now)
        refusal = refusal_of_schedule(definition, self.limits)
        if refusal is not None:
            return refusal
        columns = _columns(definition)
        with self.faults(), self.dialect.store_atomic():
            rows = ScheduleRow.objects.using(self.alias)
            named = rows.filter(schedule_id=definition.schedule_id)
            row = None
            while row is None:  # someone else may remove it between the two statements
                _, created = rows.get_or_create(
                    schedule_id=definition.schedule_id,
                    defaults={**columns, "cursor": now, "defined_at": now},
                )
                if created:
                    return UpsertResult.CREATED
                row = named.select_for_update().first()
            old = _schedule(row)
            if old.definition == definition:
                return UpsertResult.UNCHANGED
            cursor = now if is_anew(old.definition, definition) else old.cursor
            named.update(**columns, cursor=cursor, defined_at=now)
            return UpsertResult.CHANGED

    def remove_schedule(self, schedule_id: str) -> bool:
        """Forget a schedule."""
        check_schedule(schedule_id)
        with self.faults(), self.dialect.store_atomic():
            rows = ScheduleRow.objects.using(self.alias).filter(schedule_id=schedule_id)
            found = bool(rows.delete()[0])
            SkippedRow.objects.using(self.alias).filter(schedule_id=schedule_id).delete()
            return found

    @guarded
    def list_schedules(self, *, after: str | None = None, limit: int = 200) -> list[Schedule]:
        """Read a page of schedules."""
        rows = ScheduleRow.objects.using(self.alias).order_by("schedule_id")
        if after is not None:
            rows = rows.filter(schedule_id__gt=after)
        return [_schedule(row) for row in rows[: self.page(limit)]]

    # -- minting ------------------------------------------------------------------

    def mint_due(self, decisions: Sequence[MintDecision], now: datetime) -> Sequence[Minted]:
        """Carry out what a node has decided."""
        check_instant(now)
        for decision in decisions:
            check_decision(decision)
        if not decisions:
            return []
        with self.faults(), self.dialect.store_atomic():
            held = self._held_schedules(sorted({decision.schedule_id for decision in decisions}))
            return [self._mint(held, decision, now) for decision in decisions]

    def _held_schedules(self, schedule_ids: list[str]) -> dict[str, Schedule]:
        """Lock schedules in code-point order; pass by what others hold."""
        features = self.dialect.connection.features
        rows = ScheduleRow.objects.using(self.alias).select_for_update(
            skip_locked=features.has_select_for_update_skip_locked
        )
        found: dict[str, Schedule] = {}
        for start in range(0, len(schedule_ids), CHUNK):
            chunk = rows.filter(schedule_id__in=schedule_ids[start : start + CHUNK])
            for row in chunk.order_by("schedule_id"):
                found[row.schedule_id] = _schedule(row)
        return found

    def _mint(self, held: dict[str, Schedule], decision: MintDecision, now: datetime) -> Minted:
        found = held.get(decision.schedule_id)
        if found is None or not found.definition.enabled or found.cursor != decision.cursor:
            return Minted(False)
        mints = list(decision.mints)
        skipped = [SkippedTick(tick, SkipReason.MISSED, now) for tick in decision.missed]
        if found.definition.no_overlap:
            # The first may be minted, and is then in the way of the others.
            room = 0 if self._has_live_job(decision.schedule_id) else 1
            late = [SkippedTick(mint.tick, SkipReason.OVERLAP, now) for mint in mints[room:]]
            mints, skipped = mints[:room], skipped + late
        jobs = [minted_job(found.definition, job_id, tick, tick) for tick, job_id in mints]
        inserted = self._insert(jobs, now)
        rows = ScheduleRow.objects.using(self.alias).filter(schedule_id=decision.schedule_id)
        rows.update(cursor=decision.new_cursor)
        held[decision.schedule_id] = found._replace(cursor=decision.new_cursor)
        self._record(decision.schedule_id, skipped)
        return Minted(True, tuple(job.job_id for job in jobs if job.job_id in inserted))

    def _has_live_job(self, schedule_id: str) -> bool:
        live = self.dialect.jobs().filter(schedule_id=schedule_id, state__in=LIVE_STATES)
        return live.exists()

    def _insert(self, jobs: list[NewJob], now: datetime) -> dict[UUID, int]:
        rows = [NewRow(job, JobState.SCHEDULED) for job in jobs]
        inserted: dict[UUID, int] = {}
        for start in range(0, len(rows), CHUNK):
            inserted |= self.dialect.insert_jobs(rows[start : start + CHUNK], now)
        return inserted

    # -- skipped ticks ------------------------------------------------------------

    def _record(self, schedule_id: str, skipped: list[SkippedTick]) -> None:
        if not skipped:
            return
        most = self.limits.max_recorded_skipped_ticks
        rows = SkippedRow.objects.using(self.alias)
        rows.bulk_create(
            [
                SkippedRow(schedule_id=schedule_id, tick=tick, reason=reason, at=at)
                for tick, reason, at in sorted(skipped)[-most:]
            ]
        )
        kept = rows.filter(schedule_id=schedule_id).order_by("-tick", "-id")
        old = list(kept.values_list("pk", flat=True)[most : most + CHUNK])
        rows.filter(pk__in=old).delete()

    @guarded
    def skipped_ticks(self, schedule_id: str) -> list[SkippedTick]:
        """Read the newest ticks that minted nothing."""
        if not is_storable(schedule_id):
            return []
        rows = SkippedRow.objects.using(self.alias).filter(schedule_id=schedule_id)
        newest = rows.order_by("-tick", "-id")[: self.limits.max_recorded_skipped_ticks]
        return [SkippedTick(row.tick, SkipReason(row.reason), row.at) for row in newest]

    # -- operators ----------------------------------------------------------------

    def trigger_schedule_now(
        self, schedule_id: str, job_id: UUID, actor: str | None, now: datetime
    ) -> TriggerResult:
        """Mint one job of a schedule."""
        check_instant(now)
        check_actor(actor)
        if not is_storable(schedule_id):
            return TriggerResult.NOT_FOUND
        with self.faults(), self.dialect.store_atomic():
            row = ScheduleRow.objects.using(self.alias).filter(schedule_id=schedule_id).first()
            if row is None:
                return TriggerResult.NOT_FOUND
            job = minted_job(_schedule(row).definition, job_id, now, None)
            if not self._insert([job], now):
                return TriggerResult.DUPLICATE
            AuditRow.objects.using(self.alias).create(
                at=now,
                actor=actor,
                action=AuditAction.TRIGGER_SCHEDULE.value,
                target=schedule_id,
                detail=str(job_id),
            )
            return TriggerResult.TRIGGERED


def _columns(definition: ScheduleDefinition) -> dict[str, object]:
    return {
        "cron": definition.cron,
        "time_zone": definition.time_zone,
        "wire_name": definition.wire_name,
        "payload": definition.payload,
        "queue": definition.queue,
        "tags": [list(tag) for tag in definition.tags],
        "catch_up": definition.catch_up,
        "no_overlap": definition.no_overlap,
        "enabled": definition.enabled,
    }


def _schedule(row: ScheduleRow) -> Schedule:
    definition = ScheduleDefinition(
        schedule_id=row.schedule_id,
        cron=row.cron,
        time_zone=row.time_zone,
        wire_name=row.wire_name,
        payload=bytes(row.payload),
        queue=row.queue,
        tags=tuple(Tag(key, value) for key, value in row.tags),
        catch_up=CatchUp(row.catch_up),
        no_overlap=row.no_overlap,
        enabled=row.enabled,
    )
    return Schedule(definition, row.cursor, row.defined_at)
