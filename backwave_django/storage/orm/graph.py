"""How the end of a job reaches those that wait for it, in the database.

A cascade finds its closure first, without locks; then it locks what it will touch, in
order of sequence; then it reads the edges again, for an edge is only ever closed under
the lock of its child. What it cannot lock belongs to someone's open transaction, and
the end that needed it is ``BUSY``: nothing of it is written, and its pump tries again.

A child that was committed unseen after the closure was found is picked up by
``release_waiting``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Case, F, Value, When
from django.db.models.functions import Greatest

from ...core.events import Reported, Verdict
from ...core.graph import Cascade, Edge, Ended, cascade
from ...core.outcomes import Lease
from ...core.states import TERMINAL_STATES, JobState
from ...models import Dependency, Job
from ..dialects.base import Dialect
from ..values import DependencyMode
from .rows import CHUNK, LogEntry, Settling, TransitionLog, lease_of


def settle_endings(
    dialect: Dialect, log: TransitionLog, items: Sequence[Settling]
) -> list[Reported]:
    """Settle outcomes that end jobs with waiting children, with all that follows."""
    ids = [item.lease.job_id for item in items]
    held = {
        job.job_id: job
        for job in dialect.locked(dialect.jobs().filter(job_id__in=ids, state=JobState.LEASED))
    }
    ends = {
        held[item.lease.job_id].sequence: Ended(item.lease.job_id, _end_of(held, item))
        for item in items
        if item.lease.job_id in held and lease_of(held[item.lease.job_id]) == item.lease
    }
    closure = Closure(dialect, ends)
    locked = closure.lock(wait=False)
    busy = closure.roots_missing(locked)
    ended = {root: end for root, end in ends.items() if root not in busy}
    free = {end.job_id for end in ended.values()}
    answers: dict[Lease, Reported | None] = {}
    for ends_too in (True, False):
        # What was not held here may have come free since: it is not ours to end.
        part = [item for item in items if (item.lease.job_id in free) is ends_too]
        settled = dialect.settle_in(log, part, ends_too=ends_too)
        answers |= zip((item.lease for item in part), settled, strict=True)
    _write(dialect, log, closure, ended, locked)
    return [answers[item.lease] or Reported(Verdict.BUSY) for item in items]


def _end_of(held: dict[UUID, Job], item: Settling) -> JobState:
    """Give the state in which an outcome ends its job."""
    if item.settlement.yields_to_cancel and held[item.lease.job_id].cancel_cause is not None:
        return JobState.CANCELLED
    return item.settlement.state


def follow_cancelled(dialect: Dialect, log: TransitionLog, jobs: Sequence[Job]) -> None:
    """Carry an operator's cancellations down the graph; waits for locks."""
    ends = {job.sequence: Ended(job.job_id, JobState.CANCELLED) for job in jobs}
    _close_edges_of(dialect, list(ends))
    closure = Closure(dialect, ends)
    _write(dialect, log, closure, ends, closure.lock(wait=True))


def release_waiting(
    dialect: Dialect, max_jobs: int, now: datetime, job_ids: Sequence[UUID] | None
) -> int:
    """Move on waiting jobs whose parents have ended unseen by them."""
    edges = Dependency.objects.using(dialect.alias).filter(
        open=True, child__state=JobState.AWAITING_PARENT, parent__state__in=TERMINAL_STATES
    )
    if job_ids is not None:
        edges = edges.filter(child__job_id__in=list(job_ids))
    unseen = list(edges.values_list("parent_id", "parent__job_id", "parent__state")[:max_jobs])
    if not unseen:
        return 0
    ends = {key: Ended(job_id, JobState(state)) for key, job_id, state in unseen}
    with dialect.writing(now) as log:
        closure = Closure(dialect, ends)
        locked = closure.lock(wait=False)
        missing = closure.roots_missing(locked)
        ends = {root: end for root, end in ends.items() if root not in missing}
        return _write(dialect, log, closure, ends, locked)


class Closure:
    """All waiting jobs that some ends can reach, and the edges on the way."""

    def __init__(self, dialect: Dialect, ends: dict[int, Ended]) -> None:
        self._dialect = dialect
        self._edges: dict[int, list[Edge]] = {}
        self.job_ids: dict[int, UUID] = {}
        failed = {root for root, end in ends.items() if end.state is not JobState.SUCCEEDED}
        frontier = set(ends)
        while frontier:
            found = self._read(Dependency.objects.filter(parent_id__in=frontier))
            frontier = set()
            for edge in found:
                self._edges.setdefault(edge.parent, []).append(edge)
                if edge.on_success and edge.parent in failed and edge.child not in failed:
                    failed.add(edge.child)
                    frontier.add(edge.child)
        self._roots = list(ends)
        self._failed = failed

    def _read(self, edges: Iterable[Dependency]) -> list[Edge]:
        rows = (
            edges.using(self._dialect.alias)  # type: ignore[attr-defined]
            .filter(open=True, child__state=JobState.AWAITING_PARENT)
            .order_by("id")
            .values_list("id", "parent_id", "child_id", "child__mode", "child__job_id")
        )
        found = []
        for key, parent, child, mode, job_id in rows:
            found.append(Edge(key, parent, child, mode == DependencyMode.ON_SUCCESS))
            self.job_ids[child] = job_id
        return found

    def lock(self, *, wait: bool) -> dict[int, Job]:
        """Lock the waiting jobs that can be reached, in order of sequence."""
        children = sorted({edge.child for edges in self._edges.values() for edge in edges})
        locked: dict[int, Job] = {}
        for start in range(0, len(children), CHUNK):
            jobs = self._dialect.jobs().filter(sequence__in=children[start : start + CHUNK])
            locked |= {job.sequence: job for job in self._dialect.locked(jobs, wait=wait)}
        self._reread(locked)
        return locked

    def _reread(self, locked: dict[int, Job]) -> None:
        """Keep the edges that are still open now that nobody else can close them."""
        still_open: dict[int, list[Edge]] = {}
        children = list(locked)
        for start in range(0, len(children), CHUNK):
            chunk = children[start : start + CHUNK]
            for edge in self._read(Dependency.objects.filter(child_id__in=chunk)):
                still_open.setdefault(edge.parent, []).append(edge)
        self._before, self._edges = self._edges, still_open

    def roots_missing(self, locked: dict[int, Job]) -> set[int]:
        """Give the ends that reach a job which could not be locked."""
        missing = set()
        for root in self._roots:
            reached, frontier = set(), [root]
            while frontier:
                for edge in self._before.get(frontier.pop(), ()):
                    if edge.child not in reached:
                        reached.add(edge.child)
                        frontier += [edge.child] * (edge.child in self._failed)
            if reached - locked.keys():
                missing.add(root)
        return missing

    def follow(self, ended: dict[int, Ended]) -> Cascade:
        """Ask the Core what follows."""
        return cascade(ended, self._edges, self.job_ids)


def _write(
    dialect: Dialect,
    log: TransitionLog,
    closure: Closure,
    ended: dict[int, Ended],
    locked: dict[int, Job],
) -> int:
    """Write what follows from ``ended``; give the number of jobs that changed state."""
    result = closure.follow(ended)
    edges = Dependency.objects.using(dialect.alias)
    closed = [edge.key for edge in result.closed]
    for start in range(0, len(closed), CHUNK):
        edges.filter(id__in=closed[start : start + CHUNK]).update(open=False)
    _close_edges_of(dialect, list(result.cancelled))
    released = [child for child, met in result.met.items() if locked[child].latch <= met]
    _cancel(dialect, log, result.cancelled)
    _release(dialect, log, released)
    for count in sorted(set(result.met.values())):
        waiting = [c for c, met in result.met.items() if met == count and c not in released]
        for start in range(0, len(waiting), CHUNK):
            jobs = dialect.jobs().filter(sequence__in=waiting[start : start + CHUNK])
            jobs.update(latch=F("latch") - count)
    for child in sorted([*result.cancelled, *released]):
        job = locked[child]
        state = JobState.CANCELLED if child in result.cancelled else JobState.SCHEDULED
        log.add(LogEntry(child, job.ordinal + 1, state, job.attempt, job.claim_number))
    return len(result.cancelled) + len(released)


def _close_edges_of(dialect: Dialect, children: list[int]) -> None:
    for start in range(0, len(children), CHUNK):
        edges = Dependency.objects.using(dialect.alias)
        edges.filter(child_id__in=children[start : start + CHUNK], open=True).update(open=False)


def _cancel(dialect: Dialect, log: TransitionLog, causes: dict[int, str]) -> None:
    children = list(causes)
    for start in range(0, len(children), CHUNK):
        chunk = children[start : start + CHUNK]
        texts = [When(sequence=child, then=Value(causes[child])) for child in chunk]
        dialect.jobs().filter(sequence__in=chunk).update(
            state=JobState.CANCELLED,
            latch=0,
            ordinal=F("ordinal") + 1,
            terminal_at=log.now,
            terminal_cause=Case(*texts, output_field=Job._meta.get_field("terminal_cause")),
        )


def _release(dialect: Dialect, log: TransitionLog, released: list[int]) -> None:
    for start in range(0, len(released), CHUNK):
        dialect.jobs().filter(sequence__in=released[start : start + CHUNK]).update(
            state=JobState.SCHEDULED,
            latch=0,
            ordinal=F("ordinal") + 1,
            due_time=Greatest(F("due_time"), Value(log.now, Job._meta.get_field("due_time"))),
        )
