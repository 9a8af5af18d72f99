"""The registry: from a wire name to the code that runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.retry import RetryPolicy
from ..core.tags import Tag
from .codec import Codec
from .context import JobContext
from .errors import InvalidPayload, UnroutableJob

Invocation = Callable[[Any, JobContext], Any]
"""Runs one attempt with a decoded payload; a coroutine function if ``is_async``."""


@dataclass(eq=False)
class JobType:
    """One declared kind of job.

    Attributes:
        wire_name: its identity in storage.
        queue: where its jobs go unless an enqueue says otherwise.
        labels: tags that each of its jobs gets.
        retry: its own retry policy; ``None``: the group's.
        declared_at: module and name of what declares it, for messages.
        make_codec: makes its codec, once all of its annotations can be resolved.
        invoke: runs an attempt; ``None`` while the class form has no handler yet.
        is_async: whether ``invoke`` gives a coroutine.
        handled_by: module and name of the handler class, in the class form.
    """

    wire_name: str
    queue: str
    labels: tuple[Tag, ...]
    retry: RetryPolicy | None
    declared_at: str
    make_codec: Callable[[str], Codec]
    invoke: Invocation | None = None
    is_async: bool = False
    handled_by: str = ""
    _codec: Codec | None = None

    @property
    def codec(self) -> Codec:
        """The codec, made at its first use: annotations may name what is imported later."""
        if self._codec is None:
            self._codec = self.make_codec(f"payload of job {self.wire_name!r}")
        return self._codec


@dataclass(frozen=True)
class Conflict:
    """Two declarations of one wire name; the first one stands."""

    wire_name: str
    first: str
    second: str


class Registry:
    """All declared job types of a process."""

    def __init__(self) -> None:
        self._types: dict[str, JobType] = {}
        self.conflicts: list[Conflict] = []

    def add(self, job_type: JobType) -> None:
        """Add a type; a second one of the same name is noted as a conflict.

        The same declaration met again, as by a reload of its module, replaces itself.
        """
        known = self._types.get(job_type.wire_name)
        if known is not None and known.declared_at != job_type.declared_at:
            conflict = Conflict(job_type.wire_name, known.declared_at, job_type.declared_at)
            if conflict not in self.conflicts:
                self.conflicts.append(conflict)
            return
        self._types[job_type.wire_name] = job_type

    def get(self, wire_name: str) -> JobType | None:
        """Give the type of a wire name."""
        return self._types.get(wire_name)

    def remove(self, wire_name: str) -> None:
        """Forget a type; for tests."""
        self._types.pop(wire_name, None)

    def all(self) -> list[JobType]:
        """Give every type, by wire name."""
        return sorted(self._types.values(), key=lambda job_type: job_type.wire_name)

    def route(self, wire_name: str, payload: bytes) -> tuple[JobType, Any]:
        """Find the type of a job and decode its payload.

        Raises:
            UnroutableJob: unknown name, no handler, or a payload that does not decode;
                the message is the cause that the job is quarantined with.
        """
        job_type = self._types.get(wire_name)
        if job_type is None or job_type.invoke is None:
            raise UnroutableJob(
                f"no handler is registered for wire name {wire_name!r}", wire_name=wire_name
            )
        try:
            return job_type, job_type.codec.decode(payload)
        except InvalidPayload as error:
            raise UnroutableJob(str(error), wire_name=wire_name) from error


registry = Registry()
"""What ``@job`` and ``@handles`` fill, and every worker of the process reads."""
