"""Jobs on their way into the store, and as reads find them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, IntEnum
from typing import NamedTuple
from uuid import UUID

from ...core.states import JobState
from ...core.tags import Tag


class DependencyMode(IntEnum):
    """How a dependent reacts to its parents. The numbers are what is stored."""

    ON_SUCCESS = 1
    ON_ANY_TERMINAL = 2


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to enqueue.

    Attributes:
        job_id: its identity; the caller makes it (UUID version 7 by default).
        wire_name: the type's declared identity.
        queue: the queue it is claimed from.
        payload: opaque bytes.
        due_time: aware UTC; not claimable before.
        tags: a set, in first-seen order.
        parents: the jobs that must end first; duplicates count once.
        mode: how it reacts to them.
        trace_context: opaque text that travels with the job.
        schedule_id: the schedule that minted it.
        tick: the tick it was minted for; aware UTC.
        workflow_id: the workflow that it is a member of.
    """

    job_id: UUID
    wire_name: str
    queue: str
    payload: bytes
    due_time: datetime
    tags: tuple[Tag, ...] = ()
    parents: tuple[UUID, ...] = ()
    mode: DependencyMode = DependencyMode.ON_SUCCESS
    trace_context: str | None = None
    schedule_id: str | None = None
    tick: datetime | None = None
    workflow_id: UUID | None = None

    @property
    def is_linked(self) -> bool:
        """Whether it comes of a schedule or belongs to a workflow."""
        return self.schedule_id is not None or self.workflow_id is not None


class EnqueueStatus(Enum):
    """What an enqueue came to. Anything but ``OK`` leaves no trace."""

    OK = "ok"
    PAYLOAD_TOO_LARGE = "payload too large"
    WIRE_NAME_TOO_LONG = "wire name too long"
    TOO_MANY_PARENTS = "too many parents"
    DUPLICATE = "duplicate"
    UNKNOWN_PARENT = "unknown parent"


class EnqueueResult(NamedTuple):
    """The answer for one job; ``parent_id`` names the unknown parent."""

    status: EnqueueStatus
    parent_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A job as a read finds it. Instants are aware UTC."""

    job_id: UUID
    sequence: int
    wire_name: str
    queue: str
    state: JobState
    attempt: int
    claim_number: int
    due_time: datetime
    enqueued_at: datetime
    lease_owner: str | None
    lease_expires_at: datetime | None
    cancel_requested: bool
    terminal_at: datetime | None
    terminal_cause: str | None
    schedule_id: str | None
    tick: datetime | None
    workflow_id: UUID | None
    trace_context: str | None


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a read wants; conditions join with AND, ``None`` and empty mean any."""

    state: JobState | None = None
    queue: str | None = None
    wire_name: str | None = None
    tags: tuple[Tag, ...] = ()
    schedule_id: str | None = None


@dataclass(frozen=True, slots=True)
class JobCount:
    """How many jobs of one queue are in one state."""

    queue: str
    state: JobState
    count: int


class Transition(NamedTuple):
    """One entry of a job's transition log; ``ordinal`` counts from 1 per job."""

    ordinal: int
    at: datetime
    state: JobState
    attempt: int
    claim_number: int
    worker_id: str | None
    failure_detail: str | None


class HistoryPolicy(Enum):
    """What the transition log records; it gates writes, never the schema."""

    OFF = "off"
    TRANSITIONS = "transitions"
    TRANSITIONS_AND_FAILURE_DETAIL = "transitions_and_failure_detail"


@dataclass(frozen=True, slots=True)
class TagFacet:
    """How many distinct jobs of a slice carry one tag."""

    tag: Tag
    count: int


class DependencyEdges(NamedTuple):
    """Where a job stands in its graph; ids in the order of their sequences.

    Attributes:
        gating: the parents that it still waits for.
        children: the jobs that were declared to depend on it.
    """

    gating: tuple[UUID, ...]
    children: tuple[UUID, ...]


class AncestorOutput(NamedTuple):
    """What an ancestor left; ``output`` is ``None`` where it left nothing."""

    state: JobState
    output: bytes | None


EnqueueResults = Sequence[EnqueueResult]
