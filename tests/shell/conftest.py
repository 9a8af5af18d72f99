"""A supervisor over an in-memory store that can be made to fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from backwave_django.core.dispatch import Strict
from backwave_django.core.options import WorkerGroupOptions
from backwave_django.core.states import JobState
from backwave_django.handlers.codec import Codec
from backwave_django.handlers.context import JobContext
from backwave_django.handlers.registry import JobType, Registry
from backwave_django.runtime.clock import wall_time
from backwave_django.runtime.entropy import new_job_id
from backwave_django.shell.supervisor import Supervisor
from backwave_django.storage.memory import InMemoryStore
from backwave_django.storage.values import NewJob

HOT = ("claim", "exchange", "heartbeat", "expire_leases", "release_waiting")


class BrittleStore(InMemoryStore):
    """An in-memory store whose hot operations raise ``fault`` while one is set."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Exception | None = None
        self.calls = 0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in HOT:
            return found

        def guarded(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.fault is not None:
                raise self.fault
            return found(*args, **kwargs)

        return guarded


class World:
    """One store, one registry, and as many supervisors as a test wants."""

    def __init__(self) -> None:
        self.store = BrittleStore()
        self.registry = Registry()
        self._running: list[tuple[Supervisor, threading.Thread, list[int]]] = []

    def handler(
        self, wire_name: str, function: Callable[[Any, JobContext], Any], **kind: Any
    ) -> None:
        """Let a function handle a wire name."""
        codec = Codec(wire_name, Any)
        job_type = JobType(
            wire_name, "default", (), None, wire_name, lambda subject: codec, function
        )
        job_type.is_async = kind.pop("is_async", False)
        job_type.retry = kind.pop("retry", None)
        self.registry.add(job_type)

    def enqueue(
        self, wire_name: str, payload: bytes = b"null", now: datetime | None = None
    ) -> UUID:
        """Enqueue a job that is due."""
        job_id = new_job_id()
        at = now or wall_time()
        self.store.enqueue(NewJob(job_id, wire_name, "default", payload, at), at)
        return job_id

    def supervisor(self, *, burst: bool = False, grace: float = 5.0, **options: Any) -> Supervisor:
        """Make a supervisor of one group with quick cadences."""
        quick = {"poll_interval": 0.02, "maintenance_interval": 0.05, "pool_size": 4, **options}
        group = WorkerGroupOptions(name="default", policy=Strict("default"), **quick)
        return Supervisor([group], [group], self.store, self.registry, burst=burst, grace=grace)

    def start(self, **options: Any) -> Supervisor:
        """Run a supervisor in a thread until ``stop``."""
        supervisor = self.supervisor(**options)
        codes: list[int] = []
        thread = threading.Thread(target=lambda: codes.append(supervisor.run()), daemon=True)
        thread.start()
        self._running.append((supervisor, thread, codes))
        return supervisor

    def stop(self, seconds: float = 30) -> list[int]:
        """Stop all that was started; give the exit codes."""
        for supervisor, _, _ in self._running:
            supervisor.stop()
        for _, thread, _ in self._running:
            thread.join(seconds)
            assert not thread.is_alive()
        codes = [code for _, _, found in self._running for code in found]
        self._running.clear()
        return codes

    def stop_when_done(self, seconds: float = 30) -> list[int]:
        """Wait for bursts to end by themselves; give the exit codes."""
        for _, thread, _ in self._running:
            thread.join(seconds)
        return self.stop(seconds)

    def state(self, job_id: UUID) -> JobState:
        """Give the state of a job."""
        job = self.store.get_job(job_id)
        assert job is not None
        return job.state


@pytest.fixture
def world() -> Iterator[World]:
    """A world without a database."""
    made = World()
    yield made
    made.stop()
