"""Checks of the contract that need no database, shared by every store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from ..core.commands import ClaimRequest
from ..core.errors import InvalidOption
from ..core.limits import Limits
from ..core.states import JobState
from ..core.tags import tag_set
from ..core.text import (
    ACTOR_MAX,
    CRON_MAX,
    OBSERVER_NAME_MAX,
    QUEUE_NAME_MAX,
    SCHEDULE_ID_MAX,
    TIME_ZONE_MAX,
    WORKER_ID_MAX,
    check_name,
    visible,
)
from .errors import StoreMisused
from .values import (
    EnqueueResult,
    EnqueueStatus,
    HistoryPolicy,
    JobFilter,
    MintDecision,
    NewJob,
    ObserverDefinition,
    ScheduleDefinition,
    UpsertResult,
)


def check_instant(now: datetime, what: str = "now") -> None:
    """Refuse anything but an aware UTC instant (0.1).

    Raises:
        StoreMisused: naive, or in another zone than UTC.
    """
    if now.utcoffset() != timedelta(0):
        raise StoreMisused(f"{what} must be an aware UTC datetime, not {now!r}", value=now)


def check_queue(queue: str) -> str:
    """Refuse what cannot be the name of a queue (0.6)."""
    return check_name("queue", queue, QUEUE_NAME_MAX)


def check_schedule(schedule_id: str) -> str:
    """Refuse what cannot be the id of a schedule (0.6)."""
    return check_name("schedule id", schedule_id, SCHEDULE_ID_MAX)


def check_worker(worker_id: str) -> str:
    """Refuse what cannot be the id of a worker (0.6)."""
    return check_name("worker id", worker_id, WORKER_ID_MAX)


def check_actor(actor: str | None) -> str | None:
    """Refuse what cannot name an actor; ``None`` stands for nobody in particular (0.6)."""
    return None if actor is None else check_name("actor", actor, ACTOR_MAX)


def check_job_id(job_id: object) -> UUID:
    """Refuse what is no job id: a text would mean one thing here and another there."""
    if not isinstance(job_id, UUID):
        raise InvalidOption(f"a job id is a UUID, as an enqueue gives it, not {job_id!r}")
    return job_id


def can_be_found(wanted: JobFilter) -> bool:
    """Whether any job could match: no database holds a name with a NUL or a surrogate."""
    names = (wanted.queue, wanted.wire_name, wanted.schedule_id)
    return all(name is None or is_storable(name) for name in names)


def is_storable(text: str) -> bool:
    """Whether a database could hold this text: none has a NUL or a surrogate."""
    return visible(text) == text


def check_limit(limit: int | None) -> None:
    """Refuse a concurrency limit that is not ``None`` or a whole number from 1 up (5.4)."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise StoreMisused(
            f"a concurrency limit is a whole number of at least 1, or None, not {limit!r}",
            value=limit,
        )


def check_cutoffs(before: Mapping[JobState, datetime]) -> None:
    """Refuse to purge jobs that have not ended, or by instants that are not aware UTC (8.3)."""
    for state, cutoff in before.items():
        check_instant(cutoff, f"the cutoff of {state.label}")
        if not state.is_terminal:
            raise StoreMisused(f"only ended jobs can be purged, not {state.label}", value=state)


def with_tag_set(job: NewJob) -> NewJob:
    """Give the job with its tags checked and each of them once (0.6, 2.5)."""
    tags = tag_set(job.tags)
    return job if tags == job.tags else replace(job, tags=tags)


def check_shares(request: ClaimRequest) -> None:
    """Refuse a claim on what cannot be the name of a queue (0.6)."""
    for share in request.shares:
        check_queue(share.queue)


def refusal_of(job: NewJob, limits: Limits) -> EnqueueResult | None:
    """Make the pure checks of an enqueue, in their fixed order (2.1); ``None``: passed.

    Raises:
        InvalidOption: a name that no store can hold (0.6).
        StoreMisused: a due time that is not aware UTC.
    """
    check_instant(job.due_time, "due_time")
    check_name("wire name", job.wire_name, None)
    check_queue(job.queue)
    if job.tick is not None:
        check_instant(job.tick, "tick")
    if job.schedule_id is not None:
        check_schedule(job.schedule_id)
    if len(job.payload) > limits.max_payload_bytes:
        return EnqueueResult(EnqueueStatus.PAYLOAD_TOO_LARGE)
    if len(job.wire_name) > limits.max_wire_name_length:
        return EnqueueResult(EnqueueStatus.WIRE_NAME_TOO_LONG)
    if len(set(job.parents)) > limits.max_parents_per_job:
        return EnqueueResult(EnqueueStatus.TOO_MANY_PARENTS)
    return None


def refusal_of_schedule(definition: ScheduleDefinition, limits: Limits) -> UpsertResult | None:
    """Make the pure checks of a definition (7.1); ``None``: passed.

    Raises:
        InvalidOption: a name that no store can hold (0.6).
    """
    check_schedule(definition.schedule_id)
    check_name("cron expression", definition.cron, CRON_MAX)
    if definition.time_zone is not None:
        check_name("time zone", definition.time_zone, TIME_ZONE_MAX)
    check_name("wire name", definition.wire_name, None)
    check_queue(definition.queue)
    if tag_set(definition.tags) != definition.tags:
        raise InvalidOption("tags of a schedule must be a set of tags", value=definition.tags)
    if len(definition.payload) > limits.max_payload_bytes:
        return UpsertResult.PAYLOAD_TOO_LARGE
    if len(definition.wire_name) > limits.max_wire_name_length:
        return UpsertResult.WIRE_NAME_TOO_LONG
    return None


def is_anew(old: ScheduleDefinition, new: ScheduleDefinition) -> bool:
    """Whether a redefinition starts over from now: other ticks, or ticks again (7.1)."""
    ticks = (old.cron, old.time_zone) != (new.cron, new.time_zone)
    return ticks or (new.enabled and not old.enabled)


def check_decision(decision: MintDecision) -> None:
    """Refuse a decision that is not about the time between its cursors (7.2)."""
    ticks = [*decision.missed, *(mint.tick for mint in decision.mints)]
    for instant in (decision.cursor, decision.new_cursor, *ticks):
        check_instant(instant, "an instant of a mint decision")
    if decision.new_cursor <= decision.cursor:
        raise StoreMisused("a mint decision must move the cursor on", value=decision)
    if any(not decision.cursor < tick <= decision.new_cursor for tick in ticks):
        raise StoreMisused("a mint decision has a tick that is not its own", value=decision)


def minted_job(
    definition: ScheduleDefinition, job_id: UUID, due_time: datetime, tick: datetime | None
) -> NewJob:
    """Give the job that a schedule mints."""
    return NewJob(
        job_id=job_id,
        wire_name=definition.wire_name,
        queue=definition.queue,
        payload=definition.payload,
        due_time=due_time,
        tags=definition.tags,
        schedule_id=definition.schedule_id,
        tick=tick,
    )


def check_observer(definition: ObserverDefinition, history: HistoryPolicy) -> None:
    """Refuse an observer that could never be served (9.1, 9.3).

    Raises:
        InvalidOption: a name that no store can hold, or no states.
        StoreMisused: the history policy is off, so there is no log to observe.
    """
    check_name("observer", definition.name, OBSERVER_NAME_MAX)
    for wire_name in definition.wire_names:
        check_name("wire name", wire_name, None)
    for queue in definition.queues:
        check_queue(queue)
    if not definition.states:
        raise InvalidOption(f"observer {definition.name!r} must want at least one state")
    if history is HistoryPolicy.OFF:
        raise StoreMisused(
            f"observer {definition.name!r} would see nothing: the history policy is off",
            value=definition.name,
        )
