"""Instants as microseconds, to the last one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from backwave_django.core.instants import EPOCH, from_micros, to_micros


@pytest.mark.parametrize(
    ("instant", "micros"),
    [
        (EPOCH, 0),
        (EPOCH + timedelta(microseconds=1), 1),
        (EPOCH - timedelta(microseconds=1), -1),
        (datetime(2026, 1, 1, tzinfo=UTC), 1_767_225_600_000_000),
        (datetime(1, 1, 1, tzinfo=UTC), -62_135_596_800_000_000),
        (datetime.max.replace(tzinfo=UTC), 253_402_300_799_999_999),
    ],
)
def test_an_instant_is_its_microseconds_and_back(instant: datetime, micros: int) -> None:
    """From the first year of the calendar to the last, nothing is lost."""
    assert to_micros(instant) == micros
    assert from_micros(micros) == instant
    assert from_micros(micros).tzinfo is UTC


def test_the_zone_of_an_instant_does_not_matter() -> None:
    """The same instant in another zone is the same number; the hour that comes twice too."""
    berlin = ZoneInfo("Europe/Berlin")
    first = datetime(2026, 10, 25, 2, 30, tzinfo=berlin)
    assert to_micros(first.replace(fold=1)) - to_micros(first) == 3_600_000_000
    assert to_micros(first) == to_micros(first.astimezone(UTC))


def test_a_naive_instant_is_refused() -> None:
    """Without a zone there is no instant."""
    with pytest.raises(TypeError):
        to_micros(datetime(2026, 1, 1))  # noqa: DTZ001
