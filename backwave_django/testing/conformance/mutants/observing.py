"""Mutants of chapter 9: observers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from ....core.states import JobState
from ....storage.memory import InMemoryStore
from ....storage.memory.rows import ObserverRow, Tables
from ....storage.values import (
    Delivery,
    DeliveryVerdict,
    DropDelivery,
    HistoryPolicy,
    ObserverClaim,
    ObserverDefinition,
    ObserverLease,
    ObserverState,
    RetryDelivery,
)
from .jobs import OtherTables
from .registry import breaks, pause


class OtherClaims(InMemoryStore):
    """A store that claims deliveries otherwise."""

    def _offered(self, row: ObserverRow | None, found: ObserverClaim | None) -> Any:
        return found

    def claim_deliveries(
        self,
        name: str,
        worker_id: str,
        max_deliveries: int,
        lease_duration: timedelta,
        now: datetime,
    ) -> ObserverClaim | None:
        """Claim, badly."""
        found = super().claim_deliveries(name, worker_id, max_deliveries, lease_duration, now)
        return self._offered(self._tables.observers.get(name), found)  # type: ignore[no-any-return]


@breaks("9.1")
class DeliversTheNewestFirst(OtherClaims):
    """Turns the log round."""

    def _offered(self, row: ObserverRow | None, found: ObserverClaim | None) -> Any:
        return found and found._replace(deliveries=found.deliveries[::-1])


@breaks("9.1")
class DeliversAtMostOnce(OtherClaims):
    """Moves the cursor when it claims."""

    def _offered(self, row: ObserverRow | None, found: ObserverClaim | None) -> Any:
        if row is not None and found is not None:
            row.cursor = found.deliveries[-1].position
        return found


@breaks("9.1")
class CountsNoTries(OtherClaims):
    """Forgets how often a delivery has failed."""

    def _offered(self, row: ObserverRow | None, found: ObserverClaim | None) -> Any:
        return found and found._replace(tries=0)


@breaks("9.1")
class LeasesToEverybody(OtherClaims):
    """Lets two workers deliver at once."""

    def _offered(self, row: ObserverRow | None, found: ObserverClaim | None) -> Any:
        if row is not None:
            row.lease_expires_at = None
        return found


@breaks("9.1")
class StartsAtTheBeginning(InMemoryStore):
    """Delivers what was before an observer came, again for each new definition."""

    def register_observer(self, definition: ObserverDefinition) -> bool:
        """Register, from the start."""
        changed = super().register_observer(definition)
        self._tables.observers[definition.name].cursor = 0
        return changed


@breaks("9.1")
class WantsEverything(InMemoryStore):
    """Looks at states alone, without queues and types."""

    def register_observer(self, definition: ObserverDefinition) -> bool:
        """Register for more than was asked."""
        return super().register_observer(
            replace(definition, wire_names=frozenset(), queues=frozenset())
        )


class OtherReports(InMemoryStore):
    """A store that reads reports otherwise."""

    def _asked(self, through: Any, failure: Any) -> tuple[Any, Any]:
        return through, failure

    def report_deliveries(
        self,
        lease: ObserverLease,
        through: int | None,
        failure: RetryDelivery | DropDelivery | None,
        now: datetime,
    ) -> DeliveryVerdict:
        """Record something else."""
        through, failure = self._asked(through, failure)
        return super().report_deliveries(lease, through, failure, now)


@breaks("9.1")
class RetriesAtOnce(OtherReports):
    """Waits for nothing."""

    def _asked(self, through: Any, failure: Any) -> tuple[Any, Any]:
        return through, None if isinstance(failure, RetryDelivery) else failure


@breaks("9.1")
class GivesNothingUp(OtherReports):
    """Stays at a delivery that was dropped."""

    def _asked(self, through: Any, failure: Any) -> tuple[Any, Any]:
        return through, None if isinstance(failure, DropDelivery) else failure


@breaks("9.1")
class ForgetsAPart(OtherReports):
    """Takes a failure for the failure of all."""

    def _asked(self, through: Any, failure: Any) -> tuple[Any, Any]:
        return (None if failure else through), failure


@breaks("9.1")
class LetsNothingGo(InMemoryStore):
    """Keeps the lease after a report."""

    def report_deliveries(
        self,
        lease: ObserverLease,
        through: int | None,
        failure: RetryDelivery | DropDelivery | None,
        now: datetime,
    ) -> DeliveryVerdict:
        """Record, and hold on."""
        row = self._tables.observers.get(lease.name)
        before = row and (row.lease_owner, row.lease_expires_at)
        answer = super().report_deliveries(lease, through, failure, now)
        if row is not None and before:
            row.lease_owner, row.lease_expires_at = before
        return answer


@breaks("9.1")
class RemovesNothing(InMemoryStore):
    """Says that it forgot an observer, always."""

    def remove_observer(self, name: str) -> bool:
        """Keep it."""
        return True


@breaks("9.1")
class TakesAnyDefinition(InMemoryStore):
    """Checks nothing."""

    def register_observer(self, definition: ObserverDefinition) -> bool:
        """Register anything."""
        self._tables.observers[definition.name] = ObserverRow(definition, 0)
        return True


@breaks("9.2")
class PassesOverTheSlow(InMemoryStore):
    """Moves its cursor to the end of the log that it saw, past what came meanwhile."""

    def _wanted_by(self, row: ObserverRow) -> list[Delivery]:
        found = super()._wanted_by(row)
        pause()
        return found[-1:]


@breaks("9.3")
class ObservesWithoutALog(InMemoryStore):
    """Registers whatever the policy is, or nothing at all."""

    def register_observer(self, definition: ObserverDefinition) -> bool:
        """Register the other way round."""
        if self.history is not HistoryPolicy.OFF:
            return False
        self._tables.observers[definition.name] = ObserverRow(definition, 0)
        return True


@breaks("9.4")
class CountsTheWholeLog(InMemoryStore):
    """Takes every step behind the cursor for lag."""

    def list_observers(self) -> list[ObserverState]:
        """Read, with a larger lag."""
        steps = [entry for row in self._tables.rows.values() for entry in row.log]
        return [
            found._replace(lag=sum(entry.position > found.cursor for entry in steps))
            for found in super().list_observers()
        ]


@breaks("9.5")
class PurgesTheUndelivered(OtherTables):
    """Asks no observer."""

    class tables(Tables):  # noqa: N801
        """Tables that keep nothing for anybody."""

        def is_undelivered(self, entry: Delivery, now: datetime) -> bool:
            """Say no."""
            return False


@breaks("9.5")
class KeepsTheUndeliveredForEver(OtherTables):
    """Lets an observer that is gone hold everything."""

    class tables(Tables):  # noqa: N801
        """Tables that wait for ever."""

        def is_undelivered(self, entry: Delivery, now: datetime) -> bool:
            """Look at the cursor alone."""
            return any(o.cursor < entry.position for o in self.observers.values())


@breaks("9.5")
class LosesSilently(OtherTables):
    """Counts nothing that was lost."""

    class tables(Tables):  # noqa: N801
        """Tables that tell nobody."""

        def count_lost(self, going: Iterable[Delivery]) -> None:
            """Count nothing."""


@breaks("9.5")
class KeepsWhatWasDelivered(OtherTables):
    """Keeps every step for a week as soon as anybody observes, and calls it lost."""

    class tables(Tables):  # noqa: N801
        """Tables that ask no cursor."""

        def is_undelivered(self, entry: Delivery, now: datetime) -> bool:
            """Keep all that is young."""
            ended = entry.state is JobState.SUCCEEDED
            return bool(self.observers) and entry.at > now - timedelta(days=7) and ended
