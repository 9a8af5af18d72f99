"""Where mutants are listed, and what they are made of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID

from ....core.commands import ClaimRequest
from ....core.events import Claimed, Renewal, Reported
from ....core.outcomes import Lease, Outcome
from ....storage.contract import ExpiryDecision
from ....storage.memory import InMemoryStore
from ....storage.values import CancelResult, EnqueueResult, NewJob

M = TypeVar("M", bound=type[InMemoryStore])

MUTANTS: dict[str, list[type[InMemoryStore]]] = {}


def breaks(*rules: str) -> Callable[[M], M]:
    """Say which rules a mutant breaks."""

    def register(mutant: M) -> M:
        for rule in rules:
            MUTANTS.setdefault(rule, []).append(mutant)
        return mutant

    return register


def pause() -> None:
    """Let other threads go on for a moment, as a slow database would."""
    threading.Event().wait(0.003)


class NoLock:
    """Stands where a lock should be."""

    def __enter__(self) -> None:
        """Let everybody in."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let everybody out."""


class Unlocked(InMemoryStore):
    """A store whose operations run through each other; mutants say where they pause."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lock: Any = NoLock()


class Retimed(InMemoryStore):
    """A store that changes every ``now`` before it uses it."""

    def _instant(self, now: datetime) -> datetime:
        return now

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue at another time."""
        return super().enqueue_many(jobs, self._instant(now))

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Claim at another time."""
        return super().claim(worker_id, request, self._instant(now))

    def heartbeat(
        self, leases: Sequence[Lease], lease_duration: timedelta, now: datetime
    ) -> Sequence[Renewal]:
        """Renew at another time."""
        return super().heartbeat(leases, lease_duration, self._instant(now))

    def report(self, outcomes: Sequence[Outcome], now: datetime) -> Sequence[Reported]:
        """Report at another time."""
        return super().report(outcomes, self._instant(now))

    def expire_leases(
        self,
        queues: Sequence[str] | None,
        decide: ExpiryDecision,
        max_jobs: int,
        now: datetime,
    ) -> int:
        """Sweep at another time."""
        return super().expire_leases(queues, decide, max_jobs, self._instant(now))

    def release_waiting(
        self, max_jobs: int, now: datetime, job_ids: Sequence[UUID] | None = None
    ) -> int:
        """Release at another time."""
        return super().release_waiting(max_jobs, self._instant(now), job_ids)

    def cancel(self, job_id: UUID, actor: str | None, now: datetime) -> CancelResult:
        """Cancel at another time."""
        return super().cancel(job_id, actor, self._instant(now))


class Reenqueued(InMemoryStore):
    """A store that changes each new job before it stores it."""

    def _changed(self, job: NewJob) -> NewJob:
        return job

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue something else."""
        return super().enqueue_many([self._changed(job) for job in jobs], now)


class Misbelieving(InMemoryStore):
    """A store that tells its limits and goes by others."""

    beliefs: dict[str, int] = {}

    def _believing(self, call: Callable[[], Any]) -> Any:
        from dataclasses import replace

        told = self.limits
        self.limits = replace(told, **self.beliefs)
        try:
            return call()
        finally:
            self.limits = told

    def enqueue_many(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[EnqueueResult]:
        """Enqueue by the other limits."""
        found: Sequence[EnqueueResult] = self._believing(
            lambda: InMemoryStore.enqueue_many(self, jobs, now)
        )
        return found

    def claim(self, worker_id: str, request: ClaimRequest, now: datetime) -> Claimed:
        """Claim by the other limits."""
        found: Claimed = self._believing(lambda: InMemoryStore.claim(self, worker_id, request, now))
        return found

    def report(self, outcomes: Sequence[Outcome], now: datetime) -> Sequence[Reported]:
        """Report by the other limits."""
        found: Sequence[Reported] = self._believing(
            lambda: InMemoryStore.report(self, outcomes, now)
        )
        return found

    def list_jobs(self, *arguments: Any, **options: Any) -> Any:
        """Read by the other limits."""
        return self._believing(lambda: InMemoryStore.list_jobs(self, *arguments, **options))
