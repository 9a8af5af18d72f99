"""Runs attempts off the pump's thread: sync handlers in threads, async ones on a loop.

A thread for each busy slot, at most ``size``. A wake-up is passed on: each thread that
takes an attempt and sees more waiting wakes one other, so that a batch of short jobs
costs a few switches of threads, not one each, while a batch of long ones spreads over
as many threads as there are jobs.

Every attempt runs in a context of its own: language, time zone, decimal context and
every context variable are what they are at the start of a thread.

Threads are daemons: a handler that never ends must not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from queue import SimpleQueue
from typing import Any

from django.db import connections

from ..core.commands import InterruptReason
from ..core.outcomes import Lease
from ..handlers.context import cancellation_of
from .attempt import Attempt, Ended

Deliver = Callable[[Ended], None]


class Executor:
    """Runs the attempts of one pump.

    Args:
        name: the beginning of the names of its threads.
        size: most sync attempts at once.
        deliver: takes each attempt that ended; called from any thread.
    """

    def __init__(self, name: str, size: int, deliver: Deliver) -> None:
        self._deliver = deliver
        self._attempts: dict[Lease, Attempt] = {}
        self._threads = ThreadLane(name, size, self._run)
        self._loop = LoopLane(name, self._run_async)

    def submit(self, attempts: Sequence[Attempt]) -> None:
        """Start attempts; returns at once."""
        for attempt in attempts:
            self._attempts[attempt.claimed.lease] = attempt
        self._threads.submit([attempt for attempt in attempts if not attempt.is_async])
        for attempt in attempts:
            if attempt.is_async:
                self._loop.submit(attempt)

    def interrupt(self, lease: Lease, reason: InterruptReason) -> None:
        """Set the flag by which a handler can see that it is to stop."""
        attempt = self._attempts.get(lease)
        if attempt is not None:
            cancellation = cancellation_of(attempt.context)
            if reason is InterruptReason.CANCEL_REQUESTED:
                cancellation.requested = True
            else:
                cancellation.lease_lost = True

    def unstarted(self) -> frozenset[Lease]:
        """Take back the attempts that have not begun, and name them."""
        taken = self._threads.withdraw()
        for attempt in taken:
            self._attempts.pop(attempt.claimed.lease, None)
        return frozenset(attempt.claimed.lease for attempt in taken)

    @property
    def running(self) -> int:
        """Attempts that have not ended."""
        return len(self._attempts)

    def stop(self) -> None:
        """Let idle threads go; those that run a handler go when it ends."""
        self._threads.stop()
        self._loop.stop()

    def _run(self, attempt: Attempt) -> None:
        ended = contextvars.Context().run(attempt.run)
        self._attempts.pop(attempt.claimed.lease, None)
        self._deliver(ended)

    async def _run_async(self, attempt: Attempt) -> None:
        ended = await attempt.run_async()
        self._attempts.pop(attempt.claimed.lease, None)
        self._deliver(ended)


class ThreadLane:
    """Threads that share one line of waiting attempts."""

    def __init__(self, name: str, size: int, run: Callable[[Attempt], None]) -> None:
        self._name = name
        self._size = size
        self._run = run
        self._waiting: deque[Attempt] = deque()
        self._wakes: SimpleQueue[bool] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._idle = 0
        self._wake_is_out = False

    def submit(self, attempts: Sequence[Attempt]) -> None:
        """Put attempts into the line."""
        if attempts:
            self._waiting.extend(attempts)
            self._wake_one()

    def withdraw(self) -> list[Attempt]:
        """Empty the line, and give what stood in it."""
        taken = []
        while True:
            try:
                taken.append(self._waiting.popleft())
            except IndexError:
                return taken

    def stop(self) -> None:
        """Let every thread end that is idle, or becomes so."""
        for _ in range(self._size):
            self._wakes.put(False)

    def _wake_one(self) -> None:
        """See to it that somebody is on the way to what waits.

        One wake-up is out at a time: whoever gets it looks at the line after taking it
        back, and so sees all that was put there before.
        """
        with self._lock:
            if self._wake_is_out:
                return
            if not self._idle and self._started < self._size:
                self._started += 1
                self._idle += 1
                name = f"{self._name}-handler-{self._started}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
            self._wake_is_out = True
        self._wakes.put(True)

    def _work(self) -> None:
        try:
            while self._wakes.get():
                with self._lock:
                    self._wake_is_out = False
                    self._idle -= 1
                self._drain()
                with self._lock:
                    self._idle += 1
        finally:
            connections.close_all()

    def _drain(self) -> None:
        while True:
            try:
                attempt = self._waiting.popleft()
            except IndexError:
                return
            if self._waiting:
                self._wake_one()
            self._run(attempt)


class LoopLane:
    """One event loop in a thread of its own, started with the first async attempt."""

    def __init__(self, name: str, run: Callable[[Attempt], Coroutine[Any, Any, None]]) -> None:
        self._name = name
        self._run = run
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, attempt: Attempt) -> None:
        """Start one attempt on the loop."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            name = f"{self._name}-loop"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        self._loop.call_soon_threadsafe(self._start, attempt)

    def stop(self) -> None:
        """End the loop once it has nothing to do at this instant."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _start(self, attempt: Attempt) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._run(attempt), context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _work(self) -> None:
        loop = self._loop
        assert loop is not None
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            if not self._tasks:
                loop.close()
            connections.close_all()
