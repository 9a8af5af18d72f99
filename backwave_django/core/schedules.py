"""What a recurring schedule may be told, and why a tick of it did not mint a job."""

from __future__ import annotations

from enum import IntEnum


class CatchUp(IntEnum):
    """What becomes of ticks that nobody was there to mint. The numbers are what is stored.

    ``SKIP`` mints nothing for them, ``COALESCE`` one job for all of them. To replay each
    is not on offer: a cluster that comes back would be buried under its own past.
    """

    SKIP = 1
    COALESCE = 2


class SkipReason(IntEnum):
    """Why a tick minted no job. The numbers are what is stored."""

    MISSED = 1
    OVERLAP = 2

    @property
    def label(self) -> str:
        """What people read."""
        return {
            SkipReason.MISSED: "missed: nothing was there to mint it",
            SkipReason.OVERLAP: "overlap: an earlier job of the schedule had not ended",
        }[self]
