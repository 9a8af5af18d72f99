"""The storage contract: the one seam between every decision and every database.

The rules have numbers; they stand in ``docs/reference/storage-contract.md``, and the
conformance suite has at least one test per number. Rules that hold for every operation:

* No operation reads a clock. ``now`` is an aware UTC ``datetime``; a naive one raises
  ``StoreMisused`` (0.1).
* Every operation is atomic: all of its effects or none (0.2).
* Every operation may run at once with any other, and surfaces no raw database error for
  what is only a race (0.3). What is transient raises ``StoreUnavailable``.
* Called inside the caller's open transaction it joins it; outside, it commits by
  itself (0.4).
* No lock that a caller's transaction holds makes ``claim``, ``heartbeat``, ``report`` or
  a sweep wait (0.7).
"""

from __future__ import annotations

from typing import Protocol

from .observing import ObservingStore
from .operating import OperatingStore
from .reading import ReadingStore
from .retaining import RetainingStore
from .running import ExpiryDecision, RunningStore
from .scheduling import SchedulingStore

__all__ = ["ExpiryDecision", "JobStore"]


class JobStore(
    RunningStore,
    OperatingStore,
    SchedulingStore,
    ReadingStore,
    RetainingStore,
    ObservingStore,
    Protocol,
):
    """What every store guarantees; each part stands in a module of its own."""
