"""An empty registry for each test, and a payload's way from the caller to the handler."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from backwave_django import JobContext, job
from backwave_django.core.outcomes import ClaimedJob, Lease
from backwave_django.handlers.context import Cancellation
from backwave_django.handlers.registry import Registry, registry

JOB_ID = UUID("01890000-0000-7000-8000-000000000001")


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The process-wide registry, emptied for this test and filled again after it."""
    monkeypatch.setattr(registry, "_types", {})
    monkeypatch.setattr(registry, "conflicts", [])
    return registry


def context(
    cancellation: Cancellation | None = None, output_bytes_max: int = 100, **claimed: Any
) -> JobContext:
    """Make the context of an attempt."""
    job_values: dict[str, Any] = {
        "lease": Lease(JOB_ID, "worker", 2, 5),
        "wire_name": "wire",
        "queue": "mail",
        "payload": b"{}",
        **claimed,
    }
    return JobContext(
        ClaimedJob(**job_values),
        max_attempts=7,
        output_bytes_max=output_bytes_max,
        cancellation=cancellation,
    )


def run(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Declare a handler, send it arguments as bytes, and give what it returns."""
    declared_job = job("wire")(function)
    bound = declared_job.payload(*args, **kwargs)
    _, payload = registry.route("wire", bound.job_type.codec.encode(bound.value))
    invoke = bound.job_type.invoke
    assert invoke is not None
    return invoke(payload, context())


def through(hint: Any, value: Any) -> Any:
    """Send one value to a parameter annotated with ``hint``; give what the handler gets."""

    def handler(value):
        return value

    if hint is not inspect.Parameter.empty:
        handler.__annotations__["value"] = hint
    return run(handler, value)
