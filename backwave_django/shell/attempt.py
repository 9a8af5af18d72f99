"""One attempt: from a claimed job to what its handler came to.

Whatever a handler raises is a failed attempt and nothing more, ``SystemExit`` and
``KeyboardInterrupt`` too: a handler cannot end the worker.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asgiref.sync import ThreadSensitiveContext

from ..core.events import Execution
from ..core.outcomes import Cancelled, ClaimedJob, Failed, Lease, Succeeded, Unroutable
from ..core.retry import RetryPolicy
from ..handlers.context import (
    GiveUp,
    JobCancelled,
    JobContext,
    RetryAfter,
    added_tags,
    cancellation_of,
    output_of,
)
from ..handlers.errors import UnroutableJob
from ..handlers.registry import JobType, Registry
from ..runtime.clock import elapsed
from .described import described, detail_of
from .scope import ConnectionScope


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that ended: for the driver its execution, for the log the rest."""

    execution: Execution
    duration: float
    raised: BaseException | None = None


class Attempt:
    """One attempt of a routed job, ready to run once."""

    __slots__ = ("_job_type", "_payload", "claimed", "context")

    def __init__(
        self, claimed: ClaimedJob, job_type: JobType, payload: Any, context: JobContext
    ) -> None:
        self.claimed = claimed
        self.context = context
        self._job_type = job_type
        self._payload = payload

    @property
    def is_async(self) -> bool:
        """Whether the handler is a coroutine function."""
        return self._job_type.is_async

    def run(self) -> Ended:
        """Run a sync handler in this thread, in a fresh scope."""
        began = elapsed()
        scope = ConnectionScope(self.claimed.wire_name)
        raised: BaseException | None = None
        try:
            scope.open()
            returned = self._invoke()
            if inspect.iscoroutine(returned):
                returned.close()
                raise TypeError(
                    "the handler returned a coroutine that nobody runs; make it an async def"
                )
        except BaseException as error:  # noqa: BLE001 — see the module docstring
            raised = error
        finally:
            scope.close()
        return self._ended(raised, began)

    async def run_async(self) -> Ended:
        """Run an async handler, with a thread of its own for what it does in sync code.

        Without that thread, all async attempts would share one, and its connections.
        """
        began = elapsed()
        raised: BaseException | None = None
        async with ThreadSensitiveContext():
            scope = ConnectionScope(self.claimed.wire_name)
            try:
                await self._invoke()
            except BaseException as error:  # noqa: BLE001 — see the module docstring
                raised = error
            await scope.aclose()
        return self._ended(raised, began)

    def _invoke(self) -> Any:
        invoke = self._job_type.invoke
        if invoke is None:
            raise UnroutableJob(f"no handler for {self.claimed.wire_name!r}")
        return invoke(self._payload, self.context)

    def _ended(self, raised: BaseException | None, began: float) -> Ended:
        duration = elapsed() - began
        return Ended(execution_of(self.claimed.lease, self.context, raised), duration, raised)


def execution_of(lease: Lease, context: JobContext, raised: BaseException | None) -> Execution:
    """Give what an attempt came to, from what its handler raised."""
    tags = added_tags(context)
    if raised is None:
        return Execution(lease, Succeeded(output_of(context), tags))
    # A handler that raises a cancellation which nobody asked for has failed.
    cancelled = isinstance(raised, JobCancelled | asyncio.CancelledError)
    if cancelled and cancellation_of(context).requested:
        return Execution(lease, Cancelled("cancelled on request", tags))
    failed = Failed(cause=described(raised), detail=detail_of(raised), tags=tags)
    if isinstance(raised, RetryAfter):
        return Execution(lease, failed, retry_after=raised.seconds)
    if isinstance(raised, GiveUp):
        return Execution(lease, failed, final=True)
    return Execution(lease, failed)


def route(
    claimed: ClaimedJob,
    registry: Registry,
    policy_for: Callable[[str], RetryPolicy],
    output_bytes_max: int,
) -> Attempt | Ended:
    """Find the handler of a claimed job; what has none has ended already."""
    try:
        job_type, payload = registry.route(claimed.wire_name, claimed.payload)
    except UnroutableJob as error:
        return Ended(Execution(claimed.lease, Unroutable(str(error))), 0.0)
    context = JobContext(
        claimed,
        max_attempts=policy_for(claimed.wire_name).max_attempts,
        output_bytes_max=output_bytes_max,
    )
    return Attempt(claimed, job_type, payload, context)
