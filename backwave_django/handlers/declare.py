"""``@job`` and ``@handles``: how a job is declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

from ..core.errors import InvalidOption
from ..core.limits import WIRE_NAME_LENGTH_MAX
from ..core.retry import RetryPolicy
from ..core.tags import TagLike, tag_set
from ..core.text import QUEUE_NAME_MAX, check_name
from . import port
from .codec import Codec
from .context import JobContext
from .errors import DeclarationError
from .port import EnqueueOptions
from .registry import JobType, registry
from .signature import HandlerSignature

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
T = TypeVar("T")

_CLASS_ATTRIBUTE = "__backwave_job_type__"

CLASS_FORM = """a job on a method of a class has no instance to run on; use the class form:

    @job("wire-name")
    @dataclass(frozen=True)
    class OrderCharged:
        order_id: UUID

    @handles(OrderCharged)
    class OrderChargedHandler:
        def handle(self, job: OrderCharged, ctx: JobContext) -> None: ..."""


class PreparedJob(Generic[P]):
    """A job type with options, ready to be enqueued; made by ``using``."""

    def __init__(self, job: FunctionJob[P, Any], options: EnqueueOptions) -> None:
        self._job = job
        self._options = options

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> UUID:
        """Enqueue the job with the handler's own arguments; see ``backwave_django.enqueue``."""
        return port.client().enqueue_typed(
            self._job.job_type, self._job.signature.payload(args, kwargs), self._options
        )

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> UUID:
        """Do the same from async code."""
        return await port.client().aenqueue_typed(
            self._job.job_type, self._job.signature.payload(args, kwargs), self._options
        )


class FunctionJob(Generic[P, R_co]):
    """A function that is a job: the method form. Calling it runs it here and now."""

    def __init__(
        self, function: Callable[..., R_co], job_type: JobType, signature: HandlerSignature
    ) -> None:
        self.job_type = job_type
        self.signature = signature
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", job_type.wire_name)
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__

    def __repr__(self) -> str:
        return f"<job {self.job_type.wire_name!r} ({self.job_type.declared_at})>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> R_co:
        """Run the function itself, as if it were no job."""
        return self.__wrapped__(*args, **kwargs)

    @property
    def wire_name(self) -> str:
        """The job type's declared identity."""
        return self.job_type.wire_name

    def using(
        self,
        *,
        due: datetime | timedelta | None = None,
        queue: str | None = None,
        tags: Sequence[TagLike] = (),
        job_id: UUID | None = None,
        idempotency_key: str | None = None,
        on_duplicate: Literal["raise", "return"] = "raise",
        after: Sequence[UUID] = (),
        mode: int | None = None,
    ) -> PreparedJob[P]:
        """Set options for one enqueue; they mean what they mean for ``enqueue``."""
        options = EnqueueOptions(
            due, queue, tags, job_id, idempotency_key, on_duplicate, after, mode
        )
        return PreparedJob(self, options)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> UUID:
        """Enqueue the job, due now, with the handler's own arguments.

        Returns:
            The job's id.

        Raises:
            TypeError: the arguments do not fit the handler.
            InvalidPayload: one of them cannot travel in a payload.
            EnqueueError: the store refused the job.
        """
        return PreparedJob(self, EnqueueOptions()).enqueue(*args, **kwargs)

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> UUID:
        """Do the same from async code."""
        return await PreparedJob(self, EnqueueOptions()).aenqueue(*args, **kwargs)

    def payload(self, /, *args: P.args, **kwargs: P.kwargs) -> BoundPayload:
        """Bind arguments without enqueueing; for ``enqueue``, ``enqueue_many`` and schedules."""
        return BoundPayload(self.job_type, self.signature.payload(args, kwargs))


class BoundPayload:
    """A payload of the method form, with the type that it belongs to."""

    __slots__ = ("job_type", "value")

    def __init__(self, job_type: JobType, value: dict[str, Any]) -> None:
        self.job_type = job_type
        self.value = value


class _Decorator(Protocol):
    """What ``job(...)`` gives. A context in first place leaves the rest fully typed.

    The type system cannot take a parameter out of the middle or the end of a signature:
    a handler that takes its context there is accepted with any arguments.
    """

    @overload  # every class is a callable too; this one comes first
    def __call__(self, target: type[T], /) -> type[T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: Callable[Concatenate[JobContext, P], R], /) -> FunctionJob[P, R]: ...
    @overload
    def __call__(self, target: Callable[[Any, JobContext], R], /) -> FunctionJob[..., R]: ...
    @overload
    def __call__(self, target: Callable[[Any, Any, JobContext], R], /) -> FunctionJob[..., R]: ...
    @overload
    def __call__(
        self, target: Callable[[Any, Any, Any, JobContext], R], /
    ) -> FunctionJob[..., R]: ...
    @overload
    def __call__(
        self, target: Callable[[Any, Any, Any, Any, JobContext], R], /
    ) -> FunctionJob[..., R]: ...
    @overload
    def __call__(self, target: Callable[P, R], /) -> FunctionJob[P, R]: ...


def job(
    wire_name: str,
    *,
    queue: str = "default",
    labels: Sequence[str] = (),
    retry: RetryPolicy | None = None,
) -> _Decorator:
    """Declare a job: on a function (method form), or on a payload class (class form).

    Args:
        wire_name: its identity in storage, at most ``MaxWireNameLength`` characters
            (128), unique in the project. It outlives renames of the code; never reuse one
            for another job.
        queue: where its jobs go unless an enqueue says otherwise.
        labels: tags that each of its jobs gets, besides those of the enqueue.
        retry: its own retry policy; by default the worker group's.

    Raises:
        DeclarationError: a ``TypeError`` that shows the right form.
        InvalidOption: a name that cannot be one.
    """
    if not isinstance(wire_name, str):
        raise DeclarationError(
            "@job needs an explicit wire name, such as @job('send-receipt'): what is stored "
            "must not change when code is renamed"
        )
    check_name("wire name", wire_name, WIRE_NAME_LENGTH_MAX)
    check_name("queue", queue, QUEUE_NAME_MAX)
    tags = tag_set(labels)
    if any(tag.key is not None for tag in tags):
        raise InvalidOption("labels are plain strings; set keyed tags at the enqueue")
    if retry is not None and not isinstance(retry, RetryPolicy):
        raise InvalidOption(f"retry must be a RetryPolicy, not {retry!r}")

    def declare(target: Any) -> Any:
        job_type = JobType(wire_name, queue, tags, retry, _place_of(target), _no_codec)
        if inspect.isclass(target):
            return _declare_class(target, job_type)
        return _declare_function(target, job_type)

    return declare


def _declare_class(payload_class: type, job_type: JobType) -> type:
    known = job_type_of(payload_class)
    if known is not None and known.wire_name != job_type.wire_name:
        raise DeclarationError(
            f"{payload_class.__qualname__} is a job already, {known.wire_name!r}; declare each "
            "job once"
        )
    job_type.make_codec = lambda subject: Codec(subject, payload_class)
    setattr(payload_class, _CLASS_ATTRIBUTE, job_type)
    registry.add(job_type)
    return payload_class


def _declare_function(function: Any, job_type: JobType) -> FunctionJob[Any, Any]:
    if isinstance(function, FunctionJob):
        raise DeclarationError(f"{function!r} is a job already; declare each job once")
    if isinstance(function, staticmethod | classmethod) or _is_in_class_body(function):
        raise DeclarationError(CLASS_FORM)
    if not inspect.isfunction(function):
        raise DeclarationError(f"@job is for functions and payload classes, not {function!r}")
    if function.__name__ == "<lambda>":
        raise DeclarationError("a lambda has no name to speak of; declare the job on a def")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(
            f"{function.__qualname__} is a generator, so calling it runs nothing; a handler is a "
            "function or a coroutine function"
        )
    signature = HandlerSignature(function, job_type.wire_name)
    job_type.make_codec = signature.make_codec
    job_type.invoke = signature.call
    job_type.is_async = _is_async(function)
    registry.add(job_type)
    return FunctionJob(function, job_type, signature)


def _is_in_class_body(function: Any) -> bool:
    outer, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    return bool(outer) and not outer.endswith("<locals>")


def _place_of(target: Any) -> str:
    return f"{getattr(target, '__module__', '?')}.{getattr(target, '__qualname__', repr(target))}"


def _no_codec(subject: str) -> Codec:
    raise DeclarationError(f"{subject}: not declared yet")


class _Handler(Protocol):
    def handle(self, job: Any, ctx: JobContext, /) -> Any: ...


H = TypeVar("H", bound=type[_Handler])


def handles(payload_class: type) -> Callable[[H], H]:
    """Declare the handler class of a job in the class form; built anew for each attempt.

    Args:
        payload_class: the class that ``@job`` stands on.

    Raises:
        DeclarationError: the payload class is no job, or has a handler, or the handler
            has no method ``handle(self, job, ctx)``.
    """
    job_type = job_type_of(payload_class) if isinstance(payload_class, type) else None
    if job_type is None:
        raise DeclarationError(
            f"@handles({getattr(payload_class, '__qualname__', repr(payload_class))}): that is no "
            "job; put @job('wire-name') on the payload class"
        )

    def declare(handler_class: H) -> H:
        method = _handle_method(handler_class)
        if job_type.invoke is not None and job_type.handled_by != _place_of(handler_class):
            raise DeclarationError(
                f"{payload_class.__qualname__} is handled by {job_type.handled_by} already"
            )
        job_type.handled_by = _place_of(handler_class)
        job_type.is_async = _is_async(method)
        job_type.invoke = lambda payload, context: handler_class().handle(payload, context)
        return handler_class

    return declare


def _handle_method(handler_class: Any) -> Any:
    """Give the method of a handler class that runs an attempt.

    Raises:
        DeclarationError: no class, or no method that takes a job and a context.
    """
    method = getattr(handler_class, "handle", None)
    if inspect.isclass(handler_class) and callable(method):
        with suppress(TypeError):
            inspect.signature(method).bind("self", "job", "ctx")
            return method
    name = getattr(handler_class, "__qualname__", repr(handler_class))
    raise DeclarationError(
        f"@handles needs a class with a method handle(self, job, ctx), which {name} is not"
    )


def _is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine, also under decorators that use ``wraps``."""
    return inspect.iscoroutinefunction(inspect.unwrap(function))


def job_type_of(payload_class: type) -> JobType | None:
    """Give the job type that ``@job`` declared on this very class."""
    found: JobType | None = payload_class.__dict__.get(_CLASS_ATTRIBUTE)
    return found
