"""Cursors over the transition log, over the ORM."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Count

from ...core.states import JobState
from ...models import DeadDelivery as DeadRow
from ...models import Observer, Transition
from ..dialects.log import LogMark
from ..rules import check_instant, check_observer, check_worker, is_storable
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
from .base import StoreBase, guarded
from .undelivered import wanted_by


class ObservingOrm(StoreBase):
    """The observing part of the Django store; see ``ObservingStore``."""

    def register_observer(self, definition: ObserverDefinition) -> bool:
        """Register an observer, or change what it wants."""
        check_observer(definition, self.history)
        columns = {
            "states": sorted(definition.states),
            "wire_names": sorted(definition.wire_names),
            "queues": sorted(definition.queues),
        }
        rows = Observer.objects.using(self.alias)
        with self.faults(), self.dialect.store_atomic():
            row, created = rows.get_or_create(
                name=definition.name, defaults={**columns, "cursor": self.dialect.log_end()}
            )
            if created or _definition(row) == definition:
                return created
            return bool(rows.filter(name=definition.name).update(**columns))

    def remove_observer(self, name: str) -> bool:
        """Forget an observer."""
        if not is_storable(name):
            return False
        with self.faults(), self.dialect.store_atomic():
            found = bool(Observer.objects.using(self.alias).filter(name=name).delete()[0])
            DeadRow.objects.using(self.alias).filter(observer=name).delete()
            return found

    # -- delivering ---------------------------------------------------------------

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
        most = self.page(max_deliveries)
        if most < 1 or not is_storable(name):
            return None
        with self.faults(), self.dialect.store_atomic():
            # Before anything is written: see PostgresDialect.settled.
            seen = self.dialect.look_at_log()
            row = self._free(name, now)
            if row is None:
                return None
            end, mark = self.dialect.settled(seen, _mark(row))
            found = self._next(row, end, most)
            changes = {
                "mark_position": None if mark is None else mark.position,
                "mark_id": None if mark is None else mark.transaction_id,
            }
            named = Observer.objects.using(self.alias).filter(name=name)
            if not found:
                named.update(cursor=max(end, row.cursor), **changes)
                return None
            number = row.claim_number + 1
            named.update(
                lease_owner=worker_id,
                lease_expires_at=now + lease_duration,
                claim_number=number,
                **changes,
            )
            return ObserverClaim(ObserverLease(name, worker_id, number), tuple(found), row.tries)

    def _free(self, name: str, now: datetime) -> Observer | None:
        """Lock an observer that nobody holds, if it is time for it."""
        features = self.dialect.connection.features
        rows = Observer.objects.using(self.alias).select_for_update(
            skip_locked=features.has_select_for_update_skip_locked
        )
        row = rows.filter(name=name).first()
        if row is None or (row.not_before is not None and row.not_before > now):
            return None
        return None if row.lease_expires_at is not None and row.lease_expires_at > now else row

    def _next(self, row: Observer, end: int, most: int) -> list[Delivery]:
        wanted = wanted_by(row, Transition.objects.using(self.alias)).filter(id__lte=end)
        return [_delivery(found) for found in wanted.select_related("job").order_by("id")[:most]]

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
        with self.faults(), self.dialect.store_atomic():
            named = Observer.objects.using(self.alias).filter(name=lease.name)
            row = named.select_for_update().first()
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
            row.save(using=self.alias)
            return DeliveryVerdict.APPLIED

    def _drop(self, row: Observer, failure: DropDelivery, now: datetime) -> None:
        wanted = wanted_by(row, Transition.objects.using(self.alias))
        found = wanted.select_related("job").order_by("id").first()
        if found is None:
            return
        job = found.job
        DeadRow.objects.using(self.alias).create(
            observer=row.name,
            position=found.pk,
            job_id=job.job_id,
            wire_name=job.wire_name,
            queue=job.queue,
            ordinal=found.ordinal,
            at=found.at,
            state=found.state,
            attempt=found.attempt,
            claim_number=found.claim_number,
            cause=failure.cause,
            failed_at=now,
        )
        row.cursor, row.tries = found.pk, 0

    # -- reads --------------------------------------------------------------------

    @guarded
    def list_observers(self) -> list[ObserverState]:
        """Read all observers with their lag."""
        dead = DeadRow.objects.using(self.alias).values("observer").annotate(n=Count("id"))
        counts = dict(dead.values_list("observer", "n"))
        return [
            ObserverState(
                _definition(row), row.cursor,
                wanted_by(row, Transition.objects.using(self.alias)).count(),
                row.tries, row.not_before, row.lease_owner, row.lease_expires_at,
                counts.get(row.name, 0), row.lost,
            )
            for row in Observer.objects.using(self.alias).order_by("name")
        ]  # fmt: skip

    @guarded
    def dead_deliveries(
        self, name: str, *, after: int | None = None, limit: int = 50
    ) -> list[DeadDelivery]:
        """Read a page of dead deliveries."""
        if not is_storable(name):
            return []
        rows = DeadRow.objects.using(self.alias).filter(observer=name, id__gt=after or 0)
        return [
            DeadDelivery(
                row.id,
                Delivery(
                    row.position, row.job_id, row.wire_name, row.queue, row.ordinal, row.at,
                    JobState(row.state), row.attempt, row.claim_number,
                ),
                row.cause,
                row.failed_at,
            )
            for row in rows.order_by("id")[: self.page(limit)]
        ]  # fmt: skip


def _mark(row: Observer) -> LogMark | None:
    if row.mark_position is None or row.mark_id is None:
        return None
    return LogMark(row.mark_position, row.mark_id)


def _definition(row: Observer) -> ObserverDefinition:
    return ObserverDefinition(
        row.name,
        frozenset(JobState(state) for state in row.states),
        frozenset(row.wire_names),
        frozenset(row.queues),
    )


def _delivery(row: Transition) -> Delivery:
    job = row.job
    return Delivery(
        row.pk, job.job_id, job.wire_name, job.queue, row.ordinal, row.at, JobState(row.state),
        row.attempt, row.claim_number,
    )  # fmt: skip
