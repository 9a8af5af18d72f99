"""What cannot travel is refused where it is enqueued, with the place and a way out."""

from __future__ import annotations

import contextlib
import inspect
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from django.contrib.auth.models import Group, User
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from backwave_django import InvalidPayload, job
from backwave_django.handlers.registry import registry

from .conftest import through

UNTYPED = inspect.Parameter.empty


def assert_refused(hint: Any, value: Any, message: str) -> None:
    """The error names the job, then the place, then what to do."""
    with pytest.raises(InvalidPayload, match=f"^payload of job 'wire': {message}") as caught:
        through(hint, value)
    assert isinstance(caught.value, ValueError)


def nested(value: Any) -> list[tuple[Any, str]]:
    """Put a value into several places; gives each whole with the path to it."""
    return [
        (value, "value"),
        ([1, value], r"value\[1\]"),
        ({"a": [None, "null", {"b": value}]}, r"value\.a\[2\]\.b"),
    ]


@pytest.mark.parametrize("hint", [Any, UNTYPED])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused_at_any_depth(hint: Any, number: float) -> None:
    """JSON has no such numbers; the message says what to pass instead (A050)."""
    for value, path in nested(number):
        assert_refused(hint, value, rf"{path}: NaN and Infinity .* pass None, a str or a Decimal")


class Point(msgspec.Struct):
    """A struct."""

    x: float
    y: float | None = None


@dataclass
class Box:
    """A dataclass."""

    points: list[Point]


@pytest.mark.parametrize(
    ("hint", "value", "path"),
    [
        (float, math.nan, "value"),
        (float | None, math.nan, "value"),
        (list[float], [0.5, math.inf], r"value\[1\]"),
        (tuple[float, ...], (0.5, math.inf), r"value\[1\]"),
        (dict[str, float], {"a": -math.inf}, r"value\.a"),
        (Point, Point(0.5, math.nan), r"value\.y"),
        (Box, Box([Point(0.5), Point(math.nan)]), r"value\.points\[1\]\.x"),
    ],
)
def test_typed_fields_refuse_nan_too(hint: Any, value: Any, path: str) -> None:
    """Also where the type would take the null that NaN is written as."""
    assert_refused(hint, value, f"{path}: NaN and Infinity")


@given(st.recursive(
    st.just(math.nan) | st.integers(0, 3) | st.none() | st.just("null"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab"), inner),
))  # fmt: skip
def test_a_nan_never_slips_through(value: Any) -> None:
    """Wherever it stands, and whatever nulls stand beside it."""

    def holds_nan(part: Any) -> bool:
        if isinstance(part, dict):
            return any(map(holds_nan, part.values()))
        return any(map(holds_nan, part)) if isinstance(part, list) else part != part

    if holds_nan(value):
        assert_refused(Any, value, ".*NaN and Infinity")
    else:
        assert through(Any, value) == value


@pytest.mark.parametrize("hint", [Any, UNTYPED, int])
def test_a_model_instance_is_refused_with_advice(hint: Any) -> None:
    """The message says to pass the primary key."""
    for value, path in nested(User(pk=1)):
        assert_refused(hint, value, rf"{path}: a model instance \(User\) .* pass its primary key")


def test_a_lazy_model_instance_is_refused_too() -> None:
    """``request.user`` is one."""
    assert_refused(
        Any, SimpleLazyObject(lambda: User(pk=1)), r"value: a model instance \(.*\(\.pk\)"
    )


@pytest.mark.parametrize("hint", [Any, UNTYPED])
def test_a_queryset_is_refused_with_advice_and_without_a_query(hint: Any) -> None:
    """No database is asked: this test may not reach one."""
    for value, path in nested(User.objects.filter(pk=1)):
        assert_refused(hint, value, rf"{path}: a QuerySet .* pass a list of primary keys")
    for value, path in nested(Group.objects.all().values_list("pk", flat=True)):
        assert_refused(hint, value, rf"{path}: a QuerySet .* pass a list of primary keys")


def named() -> None:
    """A function of the application."""


@pytest.mark.parametrize("hint", [Any, UNTYPED])
@pytest.mark.parametrize(
    ("function", "name"),
    [(lambda: 1, "lambda"), (named, "named"), (User, "User"), (print, "print")],
)
def test_a_function_or_class_is_refused_with_advice(hint: Any, function: Any, name: str) -> None:
    """The message says to pass the data that it needs."""
    for value, path in nested(function):
        assert_refused(hint, value, rf"{path}: a function or class \(.*{name}.*\).* pass the data")


@pytest.mark.parametrize("hint", [Any, UNTYPED])
@pytest.mark.parametrize(
    "thing",
    [object(), ValueError("x"), range(3), 1j, UTC, iter([])],
    ids=["object", "error", "range", "complex", "zone", "iterator"],
)
def test_any_other_object_is_refused_with_its_place(hint: Any, thing: Any) -> None:
    """The path and the type of the thing are in the message (A050)."""
    for value, path in nested(thing):
        assert_refused(hint, value, rf"{path}: a {type(thing).__name__} ")


@pytest.mark.parametrize("value", [mark_safe("<b>"), gettext_lazy("Yes")], ids=["safe", "lazy"])
@pytest.mark.parametrize("hint", [str, Any, UNTYPED])
def test_texts_of_django_travel_as_text_or_are_refused(hint: Any, value: Any) -> None:
    """A safe or lazy string never arrives as something else."""
    with contextlib.suppress(InvalidPayload):
        got = through(hint, value)
        assert (type(got), got) == (str, str(value))


@pytest.mark.parametrize("hint", [str, Any, UNTYPED])
def test_a_rendered_template_travels_as_text(hint: Any) -> None:
    """``render_to_string`` gives a safe string, and ``str()`` of it is one still."""
    rendered = mark_safe("<b>bold</b>")
    assert type(str(rendered)) is not str
    for value, expected in ((rendered, "<b>bold</b>"), ([rendered], ["<b>bold</b>"])):
        if hint is not str or value is rendered:
            got = through(hint, value)
            assert got == expected
            assert type(got[0]) is str


@pytest.mark.parametrize("number", ["NaN", "sNaN", "-sNaN123"])
@pytest.mark.parametrize("hint", [Decimal, list[Decimal], Any])
def test_a_decimal_that_is_no_number_travels_or_is_refused(hint: Any, number: str) -> None:
    """It equals nothing, not even itself; one kind raises when it is compared."""
    value = Decimal(number)
    with contextlib.suppress(InvalidPayload):
        got = through(hint, [value] if hint == list[Decimal] else value)
        assert str(got) in (number, f"[Decimal('{number}')]")


@pytest.mark.parametrize("hint", [str, Any, UNTYPED])
def test_a_lone_surrogate_is_refused(hint: Any) -> None:
    """UTF-8 has no form for it."""
    assert_refused(hint, "a\ud800", ".*lone surrogate cannot be stored")
    if hint is not str:
        assert_refused(hint, {"a": [{"\udfff": 1}]}, ".*lone surrogate cannot be stored")


AT = datetime(2026, 1, 1, tzinfo=UTC)
TYPED_VALUES = [
    AT, date(2026, 1, 1), timedelta(1), (1, 2), {1}, frozenset({1}), Decimal(1), UUID(int=1),
    b"bytes", bytearray(b"a"), Point(1.0), {1: "a"}, {AT: 1},
]  # fmt: skip


@pytest.mark.parametrize("typed", TYPED_VALUES, ids=repr)
def test_without_an_annotation_only_plain_json_is_taken(typed: Any) -> None:
    """Nothing would bring the type back, so the message asks for an annotation."""
    for value, path in nested(typed):
        kind = type(typed).__name__
        assert_refused(
            UNTYPED, value, rf"{path}: a {kind} would not come back as one; annotate the parameter"
        )


@pytest.mark.parametrize("hint", [Any, object, list, dict, dict[str, Any], list[Any]], ids=str)
def test_what_an_open_annotation_would_change_is_refused(hint: Any) -> None:
    """``Any``, ``list`` and ``dict`` bring no type back: by type, or not at all (A050)."""
    changed = []
    for typed in TYPED_VALUES:
        value = {"a": typed} if "dict" in str(hint) else [typed] if "list" in str(hint) else typed
        try:
            got = through(hint, value)
        except InvalidPayload:
            continue
        if got != value or type(got) is not type(value):
            changed.append(f"{value!r} arrived as {got!r}")
    assert changed == []


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (int, "3", "value: Expected `int`, got `str`"),
        (int, 3.5, "value: Expected `int`, got `float`"),
        (bool, 1, "value: Expected `bool`, got `int`"),
        (int, True, "value: Expected `int`, got `bool`"),
        (str, None, "value: Expected `str`, got `null`"),
        (list[int], [1, "x"], r"value\[1\]: Expected `int`, got `str`"),
        (date, AT, "value: Invalid RFC3339 encoded date"),
        (UUID, "nope", "value: Invalid UUID"),
        (Box, Box([Point("x")]), r"value\.points\[0\]\.x: Expected `float`, got `str`"),  # type: ignore[arg-type]
        (dict[str, int], {"a": None}, r"value.*: Expected `int`, got `null`"),
    ],
)
def test_what_its_handler_could_not_read_is_refused(hint: Any, value: Any, message: str) -> None:
    """At the enqueue, not as a quarantined job later."""
    assert_refused(hint, value, message)


def test_bytes_never_arrive_as_text() -> None:
    """A parameter annotated ``str`` refuses them, instead of passing on their base64 form."""
    assert_refused(str, b"abc", "value: ")


@dataclass
class Parent:
    """A payload part."""

    a: int


@dataclass
class Child(Parent):
    """The same with more in it."""

    b: int = 0


def test_no_field_of_a_subclass_is_lost() -> None:
    """An instance of a subclass is refused, or arrives whole."""
    try:
        got = through(Parent, Child(1, 2))
    except InvalidPayload:
        return
    assert got == Child(1, 2)


@pytest.mark.parametrize("hint", [Any, UNTYPED, list])
def test_a_list_within_itself_is_refused(hint: Any) -> None:
    """With the error of this package."""
    endless: list[Any] = []
    endless.append(endless)
    assert_refused(hint, endless, "")


@pytest.mark.parametrize("hint", [Any, UNTYPED])
def test_what_is_nested_too_deeply_is_refused(hint: Any) -> None:
    """With the error of this package."""
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert_refused(hint, deep, "")


def test_raw_json_that_is_none_is_refused() -> None:
    """With the error of this package."""
    assert_refused(Any, msgspec.Raw(b"{oops"), "")


# --- Annotations -----------------------------------------------------------------------


def unknown(x: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821 — it is the point
    """Name what does not exist."""


def with_hint(hint: Any) -> Any:
    """Make a handler whose parameter has this annotation."""

    def handler(x):
        return x

    handler.__annotations__["x"] = hint
    return handler


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (unknown, "annotation cannot be resolved.*Nowhere"),
        (with_hint("list["), "annotation cannot be resolved"),
        (with_hint("datetime.nothing"), "annotation cannot be resolved"),
        (with_hint(datetime | str), "unions may not contain more than one str-like type"),
        (with_hint(set[int] | list[int]), "unions may not contain more than one array-like"),
    ],
)
def test_an_annotation_that_cannot_work_is_named(handler: Any, why: str) -> None:
    """At the first use and by the system check, with the job's name."""
    job("wire")(handler)
    job_type = registry.get("wire")
    assert job_type is not None
    with pytest.raises(InvalidPayload, match=f"^payload of job 'wire': .*{why}"):
        job_type.codec  # noqa: B018 — made at its first use
