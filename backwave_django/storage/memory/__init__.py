"""The in-memory store: the contract without a database.

The reference that the others are compared with, and the simulator's disk. It is
deterministic, keeps nothing beyond the process, and takes no part in anyone's
transaction. One lock makes each operation atomic: an operation checks first and writes
afterwards, so that nothing in its writing part can fail.
"""

from __future__ import annotations

from .observing import ObservingMemory
from .operating import OperatingMemory
from .reading import ReadingMemory
from .retaining import RetainingMemory
from .running import RunningMemory
from .scheduling import SchedulingMemory

__all__ = ["InMemoryStore"]


class InMemoryStore(
    RunningMemory,
    OperatingMemory,
    SchedulingMemory,
    ReadingMemory,
    RetainingMemory,
    ObservingMemory,
):
    """A ``JobStore`` in the memory of one process."""
