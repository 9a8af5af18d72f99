"""Everything that touches the world: threads, time, signals, connections, logs."""

from __future__ import annotations
