"""Values of a subclass that adds nothing to what is stored."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest
from django.db.models import IntegerChoices, TextChoices

from backwave_django.handlers.errors import InvalidPayload

from .conftest import through


class Status(TextChoices):
    """What a model's field is compared with."""

    PAID = "paid"


class Rank(IntegerChoices):
    """The same, by number."""

    HIGH = 3


class Frozen(datetime):
    """What a test clock gives in place of a ``datetime``."""


class Colour(Enum):
    """No text itself."""

    RED = "red"


def test_a_choice_travels_as_the_value_that_it_is() -> None:
    """``order.status = Status.PAID`` gives a member until the row is read again."""
    assert through(str, Status.PAID) == "paid"
    assert type(through(str, Status.PAID)) is str
    assert through(int, Rank.HIGH) == 3
    assert through(Status, Status.PAID) is Status.PAID


def test_the_time_of_a_test_clock_travels() -> None:
    """A subclass of ``datetime`` is the instant that it is."""
    assert through(datetime, Frozen(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_member_that_is_no_text_is_refused_where_it_would_become_one() -> None:
    """Nothing would bring the member back."""
    for hint in (Any, str):
        with pytest.raises(InvalidPayload, match="Colour would not come back as one"):
            through(hint, Colour.RED)
