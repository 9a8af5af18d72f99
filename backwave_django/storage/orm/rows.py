"""Between rows and the contract's values; nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from ...core.outcomes import Lease
from ...core.settlement import Settlement
from ...core.states import JobState
from ...core.tags import Tag
from ...models import Job, Transition
from ..values import HistoryPolicy, JobSnapshot, NewJob

CHUNK = 500
"""Rows in one statement of many, well under every database's limit of parameters."""


class NewRow(NamedTuple):
    """A job that passed every check, and the state that it starts in."""

    job: NewJob
    state: JobState
    latch: int = 0
    cause: str | None = None


class Settling(NamedTuple):
    """One outcome on its way into the store."""

    lease: Lease
    settlement: Settlement
    tags: tuple[Tag, ...]

    @property
    def ends_job(self) -> bool:
        """Whether this alone ends the job; a request to cancel may end it besides."""
        return self.settlement.state.is_terminal


class LogEntry(NamedTuple):
    """One row of the transition log, before it is written."""

    sequence: int
    ordinal: int
    state: JobState
    attempt: int
    claim_number: int
    worker_id: str | None = None
    detail: str | None = None


class TransitionLog:
    """Collects the log entries of one transaction, to be written together."""

    def __init__(self, policy: HistoryPolicy, now: datetime) -> None:
        self._policy = policy
        self._now = now
        self._entries: list[LogEntry] = []

    def add(self, entry: LogEntry) -> None:
        """Add an entry, if the policy wants it."""
        if self._policy is HistoryPolicy.OFF:
            return
        if self._policy is not HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL:
            entry = entry._replace(detail=None)
        self._entries.append(entry)

    def extend(self, entries: Iterable[LogEntry]) -> None:
        """Add several entries, in order."""
        for entry in entries:
            self.add(entry)

    def take(self) -> list[LogEntry]:
        """Give what has been collected, and forget it."""
        entries, self._entries = self._entries, []
        return entries

    @property
    def now(self) -> datetime:
        """The instant of every entry."""
        return self._now


def transition_row(entry: LogEntry, now: datetime) -> Transition:
    """Make the model row of a log entry."""
    return Transition(
        job_id=entry.sequence,
        ordinal=entry.ordinal,
        at=now,
        state=entry.state,
        attempt=entry.attempt,
        claim_number=entry.claim_number,
        worker_id=entry.worker_id,
        failure_detail=entry.detail,
    )


def job_row(new: NewRow, now: datetime) -> Job:
    """Make the model row of a new job."""
    job = new.job
    return Job(
        job_id=job.job_id,
        wire_name=job.wire_name,
        queue=job.queue,
        state=new.state,
        due_time=job.due_time,
        enqueued_at=now,
        terminal_at=now if new.state.is_terminal else None,
        terminal_cause=new.cause,
        mode=job.mode,
        latch=new.latch,
        trace_context=job.trace_context,
        schedule_id=job.schedule_id,
        tick=job.tick,
        workflow_id=job.workflow_id,
    )


def snapshot_of(job: Job) -> JobSnapshot:
    """Give what a read shows of a job."""
    return JobSnapshot(
        job_id=job.job_id,
        sequence=job.sequence,
        wire_name=job.wire_name,
        queue=job.queue,
        state=JobState(job.state),
        attempt=job.attempt,
        claim_number=job.claim_number,
        due_time=job.due_time,
        enqueued_at=job.enqueued_at,
        lease_owner=job.lease_owner,
        lease_expires_at=job.lease_expires_at,
        cancel_requested=job.cancel_cause is not None,
        terminal_at=job.terminal_at,
        terminal_cause=job.terminal_cause,
        schedule_id=job.schedule_id,
        tick=job.tick,
        workflow_id=job.workflow_id,
        trace_context=job.trace_context,
    )


def lease_of(job: Job) -> Lease:
    """Give the lease that a leased row is under."""
    return Lease(job.job_id, job.lease_owner or "", job.attempt, job.claim_number)


def stored_tag(tag: Tag) -> tuple[str, str]:
    """Give the key and value columns of a tag; a label has an empty key."""
    return tag.key or "", tag.value


def tag_from_row(row: tuple[str, str] | list[str]) -> Tag:
    """Give the tag of its two columns."""
    return Tag(row[0] or None, row[1])


def queue_order(queues: Iterable[str]) -> dict[str, int]:
    """Give the place of each queue in a list."""
    return {queue: place for place, queue in enumerate(queues)}
