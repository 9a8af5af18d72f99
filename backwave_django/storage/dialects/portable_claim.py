"""Claiming through the ORM alone: the portable form of rules 3.1 to 3.6."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import F, Min

from ...core.commands import ClaimRequest
from ...core.events import Claimed
from ...core.outcomes import ClaimedJob
from ...core.states import JobState
from ...models import Job, JobContent, JobTag, Queue, QueueGate
from ..orm.rows import CHUNK, LogEntry, TransitionLog, lease_of, tag_from_row

if TYPE_CHECKING:
    from .base import Dialect

Room = dict[str, int | None]
"""Room of each queue that is not paused; ``None`` where it has no limit."""


def claim_in(
    dialect: Dialect, log: TransitionLog, worker_id: str, request: ClaimRequest
) -> Claimed:
    """Claim inside an open transaction."""
    now = log.now
    room = _room_by_queue(dialect, [share.queue for share in request.shares])
    jobs = _choose(dialect, request, room, now)
    if not jobs:
        return Claimed((), _next_due(dialect, room, now))
    expires_at = now + request.lease_duration
    for start in range(0, len(jobs), CHUNK):
        chunk = [job.sequence for job in jobs[start : start + CHUNK]]
        dialect.jobs().filter(sequence__in=chunk).update(
            state=JobState.LEASED,
            attempt=F("attempt") + 1,
            claim_number=F("claim_number") + 1,
            ordinal=F("ordinal") + 1,
            lease_owner=worker_id,
            lease_expires_at=expires_at,
        )
    for job in jobs:
        job.attempt += 1
        job.claim_number += 1
        job.lease_owner = worker_id
        entry = (job.ordinal + 1, JobState.LEASED, job.attempt, job.claim_number, worker_id)
        log.add(LogEntry(job.sequence, *entry))
    return Claimed(_with_content(dialect, jobs))


def _room_by_queue(dialect: Dialect, queues: list[str]) -> Room:
    """Give the room of each queue that is not paused; ``None`` where unlimited.

    Claims on limited queues take turns: the gates are locked in code-point order,
    and what is leased is counted by a statement that starts after that.
    """
    settings = {row.name: row for row in Queue.objects.using(dialect.alias).filter(name__in=queues)}
    limited = sorted(name for name, row in settings.items() if row.concurrency_limit is not None)
    if limited:
        gates = QueueGate.objects.using(dialect.alias).filter(name__in=limited)
        list(gates.order_by("name").select_for_update())
        settings = {
            row.name: row for row in Queue.objects.using(dialect.alias).filter(name__in=queues)
        }
    leased = Counter(
        dialect.jobs()
        .filter(queue__in=limited, state=JobState.LEASED)
        .values_list("queue", flat=True)
    )
    room: Room = {}
    for queue in queues:
        row = settings.get(queue)
        if row is None or not row.paused:
            limit = row.concurrency_limit if row else None
            room[queue] = None if limit is None else max(0, limit - leased[queue])
    return room


def _choose(dialect: Dialect, request: ClaimRequest, room: Room, now: datetime) -> list[Job]:
    chosen: dict[str, list[Job]] = {share.queue: [] for share in request.shares}
    left = request.max_jobs
    for most in ({share.queue: share.most for share in request.shares}, {}):
        for queue, jobs in chosen.items():
            free = room.get(queue, 0)
            count = min(left, most.get(queue, left))
            if free is not None:
                count = min(count, free - len(jobs))
            if count > 0:
                found = _lock_ready(dialect, queue, [job.sequence for job in jobs], count, now)
                jobs += found
                left -= len(found)
    return [job for jobs in chosen.values() for job in jobs]


def _lock_ready(
    dialect: Dialect, queue: str, taken: list[int], count: int, now: datetime
) -> list[Job]:
    ready = dialect.jobs().filter(state=JobState.SCHEDULED, queue=queue, due_time__lte=now)
    ready = dialect.locked(ready.exclude(sequence__in=taken)).order_by("due_time", "sequence")
    return list(ready[:count])


def _next_due(dialect: Dialect, room: Room, now: datetime) -> datetime | None:
    scheduled = dialect.jobs().filter(state=JobState.SCHEDULED)
    held_back = [queue for queue, free in room.items() if free == 0]
    if held_back and scheduled.filter(queue__in=held_back, due_time__lte=now).exists():
        return now
    later = scheduled.filter(queue__in=list(room), due_time__gt=now)
    found: datetime | None = later.aggregate(at=Min("due_time"))["at"]
    return found


def _with_content(dialect: Dialect, jobs: list[Job]) -> list[ClaimedJob]:
    sequences = [job.sequence for job in jobs]
    payloads = dict(
        JobContent.objects.using(dialect.alias)
        .filter(job_id__in=sequences)
        .values_list("job_id", "payload")
    )
    tags: dict[int, list[Any]] = {}
    for sequence, key, value in tags_of(dialect, sequences):
        tags.setdefault(sequence, []).append(tag_from_row((key, value)))
    return [
        ClaimedJob(
            lease_of(job), job.wire_name, job.queue, bytes(payloads[job.sequence]),
            tuple(tags.get(job.sequence, ())), job.schedule_id, job.tick, job.trace_context,
        )
        for job in jobs
    ]  # fmt: skip


def tags_of(dialect: Dialect, sequences: list[int]) -> list[tuple[int, str, str]]:
    """Read the tags of jobs, each with its job, in first-seen order."""
    rows = JobTag.objects.using(dialect.alias).filter(job_id__in=sequences).order_by("id")
    return list(rows.values_list("job_id", "key", "value"))
