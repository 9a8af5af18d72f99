"""Letting go of what has ended, over the ORM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, Min, OuterRef, Q, QuerySet

from ...core.states import LIVE_STATES, TERMINAL_STATES, JobState
from ...models import Dependency, Job, JobContent, JobTag, Transition
from ..rules import check_cutoffs, check_instant
from .base import StoreBase
from .rows import CHUNK
from .undelivered import count_lost, kept, least_cursor


class RetainingOrm(StoreBase):
    """The retaining part of the Django store; see ``RetainingStore``."""

    def purge(
        self,
        before: Mapping[JobState, datetime],
        max_jobs: int,
        now: datetime,
        *,
        queues: Sequence[str] | None = None,
        but_queues: Sequence[str] = (),
    ) -> int:
        """Delete ended jobs."""
        check_instant(now)
        check_cutoffs(before)
        room = max(0, min(max_jobs, self.limits.max_purge_batch))
        with self.faults():
            useful = self._useful(now)
            slices = [
                self._due(queue, state, before[state]).exclude(useful)
                for queue in self._queues(queues, but_queues)
                for state in sorted(before)
            ]
            # Most sweeps find nothing: look before opening a transaction.
            slices = [found for found in slices if room and found.exists()]
            if not slices:
                return 0
            with self.dialect.store_atomic():
                return self._purge(slices, before, useful, room)

    def _useful(self, now: datetime) -> Q:
        """Say which jobs somebody has a use for: a live job, or an observer (6.4, 9.5)."""
        edges = Dependency.objects.filter(parent=OuterRef("sequence"), child__state__in=LIVE_STATES)
        cursor = least_cursor(self.dialect)
        if cursor is None:
            return Q(Exists(edges))
        undelivered = Transition.objects.filter(kept(cursor, now), job=OuterRef("sequence"))
        return Q(Exists(edges)) | Q(Exists(undelivered))

    def _queues(self, queues: Sequence[str] | None, but: Sequence[str]) -> list[str]:
        there = self._queues_with_ends() if queues is None else sorted(set(queues))
        return [queue for queue in there if queue not in but]

    def _queues_with_ends(self) -> Iterator[str]:
        """Give each queue that has ended jobs: one look at an index for each."""
        ended = self.dialect.jobs().filter(state__gte=min(TERMINAL_STATES))
        queue = ended.aggregate(first=Min("queue"))["first"]
        while queue is not None:
            yield queue
            queue = ended.filter(queue__gt=queue).aggregate(first=Min("queue"))["first"]

    def _due(self, queue: str, state: JobState, cutoff: datetime) -> QuerySet[Job]:
        ended = self.dialect.jobs().filter(queue=queue, state=state, terminal_at__lt=cutoff)
        return ended.order_by("terminal_at", "sequence")

    def _purge(
        self,
        slices: list[QuerySet[Job]],
        before: Mapping[JobState, datetime],
        useful: Q,
        room: int,
    ) -> int:
        gone: set[int] = set()
        for found in slices:
            if len(gone) >= room:
                break
            jobs = list(self.dialect.locked_to_delete(found)[: room - len(gone)])
            gone |= {job.sequence for job in jobs if job.workflow_id is None}
            for workflow_id in dict.fromkeys(job.workflow_id for job in jobs if job.workflow_id):
                if len(gone) < room:
                    gone |= self._whole(workflow_id, before, useful)
        self._delete(sorted(gone))
        return len(gone)

    def _whole(self, workflow_id: UUID, before: Mapping[JobState, datetime], useful: Q) -> set[int]:
        """Give the jobs of a workflow, if all of it is due and none of it is held."""
        members = self.dialect.jobs().filter(workflow_id=workflow_id)
        due = Q(pk__in=[])
        for state, cutoff in before.items():
            due |= Q(state=state, terminal_at__lt=cutoff)
        held = self.dialect.locked_to_delete(members.filter(due).exclude(useful))
        sequences = {job.sequence for job in held.order_by("sequence")}
        return sequences if len(sequences) == members.count() else set()

    def _delete(self, sequences: list[int]) -> None:
        for start in range(0, len(sequences), CHUNK):
            chunk = sequences[start : start + CHUNK]
            log = Transition.objects.using(self.alias).filter(job_id__in=chunk)
            count_lost(self.dialect, log)
            log.delete()
            for model in (JobTag, JobContent):
                model.objects.using(self.alias).filter(job_id__in=chunk).delete()
            edges = Dependency.objects.using(self.alias)
            edges.filter(parent_id__in=chunk).delete()
            edges.filter(child_id__in=chunk).delete()
            self.dialect.jobs().filter(sequence__in=chunk).delete()
