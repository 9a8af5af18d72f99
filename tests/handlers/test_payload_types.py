"""Every payload type comes back as what it was, by value and by type."""

from __future__ import annotations

import enum
import inspect
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backwave_django import InvalidPayload

from .conftest import through

offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
text = st.text(st.characters(exclude_categories=("Cs",)))
integers = st.integers(-(2**63), 2**64 - 1)


class Colour(enum.Enum):
    """An enum of texts."""

    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    """An enum of numbers."""

    SMALL = 1
    LARGE = 2


class Kind(enum.StrEnum):
    """An enum whose members are texts."""

    A = "a"


class Access(enum.Flag):
    """A set of bits."""

    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Line:
    """A dataclass with a default and a nested type."""

    price: Decimal
    at: datetime | None = None
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Order:
    """A dataclass with slots."""

    lines: list[Line] = field(default_factory=list)
    ids: set[UUID] = field(default_factory=set)


class Point(msgspec.Struct):
    """A struct."""

    x: float
    y: float = 0.5


class Circle(msgspec.Struct, tag=True):
    """One of two structs that are told apart by a tag."""

    radius: float


class Square(msgspec.Struct, tag=True):
    """The other one."""

    side: float


class Address(TypedDict):
    """A typed dictionary."""

    street: str
    since: date


class Pair(NamedTuple):
    """A named tuple."""

    left: int
    right: str


def assert_survives(hint: Any, value: Any) -> None:
    """The handler gets an equal value of the same type."""
    got = through(hint, value)
    assert got == value
    assert type(got) is type(value)


RULES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "str": (str, text),
    "int": (int, integers),
    "float": (float, st.floats(allow_nan=False, allow_infinity=False)),
    "bool": (bool, st.booleans()),
    "bytes": (bytes, st.binary()),
    "datetime": (datetime, st.datetimes(timezones=st.just(UTC) | offsets)),
    "naive datetime": (datetime, st.datetimes()),
    "date": (date, st.dates()),
    "time": (time, st.times().map(lambda at: at.replace(fold=0))),
    "timedelta": (timedelta, st.timedeltas()),
    "UUID": (UUID, st.uuids()),
    "Decimal": (Decimal, st.decimals(allow_nan=False)),
    "list": (list[int], st.lists(integers)),
    "set": (set[UUID], st.sets(st.uuids(), max_size=3)),
    "frozenset": (frozenset[str], st.frozensets(text, max_size=3)),
    "tuple": (tuple[int, str], st.tuples(integers, text)),
    "tuple of any length": (tuple[date, ...], st.lists(st.dates(), max_size=3).map(tuple)),
    "dict": (dict[str, list[date]], st.dictionaries(text, st.lists(st.dates(), max_size=2))),
    "dict by int": (dict[int, str], st.dictionaries(st.integers(-(2**63), 2**63 - 1), text)),
    "dict by UUID": (dict[UUID, date], st.dictionaries(st.uuids(), st.dates(), max_size=3)),
    "Optional": (bytes | None, st.none() | st.binary()),
    "union": (int | str | None | list[int], st.none() | integers | text | st.lists(integers)),
    "Enum": (Colour, st.sampled_from(Colour)),
    "IntEnum": (Size, st.sampled_from(Size)),
    "StrEnum": (Kind, st.sampled_from(Kind)),
    "Flag": (Access, st.sampled_from([Access.READ, Access.READ | Access.WRITE])),
    "Literal": (Literal["a", 3], st.sampled_from(["a", 3])),
    "dataclass": (
        Line,
        st.builds(
            Line,
            st.decimals(allow_nan=False),
            st.none() | st.datetimes(timezones=offsets),
            st.lists(text, max_size=2).map(tuple),
        ),
    ),
    "Struct": (Point, st.builds(Point, st.floats(allow_nan=False, allow_infinity=False))),
    "tagged union": (
        Circle | Square,
        st.builds(Circle, st.floats(0, 1)) | st.builds(Square, st.floats(0, 1)),
    ),
    "TypedDict": (Address, st.fixed_dictionaries({"street": text, "since": st.dates()})),
    "NamedTuple": (Pair, st.builds(Pair, integers, text)),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
@given(data=st.data())
def test_a_type_comes_back_as_itself(name: str, data: st.DataObject) -> None:
    """For every value there is, not only for good examples (A050)."""
    hint, values = RULES[name]
    assert_survives(hint, data.draw(values))


def test_nested_types_come_back_as_themselves() -> None:
    """A dataclass of dataclasses of dates and sets, to the last leaf."""
    order = Order(
        [Line(Decimal("1.10"), datetime(2026, 1, 1, tzinfo=ZoneInfo("Asia/Kolkata")), ("a",))],
        {UUID(int=5)},
    )
    got = through(Order, order)
    assert got == order
    assert type(got.lines[0].notes) is tuple
    assert str(got.lines[0].price) == "1.10"


def test_a_zone_comes_back_as_its_offset() -> None:
    """The instant and the wall clock stay; the name of the zone does not travel."""
    at = datetime(2026, 7, 1, 9, tzinfo=ZoneInfo("Europe/Berlin"))
    got = through(datetime, at)
    assert got == at
    assert (got.hour, got.utcoffset()) == (9, timedelta(hours=2))


@pytest.mark.parametrize(
    "zone",
    [ZoneInfo("Europe/Amsterdam"), timezone(timedelta(hours=5, minutes=30, seconds=7))],
    ids=["Amsterdam before 1937", "+05:30:07"],
)
def test_an_instant_never_moves(zone: Any) -> None:
    """An offset with seconds has no JSON form: it is refused, or the instant is kept."""
    at = datetime(1900, 1, 1, 12, 0, tzinfo=zone)
    try:
        got = through(datetime, at)
    except InvalidPayload:
        return
    assert got == at


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**40])
def test_a_big_integer_is_kept_or_refused(value: int) -> None:
    """Never rounded, whatever the version of the JSON library can do."""
    for hint in (int, Any, list[int]):
        given_value = [value] if hint == list[int] else value
        try:
            got = through(hint, given_value)
        except InvalidPayload:
            continue
        assert got == given_value
        assert type(got) is type(given_value)


def test_an_integer_beyond_all_bounds_is_refused() -> None:
    """With the error of this package, not with that of the JSON library."""
    with pytest.raises(InvalidPayload, match="payload of job 'wire'"):
        through(int, 10**5000)


plain_json = st.recursive(
    st.none() | st.booleans() | integers | text | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=20,
)


@given(plain_json)
def test_plain_json_needs_no_annotation(value: Any) -> None:
    """A parameter without one takes what JSON can hold, of any depth."""
    got = through(inspect.Parameter.empty, value)
    assert got == value
    assert type(got) is type(value)


@given(plain_json)
def test_any_takes_plain_json(value: Any) -> None:
    """So does one annotated with ``Any``."""
    assert through(Any, value) == value


@dataclass(eq=False)
class Nightly:
    """A payload that says all by being there."""


@dataclass(eq=False)
class Numbered:
    """A payload that compares by identity."""

    number: int


class Tick(msgspec.Struct, eq=False):
    """A struct that does so."""


@pytest.mark.parametrize("value", [Nightly(), Numbered(3), Tick()], ids=lambda v: type(v).__name__)
def test_a_payload_need_not_know_equality(value: Any) -> None:
    """Its fields are what counts, also where there are none."""
    got = through(type(value), value)
    assert type(got) is type(value)
    assert getattr(got, "number", 3) == 3


@dataclass
class Stamped:
    """A payload that makes some of its own fields."""

    x: int
    at: datetime = field(default_factory=lambda: datetime.now(UTC), init=False)


def test_a_field_that_the_class_makes_itself_travels_too() -> None:
    """The handler sees the value of the enqueue."""
    value = Stamped(3)
    assert through(Stamped, value) == value


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [(float, 3, 3.0), (list[float], [1, 2.5], [1.0, 2.5]), (float | None, 0, 0.0)],
)
def test_a_whole_number_may_stand_for_a_float(hint: Any, value: Any, expected: Any) -> None:
    """As everywhere in Python; the handler gets the declared type."""
    got = through(hint, value)
    assert got == expected
    assert repr(got) == repr(expected)


def test_false_values_are_values() -> None:
    """Nothing false is read as not given (A041)."""
    for hint, value in ((int, 0), (str, ""), (bool, False), (list, []), (bytes, b""), (float, 0.0)):
        assert_survives(hint, value)
        assert_survives(hint | None, value)
    assert through(int | None, None) is None
    assert str(through(float, -0.0)) == "-0.0"
