"""Operating-system signals: the first asks for a clean stop, the second for one at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SignalTrap:
    """Turns stop signals into calls of ``on_signal``, while it is open.

    The call must be safe in a signal handler: it may only put a message into a
    ``SimpleQueue``. Outside of the main thread no signal can be caught, so there the trap
    does nothing. The handlers that were there before are put back at the end.
    """

    def __init__(self, on_signal: Callable[[], None]) -> None:
        self._on_signal = on_signal
        self._before: dict[int, Any] = {}

    @property
    def is_set(self) -> bool:
        """Whether signals are caught."""
        return bool(self._before)

    def __enter__(self) -> SignalTrap:
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _caught(self, number: int, frame: FrameType | None) -> None:
        self._on_signal()
