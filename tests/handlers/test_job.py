"""``@job`` on functions and classes: what it takes, and what it says to wrong uses."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from backwave_django import BackwaveError, InvalidOption, RetryPolicy, job
from backwave_django.core.limits import WIRE_NAME_LENGTH_MAX
from backwave_django.core.tags import Tag
from backwave_django.exceptions import DeclarationError
from backwave_django.handlers import port
from backwave_django.handlers.declare import FunctionJob, job_type_of
from backwave_django.handlers.registry import Registry


def add(x: int, y: int = 1) -> int:
    """Add."""
    return x + y


def test_a_declared_function_stays_a_function() -> None:
    """Calling a job runs it here and now, and its name and text are still its own."""
    declared = job("add")(add)
    assert declared(2, y=3) == 5
    assert (declared.__name__, declared.__doc__, declared.__module__) == (
        "add", "Add.", add.__module__,
    )  # fmt: skip
    assert declared.__wrapped__ is add
    assert declared.wire_name == "add"
    assert repr(declared) == f"<job 'add' ({__name__}.add)>"


def test_a_declaration_is_kept_whole(declared: Registry) -> None:
    """Queue, labels and retry policy are those of the declaration; else the defaults."""
    policy = RetryPolicy(max_attempts=3)
    job("one", queue="mail", labels=["a", "b", "a"], retry=policy)(add)
    job("two")(add)
    one, two = declared.all()
    assert (one.wire_name, one.queue, one.labels, one.retry) == (
        "one", "mail", (Tag(None, "a"), Tag(None, "b")), policy,
    )  # fmt: skip
    assert (two.queue, two.labels, two.retry, two.is_async) == ("default", (), None, False)


def test_an_async_function_is_known_as_one(declared: Registry) -> None:
    """A coroutine function runs on the event loop, so its kind is noted."""

    async def handler(x: int) -> int:
        return x

    job("later")(handler)
    assert declared.all()[0].is_async


@dataclass(frozen=True)
class Charged:
    """A payload."""

    order: int


@dataclass(slots=True)
class Slotted:
    """A payload without a dictionary."""

    order: int


class Struct(msgspec.Struct, frozen=True):
    """A payload of msgspec's own kind."""

    order: int


@pytest.mark.parametrize("payload_class", [Charged, Slotted, Struct])
def test_a_class_stays_the_class(payload_class: Any, declared: Registry) -> None:
    """``@job`` gives back the very class, and its instances travel by type."""
    assert job("charged")(payload_class) is payload_class
    job_type = job_type_of(payload_class)
    assert job_type is declared.get("charged")
    assert job_type is not None
    value = payload_class(order=4)
    decoded = job_type.codec.decode(job_type.codec.encode(value))
    assert (decoded, type(decoded)) == (value, payload_class)


def test_a_subclass_of_a_payload_is_no_job() -> None:
    """It would lose its own fields in the parent's type."""

    @job("parent")
    @dataclass
    class Parent:
        x: int

    class Child(Parent):
        pass

    assert job_type_of(Parent) is not None
    assert job_type_of(Child) is None


# --- Wrong uses ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [add, None, 3, b"send-receipt", Charged])
def test_without_a_wire_name_the_message_shows_the_right_form(name: Any) -> None:
    """``@job`` without parentheses, and any name that is no text, is a ``TypeError``."""
    with pytest.raises(TypeError, match=r"explicit wire name, such as @job\('send-receipt'\)"):
        job(name)


def test_with_empty_parentheses_it_is_a_type_error() -> None:
    """``@job()`` cannot be meant."""
    with pytest.raises(TypeError, match="wire_name"):
        job()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "must not be empty"),
        (" a", "white space at an end"),
        ("a\n", "white space at an end"),
        ("a" * 513, "513 characters, at most"),
        ("a\x00b", "NUL or a lone surrogate"),
        ("\ud800", "NUL or a lone surrogate"),
    ],
)
def test_a_text_that_cannot_be_a_name_is_refused(name: str, why: str) -> None:
    """Wire names and queues are refused before anything is declared."""
    with pytest.raises(InvalidOption, match=f"^wire name .*{why}"):
        job(name)
    with pytest.raises(InvalidOption, match=f"^queue .*{why}"):
        job("a", queue=name)


def test_the_longest_names_are_taken(declared: Registry) -> None:
    """Counted in characters, whatever they weigh as bytes."""
    job("ü" * WIRE_NAME_LENGTH_MAX, queue="ü" * 128)(add)
    assert declared.get("ü" * WIRE_NAME_LENGTH_MAX) is not None
    with pytest.raises(InvalidOption, match="queue has 129 characters, at most 128"):
        job("a", queue="ü" * 129)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"queue": None}, "queue must be a str"),
        ({"labels": "mail"}, "must be a list of tags, not the text 'mail'"),
        ({"labels": {"a": "b"}}, "must be a list of tags, not the dict"),
        ({"labels": [3]}, "a tag is a label .* not 3"),
        ({"labels": [""]}, "label must not be empty"),
        ({"labels": [("tenant", "acme")]}, "labels are plain strings"),
        ({"retry": 3}, "retry must be a RetryPolicy, not 3"),
        ({"retry": RetryPolicy}, "retry must be a RetryPolicy"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], why: str) -> None:
    """The message names the option and what it should be."""
    with pytest.raises(InvalidOption, match=why):
        job("a", **options)


def test_options_that_do_not_exist_are_refused() -> None:
    """Nothing is swallowed (A049)."""
    with pytest.raises(TypeError, match="max_attempts"):
        job("a", max_attempts=0)  # type: ignore[call-arg]


def assert_shows_the_class_form(error: pytest.ExceptionInfo[DeclarationError]) -> None:
    """The message has a whole example in it."""
    for text in ("@dataclass(frozen=True)", "@handles(OrderCharged)", "def handle(self, job"):
        assert text in str(error.value)


class Shop:
    """A class of the application."""

    def charge(self, order: int) -> None:
        """Charge."""

    static = staticmethod(add)
    of_class = classmethod(add)


@pytest.mark.parametrize(
    "method", [Shop.charge, Shop().charge, Shop.__dict__["static"], Shop.__dict__["of_class"]]
)
def test_on_a_method_the_message_shows_the_class_form(method: Any, declared: Registry) -> None:
    """A method has no instance to run on: plain, bound, static and class methods are refused."""
    with pytest.raises(DeclarationError) as caught:
        job("charge")(method)
    assert_shows_the_class_form(caught)
    assert declared.all() == []


def test_on_a_method_in_a_real_class_body() -> None:
    """As users write it."""
    with pytest.raises(DeclarationError) as caught:

        class Plain:
            @job("charge")
            def charge(self, order: int) -> None: ...

    assert_shows_the_class_form(caught)
    with pytest.raises(DeclarationError) as caught:

        class Static:
            @staticmethod
            @job("charge")
            def charge(order: int) -> None: ...

    assert_shows_the_class_form(caught)


def test_a_function_inside_a_function_is_no_method(declared: Registry) -> None:
    """Tests and factories declare jobs there."""

    @job("inner")
    def inner() -> None: ...

    assert declared.get("inner") is inner.job_type


@pytest.mark.parametrize(
    "target",
    [print, functools.partial(add, 1), 3, None, "add", Charged(1)],
    ids=["built-in", "partial", "number", "none", "text", "instance"],
)
def test_what_is_neither_function_nor_class_is_refused(target: Any) -> None:
    """The message says what a job can stand on."""
    with pytest.raises(DeclarationError, match="@job is for functions and payload classes"):
        job("thing")(target)


def test_a_job_is_declared_once() -> None:
    """A second ``@job`` on a function would give it two identities."""
    first = job("one")(add)
    assert isinstance(first, FunctionJob)
    with pytest.raises(DeclarationError, match="is a job already"):
        job("two")(first)


def test_a_class_is_declared_once() -> None:
    """A second ``@job`` on a class would take the first identity from its instances."""

    @dataclass
    class Payload:
        x: int

    job("one")(Payload)
    with pytest.raises(DeclarationError, match="is a job already"):
        job("two")(Payload)


def test_a_lambda_is_refused() -> None:
    """It has no name for messages, and two of one module cannot be told apart."""
    with pytest.raises(DeclarationError):
        job("lambda")(lambda x: x)


def _generator(x: int) -> Any:
    yield x


async def _async_generator(x: int) -> Any:
    yield x


@pytest.mark.parametrize("function", [_generator, _async_generator])
def test_a_generator_is_refused(function: Any) -> None:
    """Calling it runs nothing, so each attempt would succeed without having done anything."""
    with pytest.raises(DeclarationError, match="generator"):
        job("generator")(function)


def test_before_the_app_is_ready_enqueueing_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message names INSTALLED_APPS and ``django.setup()``."""
    monkeypatch.setattr(port._Unbound, "client", None)
    with pytest.raises(BackwaveError, match=r"INSTALLED_APPS.*django\.setup\(\)"):
        job("add")(add).enqueue(1)
