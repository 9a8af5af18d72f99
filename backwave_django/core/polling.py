"""When a pump polls next: the floor, the idle back-off, and hints."""

from __future__ import annotations

from datetime import datetime, timedelta


class Polling:
    """The one pending poll of a pump.

    Whatever asks for a poll (time, a hint, a freed slot) moves the same instant, so a
    burst of hints is one poll. With ``ceiling`` above ``floor`` the delay of an idle
    pump doubles up to it.
    """

    def __init__(self, floor: timedelta, ceiling: timedelta, now: datetime) -> None:
        self._floor = floor
        self._ceiling = max(floor, ceiling)
        self._delay = floor
        self.next_at = now
        self._hinted = False
        self.empty_at: datetime | None = None
        """When the newest claim was asked for, if it found nothing; else ``None``."""

    def is_due(self, now: datetime) -> bool:
        """Whether the poll is due at ``now``."""
        return now >= self.next_at

    def hint(self, now: datetime) -> None:
        """Bring the next poll forward to ``now``; the back-off stays where it is."""
        self.next_at = min(self.next_at, now)
        self._hinted = True

    def stir(self, now: datetime) -> None:
        """Learn that jobs have come up: poll now, and be idle no more."""
        self.empty_at = None
        self.hint(now)

    def asked(self) -> None:
        """A claim goes out: it answers every hint that has come so far."""
        self._hinted = False

    def claimed(
        self,
        now: datetime,
        *,
        asked_at: datetime,
        found: int,
        wanted: int,
        next_due: datetime | None,
    ) -> None:
        """Learn what a claim brought, and set the next poll.

        A hint that came while the claim was under way is about what it may not have
        seen, so it brings the next poll to now all the same.
        """
        self.empty_at = None if found else asked_at
        self._set_next(now, found, wanted, next_due)
        if self._hinted:
            self.next_at = now

    def _set_next(self, now: datetime, found: int, wanted: int, next_due: datetime | None) -> None:
        if found or (next_due is not None and next_due <= now):
            self._delay = self._floor
            # A full claim leaves more behind, most likely; the pool bounds how many.
            self.next_at = now if found and found == wanted else now + self._floor
            return
        wait = self._delay
        if next_due is not None:
            wait = min(max(next_due - now, self._floor), self._ceiling)
        self.next_at = now + wait
        self._delay = min(2 * self._delay, self._ceiling)
