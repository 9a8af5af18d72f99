"""Payloads that do not decode: the cause names the field and says why."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from backwave_django import handles, job
from backwave_django.exceptions import UnroutableJob
from backwave_django.handlers.registry import Registry, registry


def send(order_id: int, note: str = "", lines: list[int] | None = None) -> tuple[Any, ...]:
    """Send something."""
    return order_id, note, lines


@pytest.fixture(autouse=True)
def sending() -> None:
    """Declare the job of these tests."""
    job("send")(send)


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "Input data was truncated"),
        (b"{", "Input data was truncated"),
        (b"not json", "JSON is malformed: invalid character"),
        (b"\xff\xfe\x00", "JSON is malformed"),
        (b'{"order_id":1}\x00', "trailing characters"),
        (b'{"order_id":NaN}', "JSON is malformed"),
        (b'{"order_id":1,"note":"\\ud800"}', "JSON is malformed|truncated"),
        (b"null", "Expected `object`, got `null`"),
        (b"[1]", "Expected `object`, got `array`"),
        (b"{}", "missing required field `order_id`"),
        (b'{"order_id":"seven"}', "order_id: Expected `int`, got `str`"),
        (b'{"order_id":7,"note":null}', "note: Expected `str`, got `null`"),
        (b'{"order_id":7,"lines":[1,{}]}', r"lines\[1\]: Expected `int`, got `object`"),
        (b"[" * 100_000, ""),
        (b'{"lines":' + b"[" * 100_000, ""),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_the_cause_names_the_field_and_why(payload: bytes, why: str) -> None:
    """What an operator reads beside a quarantined job (A048)."""
    with pytest.raises(UnroutableJob, match=f"^payload of job 'send': .*({why})") as caught:
        registry.route("send", payload)
    assert caught.value.facts == {"wire_name": "send"}


@given(st.binary(max_size=60))
def test_no_payload_raises_anything_else(payload: bytes) -> None:
    """Whatever the bytes, they are routed, or refused with a cause (A048)."""
    with contextlib.suppress(UnroutableJob):
        job_type, decoded = registry.route("send", payload)
        assert job_type.wire_name == "send"
        assert isinstance(decoded["order_id"], int)


def test_a_field_that_the_handler_no_longer_has_is_passed_over() -> None:
    """A job of an older deployment still runs when a parameter has gone (A048)."""
    job_type, decoded = registry.route("send", b'{"order_id":1,"gone":[1,2,{}]}')
    assert decoded == {"order_id": 1}
    assert job_type.invoke is not None
    assert job_type.invoke(decoded, None) == (1, "", None)  # type: ignore[arg-type]


def test_an_unknown_wire_name_has_a_cause_of_its_own() -> None:
    """It quotes the name, so that a forged one cannot break a line."""
    with pytest.raises(UnroutableJob) as caught:
        registry.route("no\nsuch", b"{}")
    assert str(caught.value) == "no handler is registered for wire name 'no\\nsuch'"
    assert caught.value.facts == {"wire_name": "no\nsuch"}


@dataclass
class Charged:
    """A payload with a rule of its own."""

    amount: int
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.amount == 13:
            raise ValueError("13 is unlucky")
        if self.amount == 14:
            raise ValidationError("14 is not in the catalogue")
        if self.amount == 15:
            raise KeyError("price")


def test_a_payload_class_without_handler_is_unroutable() -> None:
    """Declared is not enough to run."""
    job("charged")(Charged)
    with pytest.raises(UnroutableJob, match="no handler is registered for wire name 'charged'"):
        registry.route("charged", b'{"amount":1}')


class Handler:
    """Handles nothing in particular."""

    def handle(self, job: Any, ctx: Any) -> Any:
        """Give the payload back."""
        return job


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b'{"amount":"x"}', "amount: Expected `int`, got `str`"),
        (b'{"amount":1,"notes":["a",2]}', r"notes\[1\]: Expected `str`, got `int`"),
        (b'{"notes":[]}', "missing required field `amount`"),
        (b'{"amount":13}', "13 is unlucky"),
        (b'{"amount":14}', "14 is not in the catalogue"),
        (b'{"amount":15}', "price"),
    ],
)
def test_the_class_form_says_the_same(payload: bytes, why: str) -> None:
    """Also where the payload class itself refuses a value, with whatever exception."""
    handles(job("charged")(Charged))(Handler)
    with pytest.raises(UnroutableJob, match=why):
        registry.route("charged", payload)


def test_a_codec_that_cannot_be_made_is_a_cause_too(declared: Registry) -> None:
    """A wrong annotation quarantines the job; the worker does not stop for it."""

    def handler(x):
        return x

    handler.__annotations__["x"] = "Nowhere"
    job("broken")(handler)
    with pytest.raises(UnroutableJob, match="annotation cannot be resolved"):
        declared.route("broken", b'{"x":1}')
