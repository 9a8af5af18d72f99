"""A coroutine that a handler gives is run, never dropped."""

from __future__ import annotations

import functools
import gc
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from backwave_django import JobContext, handles, job
from backwave_django.handlers.registry import registry
from backwave_django.shell.attempt import Attempt

from .conftest import context

ran: list[str] = []


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function as decorators of users do: plainly, whatever kind it is."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@traced
async def decorated(x: int, ctx: JobContext) -> None:
    """Be async, under a decorator that does not show it."""
    ran.append("decorated")


def gives_a_coroutine(x: int, ctx: JobContext) -> Any:
    """Be plain, and return what another async function gave."""
    return decorated(x, ctx)


class Handler:
    """A handler class with a decorated method."""

    @traced
    async def handle(self, job: Any, ctx: JobContext) -> None:
        """Handle."""
        ran.append("handler")


class Payload:
    """No fields."""


def attempt(wire_name: str, payload: Any) -> Attempt:
    """Make an attempt of a declared job."""
    job_type = registry.get(wire_name)
    assert job_type is not None
    ctx = context()
    return Attempt(ctx._claimed, job_type, payload, ctx)


@pytest.mark.parametrize("form", ["decorated", "plain", "class"])
def test_a_coroutine_is_run_or_the_attempt_fails(form: str) -> None:
    """An attempt whose coroutine nobody ran has not succeeded."""
    ran.clear()
    if form == "class":
        handles(job("wire")(Payload))(Handler)
        made = attempt("wire", Payload())
    else:
        job("wire")(decorated if form == "decorated" else gives_a_coroutine)
        made = attempt("wire", {"x": 1})
    if made.is_async:
        return  # it goes to the event loop
    ended = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # In a thread of its own, as in a worker: its scope closes the thread's connections.
        thread = threading.Thread(target=lambda: ended.append(made.run()))
        thread.start()
        thread.join(30)
        gc.collect()
    assert ran or ended[0].raised is not None
