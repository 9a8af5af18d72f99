"""Recurring schedules, and what minting does to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from ...core.schedules import CatchUp, SkipReason
from ...core.tags import Tag


@dataclass(frozen=True, slots=True)
class ScheduleDefinition:
    """What a schedule is defined as.

    Attributes:
        schedule_id: its identity, at most 128 characters.
        cron: the canonical expression, six fields, seconds first; opaque to the store.
        time_zone: an IANA name; ``None`` means UTC.
        wire_name: the type of the jobs that it mints.
        payload: their payload; opaque bytes.
        queue: their queue.
        tags: their tags, in first-seen order.
        catch_up: what becomes of ticks that nobody minted.
        no_overlap: whether a tick is skipped while a job of the schedule has not ended.
        enabled: whether ticks mint at all.
    """

    schedule_id: str
    cron: str
    wire_name: str
    payload: bytes
    queue: str
    time_zone: str | None = None
    tags: tuple[Tag, ...] = ()
    catch_up: CatchUp = CatchUp.SKIP
    no_overlap: bool = False
    enabled: bool = True


class Schedule(NamedTuple):
    """A schedule as a read finds it.

    Attributes:
        definition: what it is.
        cursor: the instant up to which its ticks have been dealt with.
        defined_at: when the definition last changed.
    """

    definition: ScheduleDefinition
    cursor: datetime
    defined_at: datetime


class UpsertResult(Enum):
    """What a definition came to. The last two leave no trace."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    PAYLOAD_TOO_LARGE = "payload too large"
    WIRE_NAME_TOO_LONG = "wire name too long"


class SkippedTick(NamedTuple):
    """A tick that minted no job: which, why, and when that was decided."""

    tick: datetime
    reason: SkipReason
    at: datetime


class Mint(NamedTuple):
    """A tick that shall mint a job, and the id that the job will have."""

    tick: datetime
    job_id: UUID


class MintDecision(NamedTuple):
    """What a node has decided about the ticks of one schedule.

    Attributes:
        schedule_id: the schedule.
        cursor: the cursor that the decision was made from.
        new_cursor: where the cursor shall stand; later than ``cursor``.
        mints: ticks that shall mint, in order.
        missed: ticks that are passed over.
    """

    schedule_id: str
    cursor: datetime
    new_cursor: datetime
    mints: tuple[Mint, ...] = ()
    missed: tuple[datetime, ...] = ()


class Minted(NamedTuple):
    """What became of a decision.

    Attributes:
        applied: whether it was taken; not where the cursor has moved, or the schedule is
            gone, disabled, or held by someone's open transaction.
        job_ids: the jobs that it minted.
    """

    applied: bool
    job_ids: tuple[UUID, ...] = ()


class TriggerResult(Enum):
    """What a trigger came to."""

    TRIGGERED = "triggered"
    NOT_FOUND = "not found"
    DUPLICATE = "duplicate"
