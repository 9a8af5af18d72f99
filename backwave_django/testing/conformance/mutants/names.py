"""Mutants of rule 0.6: stores that take one name for another, or any text for a name."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from ....core.commands import ClaimRequest
from ....core.events import Claimed, Renewal, Reported
from ....core.outcomes import ClaimedJob, Lease, Outcome
from ....core.settlement import cancel_cause
from ....core.tags import Tag
from ....core.text import check_name
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import Row
from ....storage.values import (
    CancelResult,
    EnqueueResult,
    JobCount,
    JobFilter,
    NewJob,
)
from .registry import breaks


class Renaming(InMemoryStore):
    """A store that changes every name that it is given."""

    def _name(self, name: str) -> str:
        return name

    def _tag(self, tag: Tag) -> Tag:
        return Tag(None if tag.key is None else self._name(tag.key), self._name(tag.value))

    def _lease(self, lease: Lease) -> Lease:
        return lease._replace(worker_id=self._name(lease.worker_id))

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue under other names."""
        renamed = [
            replace(
                job,
                queue=self._name(job.queue),
                wire_name=self._name(job.wire_name),
                tags=tuple(self._tag(tag) for tag in job.tags),
            )
            for job in jobs
        ]
        return super().enqueue_many(renamed, now)

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Claim under other names."""
        shares = tuple(share._replace(queue=self._name(share.queue)) for share in request.shares)
        return super().claim(self._name(worker_id), request._replace(shares=shares), now)

    def heartbeat(
        self, leases: Sequence[Lease], lease_duration: timedelta, now: datetime
    ) -> Sequence[Renewal]:
        """Renew under other names."""
        return super().heartbeat([self._lease(lease) for lease in leases], lease_duration, now)

    def report(self, outcomes: Sequence[Outcome], now: datetime) -> Sequence[Reported]:
        """Report under other names."""
        return super().report([o._replace(lease=self._lease(o.lease)) for o in outcomes], now)

    def pause_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Pause another queue."""
        return super().pause_queue(self._name(queue), actor, now)

    def resume_queue(self, queue: str, actor: str | None, now: datetime) -> bool:
        """Resume another queue."""
        return super().resume_queue(self._name(queue), actor, now)

    def set_concurrency_limit(
        self, queue: str, limit: int | None, actor: str | None, now: datetime
    ) -> bool:
        """Bound another queue."""
        return super().set_concurrency_limit(self._name(queue), limit, actor, now)

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel under another name."""
        return super().cancel(job_id, None if actor is None else self._name(actor), now)

    def list_jobs(self, job_filter: JobFilter, **options: Any) -> Any:
        """Look for other names."""
        renamed = replace(
            job_filter,
            tags=tuple(self._tag(tag) for tag in job_filter.tags),
            queue=job_filter.queue and self._name(job_filter.queue),
            wire_name=job_filter.wire_name and self._name(job_filter.wire_name),
        )
        return super().list_jobs(renamed, **options)


@breaks("0.6", "8.2")
class FoldsCase(Renaming):
    """Compares names as a case-insensitive collation does."""

    def _name(self, name: str) -> str:
        return name.casefold()


@breaks("0.6")
class ComposesCharacters(Renaming):
    """Stores names in one normal form, as some file systems do."""

    def _name(self, name: str) -> str:
        return unicodedata.normalize("NFKC", name)


@breaks("0.6")
class MakesNamesFit(Renaming):
    """Takes any text for a name: strips it, drops what cannot be stored, cuts the rest."""

    def _name(self, name: str) -> str:
        storable = "".join(c for c in name if c != "\0" and not "\ud800" <= c <= "\udfff")
        return storable.strip()[:60] or "unnamed"


@breaks("0.6")
class TakesNamesInBasicPlaneOnly(Renaming):
    """Has no room for characters of four bytes."""

    def _name(self, name: str) -> str:
        return "".join(c if c <= "\uffff" else "?" for c in name)


@breaks("0.6")
class TakesPlainNamesOnly(Renaming):
    """Refuses names that nobody is used to."""

    def _name(self, name: str) -> str:
        return check_name("name", name if name.isascii() else "", None)


@breaks("0.6", "8.4")
class CountsInAlphabeticalOrder(InMemoryStore):
    """Orders names as a dictionary does."""

    def count_jobs(self) -> list[JobCount]:
        """Count, in another order."""
        return sorted(super().count_jobs(), key=lambda c: (c.queue.casefold(), -c.state))


@breaks("0.6")
class LosesTheTraceContext(InMemoryStore):
    """Hands a job over without its trace context."""

    def _claimed(self, row: Row) -> ClaimedJob:
        return super()._claimed(row)._replace(trace_context=None)


@breaks("0.6")
class TakesAnyActor(InMemoryStore):
    """Does not look at who asks, nor at who claims."""

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel for anybody."""
        answer = super().cancel(job_id, None, now)
        row = self._tables.rows.get(job_id)
        if row is not None and row.cancel_cause is not None:
            row.cancel_cause = cancel_cause(actor)
        return answer

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Claim for anybody."""
        claimed = super().claim("anybody", request, now)
        jobs = [job._replace(lease=job.lease._replace(worker_id=worker_id)) for job in claimed.jobs]
        for job in jobs:
            self._tables.rows[job.lease.job_id].lease_owner = worker_id
        return claimed._replace(jobs=jobs)


@breaks("0.6")
class TakesAnyTag(InMemoryStore):
    """Does not look at tags at all, nor at the queues of a claim."""

    def _insert(self, job: NewJob, now: datetime) -> EnqueueResult:
        answer = super()._insert(replace(job, tags=()), now)
        if job.job_id in self._tables.rows:
            self._tables.rows[job.job_id].tags = list(job.tags)
        return answer

    def _recorded(self, outcome: Outcome, now: datetime, *, swept: bool = False) -> Reported:
        result = outcome.result
        tags = getattr(result, "tags", ())
        if tags:
            outcome = outcome._replace(result=result._replace(tags=()))  # type: ignore[call-arg]
        answer = super()._recorded(outcome, now, swept=swept)
        if answer.state is not None:
            self._tables.rows[outcome.lease.job_id].tags += list(tags)
        return answer


@breaks("0.6")
class OutputsAsText(InMemoryStore):
    """Keeps bytes as text."""

    def job_output(self, job_id: UUID) -> bytes | None:
        """Read an output through a decoder."""
        found = super().job_output(job_id)
        return None if found is None else found.decode(errors="replace").encode()
