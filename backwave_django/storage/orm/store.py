"""The Django store: the contract over a database alias.

Checks what needs no database, hands the hot operations to the dialect, and turns
database errors into the two kinds that a caller can act on. Thread-safe: it holds no
connection, each thread uses its own.
"""

from __future__ import annotations

from .observing import ObservingOrm
from .operating import OperatingOrm
from .reading import ReadingOrm
from .retaining import RetainingOrm
from .running import RunningOrm
from .scheduling import SchedulingOrm


class DjangoStore(RunningOrm, OperatingOrm, SchedulingOrm, ReadingOrm, RetainingOrm, ObservingOrm):
    """A ``JobStore`` over the models of this app."""
