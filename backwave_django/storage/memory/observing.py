"""Cursors over the transition log, in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from ..rules import check_instant, check_observer, check_worker
from ..values import (
    DeadDelivery,
    Delivery,
    DeliveryVerdict,
    DropDelivery,
    ObserverClaim,
    ObserverDefinition,
    ObserverLease,
    ObserverState,
    RetryDelivery,
)
from .base import MemoryBase
from .rows import ObserverRow


class ObservingMemory(MemoryBase):
    """The observing part of the in-memory store; see ``ObservingStore``."""

    def register_observer(self, definition: ObserverDefinition) -> bool:
        """Register an observer, or change what it wants."""
        check_observer(definition, self.history)
        with self._lock:
            found = self._tables.observers.get(definition.name)
            if found is None:
                end = self._tables.last_position
                self._tables.observers[definition.name] = ObserverRow(definition, end)
                return True
            changed = found.definition != definition
            found.definition = definition
            return changed

    def remove_observer(self, name: str) -> bool:
        """Forget an observer."""
        with self._lock:
            return self._tables.observers.pop(name, None) is not None

    def claim_deliveries(
        self,
        name: str,
        worker_id: str,
        max_deliveries: int,
        lease_duration: timedelta,
        now: datetime,
    ) -> ObserverClaim | None:
        """Lease an observer, with what is next for it."""
        check_instant(now)
        check_worker(worker_id)
        most = self._page(max_deliveries)
        with self._lock:
            row = self._tables.observers.get(name)
            if row is None or most < 1 or not row.is_free(now):
                return None
            found = self._wanted_by(row)[:most]
            if not found:
                row.cursor = self._tables.last_position
                return None
            row.claim_number += 1
            row.lease_owner, row.lease_expires_at = worker_id, now + lease_duration
            lease = ObserverLease(name, worker_id, row.claim_number)
            return ObserverClaim(lease, tuple(found), row.tries)

    def _wanted_by(self, row: ObserverRow) -> list[Delivery]:
        found = [
            entry for job in self._tables.rows.values() for entry in job.log if row.wants(entry)
        ]
        return sorted(found)

    def report_deliveries(
        self,
        lease: ObserverLease,
        through: int | None,
        failure: RetryDelivery | DropDelivery | None,
        now: datetime,
    ) -> DeliveryVerdict:
        """Record what was delivered."""
        check_instant(now)
        if isinstance(failure, RetryDelivery):
            check_instant(failure.retry_at, "retry_at")
        with self._lock:
            row = self._tables.observers.get(lease.name)
            if row is None or (row.lease_owner, row.claim_number) != lease[1:]:
                return DeliveryVerdict.STALE
            if through is not None and through > row.cursor:
                row.cursor, row.tries = through, 0
            row.lease_owner = row.lease_expires_at = row.not_before = None
            if isinstance(failure, RetryDelivery):
                row.tries += 1
                row.not_before = failure.retry_at
            elif isinstance(failure, DropDelivery):
                self._drop(row, failure, now)
            return DeliveryVerdict.APPLIED

    def _drop(self, row: ObserverRow, failure: DropDelivery, now: datetime) -> None:
        for entry in self._wanted_by(row)[:1]:
            number = len(row.dead) + 1
            row.dead.append(DeadDelivery(number, entry, failure.cause, now))
            row.cursor, row.tries = entry.position, 0

    def list_observers(self) -> list[ObserverState]:
        """Read all observers with their lag."""
        with self._lock:
            return [
                ObserverState(
                    replace(row.definition), row.cursor, len(self._wanted_by(row)), row.tries,
                    row.not_before, row.lease_owner, row.lease_expires_at, len(row.dead), row.lost,
                )
                for _, row in sorted(self._tables.observers.items())
            ]  # fmt: skip

    def dead_deliveries(
        self, name: str, *, after: int | None = None, limit: int = 50
    ) -> list[DeadDelivery]:
        """Read a page of dead deliveries."""
        with self._lock:
            row = self._tables.observers.get(name)
            dead = [] if row is None else [d for d in row.dead if d.number > (after or 0)]
            return dead[: self._page(limit)]
