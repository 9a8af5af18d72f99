"""The rows and tables of the in-memory store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from ...core.outcomes import Lease
from ...core.retention import UNDELIVERED_KEPT
from ...core.states import JobState, Move, moved
from ...core.tags import Tag
from ..values import (
    AuditRecord,
    DeadDelivery,
    Delivery,
    DependencyMode,
    HistoryPolicy,
    JobFilter,
    JobSnapshot,
    NewJob,
    ObserverDefinition,
    Schedule,
    SkippedTick,
    Transition,
)


@dataclass(slots=True)
class Row:
    """One job with all that hangs on it."""

    job_id: UUID
    sequence: int
    wire_name: str
    queue: str
    payload: bytes
    due_time: datetime
    enqueued_at: datetime
    mode: DependencyMode
    parents: tuple[UUID, ...]
    gating: set[UUID]
    tags: list[Tag]
    trace_context: str | None
    state: JobState = JobState.SCHEDULED
    attempt: int = 0
    claim_number: int = 0
    lease_owner: str | None = None
    lease_expires_at: datetime | None = None
    cancel_cause: str | None = None
    terminal_at: datetime | None = None
    terminal_cause: str | None = None
    output: bytes | None = None
    schedule_id: str | None = None
    tick: datetime | None = None
    workflow_id: UUID | None = None
    ordinal: int = 0
    transitions: list[Transition] = field(default_factory=list)
    log: list[Delivery] = field(default_factory=list)
    """The same steps as observers see them, and as long as one has not had them."""

    def lease(self) -> Lease:
        """Give the lease that the row is under."""
        return Lease(self.job_id, self.lease_owner or "", self.attempt, self.claim_number)

    def matches(self, wanted: JobFilter) -> bool:
        """Whether a read with this filter sees the row."""
        return (
            wanted.state in (None, self.state)
            and wanted.queue in (None, self.queue)
            and wanted.wire_name in (None, self.wire_name)
            and wanted.schedule_id in (None, self.schedule_id)
            and all(tag in self.tags for tag in wanted.tags)
        )

    def snapshot(self) -> JobSnapshot:
        """Give what a read shows of the row."""
        return JobSnapshot(
            job_id=self.job_id, sequence=self.sequence, wire_name=self.wire_name,
            queue=self.queue, state=self.state, attempt=self.attempt,
            claim_number=self.claim_number, due_time=self.due_time,
            enqueued_at=self.enqueued_at, lease_owner=self.lease_owner,
            lease_expires_at=self.lease_expires_at,
            cancel_requested=self.cancel_cause is not None, terminal_at=self.terminal_at,
            terminal_cause=self.terminal_cause, schedule_id=self.schedule_id, tick=self.tick,
            workflow_id=self.workflow_id, trace_context=self.trace_context,
        )  # fmt: skip


@dataclass(slots=True)
class ObserverRow:
    """One observer: what it wants, and how far it has been served."""

    definition: ObserverDefinition
    cursor: int
    claim_number: int = 0
    lease_owner: str | None = None
    lease_expires_at: datetime | None = None
    tries: int = 0
    not_before: datetime | None = None
    lost: int = 0
    dead: list[DeadDelivery] = field(default_factory=list)

    def wants(self, entry: Delivery) -> bool:
        """Whether this step is still to be delivered."""
        definition = self.definition
        return (
            entry.position > self.cursor
            and entry.state in definition.states
            and (not definition.wire_names or entry.wire_name in definition.wire_names)
            and (not definition.queues or entry.queue in definition.queues)
        )

    def is_free(self, now: datetime) -> bool:
        """Whether nobody holds it, and it is time for it."""
        is_held = self.lease_expires_at is not None and self.lease_expires_at > now
        return not is_held and (self.not_before is None or self.not_before <= now)


class Tables:
    """All rows, and the settings of queues."""

    def __init__(self, history: HistoryPolicy, most_transitions: int = 64) -> None:
        self.rows: dict[UUID, Row] = {}
        self.audit: list[AuditRecord] = []
        self.schedules: dict[str, Schedule] = {}
        self.skipped: dict[str, list[SkippedTick]] = {}
        self.paused: set[str] = set()
        self.queue_limits: dict[str, int] = {}
        self._history = history
        self._most_transitions = most_transitions
        self._last_sequence = 0
        self.observers: dict[str, ObserverRow] = {}
        self.last_position = 0

    def insert(self, job: NewJob, now: datetime, gating: set[UUID]) -> Row:
        """Add a row; the first move, to be made at once, gives it its state."""
        self._last_sequence += 1
        row = Row(
            job.job_id, self._last_sequence, job.wire_name, job.queue, job.payload,
            job.due_time, now, job.mode, tuple(dict.fromkeys(job.parents)), gating,
            list(job.tags), job.trace_context, schedule_id=job.schedule_id, tick=job.tick,
            workflow_id=job.workflow_id,
        )  # fmt: skip
        self.rows[job.job_id] = row
        return row

    def live(self, lease: Lease) -> Row | None:
        """Give the row that is under exactly this lease."""
        row = self.rows.get(lease.job_id)
        return row if row and row.state is JobState.LEASED and row.lease() == lease else None

    def ready(self, queue: str, now: datetime) -> list[Row]:
        """Give the jobs of a queue that a claim may take, in its order."""
        if queue in self.paused:
            return []
        due = sorted(
            (
                row
                for row in self.rows.values()
                if row.state is JobState.SCHEDULED and row.queue == queue and row.due_time <= now
            ),
            key=lambda row: (row.due_time, row.sequence),
        )
        limit = self.queue_limits.get(queue)
        if limit is None:
            return due
        leased = sum(r.state is JobState.LEASED and r.queue == queue for r in self.rows.values())
        return due[: max(0, limit - leased)]

    def waiting_for(self, parent_id: UUID) -> list[Row]:
        """Give the jobs that a parent still gates, by sequence."""
        return [
            row
            for row in self.rows.values()
            if row.state is JobState.AWAITING_PARENT and parent_id in row.gating
        ]

    def has_live_dependent(self, parent_id: UUID) -> bool:
        """Whether a job that has not ended was declared to depend on this one."""
        return any(
            parent_id in row.parents and not row.state.is_terminal for row in self.rows.values()
        )

    def move(
        self,
        row: Row,
        move: Move,
        now: datetime,
        *,
        cause: str | None = None,
        detail: str | None = None,
    ) -> None:
        """Make one legal move, with the fields that follow from it and the log entry."""
        row.state = moved(row.state if row.ordinal else None, move)
        if row.state is not JobState.LEASED:
            row.lease_owner = row.lease_expires_at = row.cancel_cause = None
        row.terminal_at = row.terminal_cause = None
        if row.state.is_terminal:
            row.terminal_at, row.terminal_cause = now, cause
            row.gating.clear()
        row.ordinal += 1
        if self._history is HistoryPolicy.OFF:
            return
        if self._history is not HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL:
            detail = None
        row.transitions.append(
            Transition(
                row.ordinal, now, row.state, row.attempt, row.claim_number, row.lease_owner, detail
            )
        )
        del row.transitions[: -self._most_transitions]
        self.last_position += 1
        row.log.append(
            Delivery(
                self.last_position, row.job_id, row.wire_name, row.queue, row.ordinal, now,
                row.state, row.attempt, row.claim_number,
            )
        )  # fmt: skip
        old = row.log[: -self._most_transitions]
        row.log = [e for e in row.log if e not in old or self.is_undelivered(e, now)]
        self.count_lost(e for e in old if not self.is_undelivered(e, now))

    def is_undelivered(self, entry: Delivery, now: datetime) -> bool:
        """Whether an observer keeps this step from going (9.5)."""
        behind = any(observer.cursor < entry.position for observer in self.observers.values())
        return behind and entry.at > now - UNDELIVERED_KEPT

    def count_lost(self, going: Iterable[Delivery]) -> None:
        """Count what goes against each observer that wanted it."""
        for entry in going:
            for observer in self.observers.values():
                observer.lost += observer.wants(entry)
