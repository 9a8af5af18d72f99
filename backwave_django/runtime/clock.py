"""The only reader of time.

Two readings matter. *Cluster time* is what leases and due times are made of: the
database's clock, so that a host whose clock is wrong neither steals leases nor sleeps
through due jobs. Between two looks at the database it is carried on by the host's
boot-time clock, which runs on while the host is suspended and which nobody sets.
*Elapsed time* measures durations inside this process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

REMEASURE_AFTER = timedelta(minutes=5)
"""How long a worker trusts one look at the database's clock."""

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


def wall_time() -> datetime:
    """Give the host's own idea of the time; aware UTC."""
    return datetime.now(tz=UTC)


def elapsed() -> float:
    """Give seconds on a clock that only goes forward, also through a suspended host."""
    if _BOOT_CLOCK is not None:
        return time.clock_gettime(_BOOT_CLOCK)
    return time.monotonic()


class ClusterClock:
    """Cluster time, carried on from one look at the database to the next.

    It never goes back, whatever the database's clock does: it stands still until that
    has caught up.

    Args:
        look: reads the database's clock; ``None`` where the host's clock is the
            cluster's, as with SQLite.
        remeasure_after: how long one look is trusted; ``None``: for ever.
    """

    def __init__(
        self,
        look: Callable[[], datetime] | None,
        remeasure_after: timedelta | None = None,
    ) -> None:
        self._look = look
        self._remeasure_after = remeasure_after
        self._lock = threading.Lock()
        self._anchor: tuple[datetime, float] | None = None
        self._newest: datetime | None = None

    def now(self) -> datetime:
        """Give cluster time; asks the database where its last answer is too old.

        Raises:
            StoreUnavailable: the database was asked and is away.
        """
        if self._look is None:
            return self._forward(wall_time())
        anchor = self._anchor
        if anchor is None or self._is_old(anchor):
            anchor = self.measure()
        return self._forward(self._carried(anchor))

    def estimate(self) -> datetime:
        """Give cluster time without asking anybody; the host's own where none is known."""
        if self._look is None or self._anchor is None:
            return self._forward(wall_time())
        return self._forward(self._carried(self._anchor))

    def measure(self) -> tuple[datetime, float]:
        """Look at the database's clock now."""
        if self._look is None:
            return wall_time(), elapsed()
        before = elapsed()
        seen = self._look()
        after = elapsed()
        # The answer was made somewhere within the round trip; its middle errs least.
        anchor = (seen, before + (after - before) / 2)
        self._anchor = anchor
        return anchor

    def _is_old(self, anchor: tuple[datetime, float]) -> bool:
        limit = self._remeasure_after
        return limit is not None and elapsed() - anchor[1] > limit.total_seconds()

    @staticmethod
    def _carried(anchor: tuple[datetime, float]) -> datetime:
        return anchor[0] + timedelta(seconds=elapsed() - anchor[1])

    def _forward(self, instant: datetime) -> datetime:
        with self._lock:
            if self._newest is None or instant > self._newest:
                self._newest = instant
            return self._newest
