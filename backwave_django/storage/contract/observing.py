"""How the contract delivers the transition log to observers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from ..values import (
    DeadDelivery,
    DeliveryVerdict,
    DropDelivery,
    ObserverClaim,
    ObserverDefinition,
    ObserverLease,
    ObserverState,
    RetryDelivery,
)


class ObservingStore(Protocol):
    """Cursors over the transition log: at least once, in order for each job."""

    def register_observer(self, definition: ObserverDefinition) -> bool:
        """Register an observer, or change what it wants; whether anything changed (9.1).

        A new one starts at the end of the log; a change keeps the cursor.

        Raises:
            StoreMisused: the history policy is off, so there is no log (9.3).
        """
        ...

    def remove_observer(self, name: str) -> bool:
        """Forget an observer and its dead deliveries; whether it was there."""
        ...

    def claim_deliveries(
        self, name: str, worker_id: str, max_deliveries: int, lease_duration: timedelta,
        now: datetime,
    ) -> ObserverClaim | None:  # fmt: skip
        """Lease an observer, with its next matching transitions in order (9.1, 9.2).

        ``None``: there is nothing to deliver, or the observer is unknown, leased by
        another (a lease has lapsed at its instant), or waits for a retry. At most
        ``max_deliveries``, clamped to ``MaxMonitorPageSize``. Rows that do not match
        block nothing. A transition that a slow transaction commits late is not passed
        over: the cursor waits before it.
        """
        ...

    def report_deliveries(
        self,
        lease: ObserverLease,
        through: int | None,
        failure: RetryDelivery | DropDelivery | None,
        now: datetime,
    ) -> DeliveryVerdict:
        """Record what was delivered, and let the observer go (9.1).

        Args:
            lease: as it was claimed.
            through: the position of the last delivery that succeeded; ``None`` for none.
            failure: what is to become of the delivery after that one.
            now: the instant.
        """
        ...

    def list_observers(self) -> list[ObserverState]:
        """Read all observers with their lag, by name (9.4)."""
        ...

    def dead_deliveries(
        self, name: str, *, after: int | None = None, limit: int = 50
    ) -> list[DeadDelivery]:
        """Read a page of the dead deliveries of an observer, by number, beyond ``after``."""
        ...
