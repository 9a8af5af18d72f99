"""How a handler's parameters become a payload, and a payload its arguments again."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

import backwave_django
from backwave_django import JobContext, job
from backwave_django.exceptions import DeclarationError
from backwave_django.handlers.registry import Registry

from .conftest import run


def odd_names(
    self, task, job, context, queue, using, priority, delay, args, kwargs, name, id, payload,
    options, due, tags, wire_name, client, function, cls, value,
):  # fmt: skip
    """Take parameters of names that a library might keep for itself."""
    return locals()


ODD_NAMES = odd_names.__code__.co_varnames


def test_no_name_of_a_parameter_is_taken() -> None:
    """Options go by another channel, so each name gets exactly what was passed (A049)."""
    expected = {name: f"value of {name}" for name in ODD_NAMES}
    assert len(expected) == 21
    assert run(odd_names, *expected.values()) == expected
    assert run(odd_names, **expected) == expected


def every_kind(a, b=2, /, c=3, *args, d, e=5, **kwargs):
    """Take parameters of every kind that Python has."""
    return a, b, c, args, d, e, kwargs


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((1,), {"d": 4}),
        ((1, 9), {"d": 4, "e": 0}),
        ((1,), {"c": 7, "d": 4}),
        ((1, 9, 8, 7, 6), {"d": 4, "z": 1}),
        # What is positional-only leaves its name to **kwargs.
        ((1, 2), {"d": 4, "a": "x", "b": "y", "args": [1], "kwargs": {"k": 1}}),
    ],
)
def test_every_kind_of_parameter_travels(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Positional-only, keyword-only, defaults, *args and **kwargs, as in a plain call (A049)."""
    assert run(every_kind, *args, **kwargs) == every_kind(*args, **kwargs)


plain = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text("ab\x00é😀", max_size=3)
)
keys = st.sampled_from(["a", "b", "c", "e", "z", "args", "kwargs", "self", "ctx"])


# At least two by place: older Pythons cannot bind a positional-only parameter that is left to
# its default beside a keyword of its name (https://github.com/python/cpython/issues/87106).
@given(st.lists(plain, min_size=2, max_size=6), st.dictionaries(keys, plain))
def test_a_call_and_its_job_are_the_same(args: list[Any], kwargs: dict[str, Any]) -> None:
    """Whatever arguments Python binds, the handler gets as in the call; others are refused."""
    try:
        expected = every_kind(*args, d=0, **kwargs)
    except TypeError:
        with pytest.raises(TypeError, match="job 'wire' takes"):
            job("wire")(every_kind).payload(*args, d=0, **kwargs)
    else:
        assert run(every_kind, *args, d=0, **kwargs) == expected


def defaults(at: Any = [1], *, flag: bool = True, none: Any = None):  # noqa: B006 — a default that is shared
    """Take nothing that must be given."""
    return at, flag, none


def test_defaults_are_the_handlers_own() -> None:
    """What was not given is not stored, so a later default counts for waiting jobs too."""
    assert job("d")(defaults).payload().value == {}
    result = run(defaults)
    assert result[0] is defaults.__defaults__[0]  # type: ignore[index]
    # Given values that are false are given (A041).
    assert run(defaults, at=0, flag=False, none=None) == (0, False, None)
    assert run(defaults, at="", none=[]) == ("", True, [])


def typed(*args: int, **kwargs: str):
    """Take any number of each."""
    return args, kwargs


def test_annotations_of_star_arguments_are_kept() -> None:
    """Each of them is checked."""
    assert run(typed, 1, 2, a="x") == ((1, 2), {"a": "x"})
    with pytest.raises(backwave_django.InvalidPayload, match=r"args\[1\]: Expected `int`"):
        run(typed, 1, "x")
    with pytest.raises(backwave_django.InvalidPayload, match=r"kwargs.*: Expected `str`"):
        run(typed, a=1)


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing a required argument: 'x'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"z": 1}, "unexpected keyword argument 'z'"),
        ((1,), {"x": 1}, "multiple values for argument 'x'"),
        ((1,), {"ctx": 1}, "unexpected keyword argument 'ctx'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_as_python_does(
    args: tuple[Any, ...], kwargs: dict[str, Any], why: str
) -> None:
    """A ``TypeError`` at the enqueue, with the job's name and the parameters it takes."""

    def handler(x, ctx, y=2):
        return x

    with pytest.raises(TypeError, match=r"^job 'send' takes \(x, y=2\): ") as caught:
        job("send")(handler).enqueue(*args, **kwargs)
    assert why in str(caught.value)


# --- The context -----------------------------------------------------------------------


def first(ctx: JobContext, x: int):
    """Take the context first."""
    return ctx, x


def last(x: int, ctx: JobContext):
    """Take the context last."""
    return ctx, x


def keyword(x: int, *, run: JobContext):
    """Take the context by keyword, by another name."""
    return run, x


def positional(run: backwave_django.JobContext, x: int, /):
    """Take it by place only, its name dotted."""
    return run, x


def unannotated(x, ctx):
    """Say by the name alone what it is."""
    return ctx, x


def quoted(x: int, ctx: "JobContext"):  # noqa: UP037 — a text within a text
    """Name the type in a string."""
    return ctx, x


@pytest.mark.parametrize("handler", [first, last, keyword, positional, unannotated, quoted])
def test_the_context_is_found_wherever_it_stands(handler: Any) -> None:
    """By its annotation, or by the name ``ctx`` without one; it is no part of the payload."""
    ctx, x = run(handler, 3)
    assert isinstance(ctx, JobContext)
    assert x == 3
    with pytest.raises(TypeError, match="too many"):
        job("again")(handler).payload(1, 2)


def after_default(x: int = 1, y: int = 2, *, ctx: JobContext, z: int = 3):
    """Take it after what has defaults."""
    return x, y, z, ctx.attempt


def before_default(x=1, /, ctx=None, y=2):
    """Take it between defaults, one of them positional-only."""
    return x, ctx.attempt, y


def test_the_context_is_passed_beside_defaults() -> None:
    """A default that is left alone before it does not shift it."""
    assert run(after_default) == (1, 2, 3, 2)
    assert run(after_default, y=5) == (1, 5, 3, 2)
    assert run(before_default) == (1, 2, 2)
    assert run(before_default, y=7) == (1, 2, 7)


def ctx_is_data(ctx: int, x: int):
    """Use the name for something else."""
    return ctx, x


def test_ctx_with_another_annotation_is_data() -> None:
    """The name alone decides only where there is no annotation."""
    assert run(ctx_is_data, 1, 2) == (1, 2)


def two(a: JobContext, b: JobContext):
    """Take it twice."""


def test_two_contexts_are_refused() -> None:
    """There is one."""
    with pytest.raises(DeclarationError, match="takes one JobContext, not 2"):
        job("two")(two)


def optional(x: int, ctx: JobContext | None = None):
    """Be callable without a context, as in a test."""
    return ctx, x


def optional_typing(x: int, ctx: Optional[JobContext] = None):  # noqa: UP045 — the older spelling
    """Do the same in the older spelling."""
    return ctx, x


def annotated(x: int, ctx: Annotated[JobContext, "of the attempt"]):
    """Say more about it."""
    return ctx, x


@pytest.mark.parametrize("handler", [optional, optional_typing, annotated])
def test_a_context_that_may_be_left_out_is_still_passed(handler: Any) -> None:
    """A handler that takes ``JobContext | None`` gets the context, never silently ``None``."""
    ctx, x = run(handler, 3)
    assert isinstance(ctx, JobContext)
    assert x == 3


def traced(function: Any) -> Any:
    """Wrap a function as decorators of users do."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return ("traced", *function(*args, **kwargs))

    return wrapper


@traced
def decorated(x: int, *, ctx: JobContext, y: str = "y"):
    """Stand under a decorator."""
    return x, y, ctx.attempt


def test_a_decorated_handler_keeps_its_signature() -> None:
    """And the decorator runs around each attempt."""
    assert run(decorated, 3) == ("traced", 3, "y", 2)
    with pytest.raises(backwave_django.InvalidPayload, match="x: Expected `int`"):
        run(decorated, "3")


def test_the_payload_of_a_job_has_one_field_per_parameter(declared: Registry) -> None:
    """By name, in a JSON object: what a person reads in the table."""
    payload = job("l")(last).payload(3)
    assert payload.job_type.codec.encode(payload.value) == b'{"x":3}'
