"""``@handles``: the handler class of a job in the class form."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import pytest

from backwave_django import JobContext, handles, job
from backwave_django.exceptions import DeclarationError
from backwave_django.handlers.declare import job_type_of
from backwave_django.handlers.registry import Registry, registry

from .conftest import context


@pytest.fixture
def payload_class() -> Any:
    """A payload class that is a job, without a handler yet."""

    @dataclass(frozen=True)
    class Charged:
        order: int

    return job("charged")(Charged)


def run(payload: Any) -> Any:
    """Send a payload as bytes to its handler; give what that returns."""
    job_type = job_type_of(type(payload))
    assert job_type is not None
    _, decoded = registry.route(job_type.wire_name, job_type.codec.encode(payload))
    assert job_type.invoke is not None
    return job_type.invoke(decoded, context())


def test_the_handler_gets_payload_and_context(payload_class: Any) -> None:
    """The payload comes back as an instance of its class, beside the context."""

    @handles(payload_class)
    class Handler:
        def handle(self, job: Any, ctx: JobContext) -> Any:
            return job, ctx.wire_name, type(job)

    assert run(payload_class(3)) == (payload_class(3), "wire", payload_class)
    assert Handler.__name__ == "Handler"


def test_a_handler_is_built_anew_for_each_attempt(payload_class: Any) -> None:
    """What one attempt leaves on it is not there in the next."""
    built = []

    @handles(payload_class)
    class Handler:
        def __init__(self) -> None:
            built.append(self)

        def handle(self, job: Any, ctx: JobContext) -> Any:
            return self

    assert built == []
    first, second = run(payload_class(1)), run(payload_class(1))
    assert first is not second
    assert built == [first, second]


def test_the_names_of_the_parameters_are_free(payload_class: Any) -> None:
    """They are passed by place."""

    @handles(payload_class)
    class Handler:
        def handle(self, event: Any, _: JobContext) -> Any:
            return event

    assert run(payload_class(3)) == payload_class(3)


def test_an_async_handle_is_known_as_one(payload_class: Any) -> None:
    """It runs on the event loop."""

    @handles(payload_class)
    class Handler:
        async def handle(self, job: Any, ctx: JobContext) -> Any:
            return job.order

    job_type = job_type_of(payload_class)
    assert job_type is not None
    assert job_type.is_async
    coroutine = run(payload_class(5))
    assert inspect.iscoroutine(coroutine)
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    assert ended.value.value == 5


def test_a_reloaded_handler_replaces_itself(payload_class: Any) -> None:
    """The same declaration met again is no conflict; the newer code counts."""

    def declare(answer: int) -> None:
        @handles(payload_class)
        class Handler:
            def handle(self, job: Any, ctx: JobContext) -> int:
                return answer

    declare(1)
    declare(2)
    assert run(payload_class(0)) == 2


# --- Wrong uses ------------------------------------------------------------------------


def test_a_class_that_is_no_job_is_refused() -> None:
    """The message says what to put on it."""
    with pytest.raises(DeclarationError, match=r"@handles\(int\): .* put @job\('wire-name'\)"):
        handles(int)


@pytest.mark.parametrize("target", [None, "charged", 3], ids=repr)
def test_what_is_no_class_is_refused(target: Any) -> None:
    """With the same kind of error as any other wrong declaration."""
    with pytest.raises(DeclarationError):
        handles(target)


def test_a_function_job_has_no_handler_class() -> None:
    """It is its own handler."""
    declared = job("function")(lambda_free)
    with pytest.raises(DeclarationError):
        handles(declared)  # type: ignore[arg-type]


def lambda_free(x: int) -> None:
    """A plain handler."""


def test_a_second_handler_is_refused_and_named(payload_class: Any) -> None:
    """The message says who handles it already."""

    @handles(payload_class)
    class First:
        def handle(self, job: Any, ctx: JobContext) -> int:
            return 1

    with pytest.raises(DeclarationError, match=r"Charged is handled by .*First already"):

        @handles(payload_class)
        class Second:
            def handle(self, job: Any, ctx: JobContext) -> int:
                return 2

    assert run(payload_class(0)) == 1


class WithoutHandle:
    """No method at all."""


class NotCallable:
    """Something else of that name."""

    handle = 3


class TooFew:
    """No room for the context."""

    def handle(self) -> None:
        """Take nothing."""


class TooMany:
    """Wants what nobody gives."""

    def handle(self, job: Any, ctx: JobContext, more: int) -> None:
        """Take too much."""


@pytest.mark.parametrize("handler", [WithoutHandle, NotCallable, TooFew, TooMany])
def test_a_handler_without_its_method_is_refused(payload_class: Any, handler: Any) -> None:
    """The message shows the method; nothing waits for the first attempt to fail."""
    with pytest.raises(DeclarationError, match=r"handle\(self, job, ctx\)"):
        handles(payload_class)(handler)


def test_a_handler_must_be_a_class(payload_class: Any, declared: Registry) -> None:
    """An instance or a function cannot be built for each attempt."""

    class Handler:
        def handle(self, job: Any, ctx: JobContext) -> None: ...

    for wrong in (Handler(), lambda_free):
        with pytest.raises(DeclarationError):
            handles(payload_class)(wrong)  # type: ignore[type-var]
    job_type = declared.get("charged")
    assert job_type is not None
    assert job_type.invoke is None
