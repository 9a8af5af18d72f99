"""What a reader is told of ticks that minted nothing."""

from __future__ import annotations

import pytest

from backwave_django.core.schedules import CatchUp, SkipReason


def test_each_reason_says_what_happened_to_the_tick() -> None:
    assert {reason: reason.label for reason in SkipReason} == {
        SkipReason.MISSED: "missed: nothing was there to mint it",
        SkipReason.OVERLAP: "overlap: an earlier job of the schedule had not ended",
    }


@pytest.mark.parametrize(
    ("member", "number"),
    [
        (CatchUp.SKIP, 1),
        (CatchUp.COALESCE, 2),
        (SkipReason.MISSED, 1),
        (SkipReason.OVERLAP, 2),
    ],
)
def test_the_stored_numbers_never_change(member: int, number: int) -> None:
    assert member == number
