"""What the contract keeps of recurring schedules, and how their ticks become jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from ..values import (
    MintDecision,
    Minted,
    Schedule,
    ScheduleDefinition,
    SkippedTick,
    TriggerResult,
    UpsertResult,
)


class SchedulingStore(Protocol):
    """Schedules. The store knows no cron: nodes decide, and it fences their decisions."""

    def upsert_schedule(self, definition: ScheduleDefinition, now: datetime) -> UpsertResult:
        """Define a schedule, or redefine it (7.1).

        The cursor of a new one is ``now``. A redefinition keeps the cursor, unless the
        expression or the zone changed, or the schedule was disabled and is no longer:
        then it becomes ``now``. So defining never fills in the past. An equal definition
        changes nothing.
        """
        ...

    def remove_schedule(self, schedule_id: str) -> bool:
        """Forget a schedule, and its skipped ticks; whether it was there (7.1).

        Jobs that it has minted go on.
        """
        ...

    def list_schedules(self, *, after: str | None = None, limit: int = 200) -> list[Schedule]:
        """Read a page of schedules by id in code-point order, beyond ``after`` (7.1)."""
        ...

    def mint_due(self, decisions: Sequence[MintDecision], now: datetime) -> Sequence[Minted]:
        """Carry out what a node has decided; an answer per decision, in order (7.2).

        A decision whose cursor has moved is skipped whole, so each tick mints at most
        one job whoever decides. A minted job is due at its tick and carries it. With
        ``no_overlap``, a tick is skipped while any job of the schedule has not ended; it
        is recorded (7.3). Passed by, too: schedules that someone's open transaction
        holds. All decisions are one transaction.
        """
        ...

    def skipped_ticks(self, schedule_id: str) -> list[SkippedTick]:
        """Read the newest ``MaxRecordedSkippedTicks`` ticks that minted nothing (7.3).

        The newest tick first.
        """
        ...

    def trigger_schedule_now(
        self, schedule_id: str, job_id: UUID, actor: str | None, now: datetime
    ) -> TriggerResult:
        """Mint one job of a schedule, due now, without a tick (7.4).

        It moves no cursor, and neither ``no_overlap`` nor a disabled schedule keeps it
        from being minted. It is audited as an operator's action (5.5).
        """
        ...
