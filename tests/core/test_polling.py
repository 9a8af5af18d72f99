"""When a pump polls next: floor, idle back-off, advice and hints."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from backwave_django.core.polling import Polling

from .stories import NOW, seconds


def polling(floor: float = 1, ceiling: float = 0) -> Polling:
    """Make the polls of a pump that starts now."""
    return Polling(seconds(floor), seconds(ceiling), NOW)


def claimed(
    poll: Polling,
    now: datetime,
    *,
    found: int = 0,
    wanted: int = 4,
    next_due: datetime | None = None,
) -> timedelta:
    """Let a claim come back; give the wait until the next poll."""
    poll.claimed(now, asked_at=now, found=found, wanted=wanted, next_due=next_due)
    return poll.next_at - now


def waits(poll: Polling, count: int) -> list[float]:
    """Let ``count`` polls in a row find nothing; give the waits after them in seconds."""
    return [claimed(poll, poll.next_at).total_seconds() for _ in range(count)]


def test_the_first_poll_is_due_at_once() -> None:
    """A pump looks for work when it starts."""
    assert polling().is_due(NOW)
    assert not polling().is_due(NOW - seconds(0.000001))


def test_without_a_ceiling_the_delay_is_fixed() -> None:
    """A ceiling of zero, or the floor itself, switches the back-off off."""
    assert waits(polling(), 4) == [1, 1, 1, 1]
    assert waits(polling(2, 2), 3) == [2, 2, 2]


def test_each_idle_poll_doubles_the_next_delay_up_to_the_ceiling() -> None:
    """1, 2, 4 … and never past the ceiling."""
    assert waits(polling(1, 10), 6) == [1, 2, 4, 8, 10, 10]


def test_work_snaps_the_delay_back_to_the_floor() -> None:
    """After a claim with work the pump polls at its floor again."""
    poll = polling(1, 60)
    waits(poll, 5)
    assert claimed(poll, poll.next_at, found=1) == seconds(1)
    assert waits(poll, 3) == [1, 2, 4]


def test_a_full_claim_is_followed_by_another_at_once() -> None:
    """Where all that was asked for came, there is likely more."""
    assert claimed(polling(), NOW, found=4, wanted=4) == seconds(0)
    assert claimed(polling(), NOW, found=3, wanted=4) == seconds(1)


def test_due_work_that_was_held_back_snaps_the_delay_back() -> None:
    """``next_due`` of now means: a limit or a cap held it back; poll at the floor."""
    poll = polling(1, 60)
    waits(poll, 5)
    assert claimed(poll, poll.next_at, next_due=poll.next_at) == seconds(1)
    assert waits(poll, 2) == [1, 2]


@pytest.mark.parametrize(("due_in", "wait"), [(0.2, 1), (1, 1), (7.5, 7.5), (60, 60), (1e9, 60)])
def test_the_pump_sleeps_until_the_next_due_job(due_in: float, wait: float) -> None:
    """Up to the instant that the store names, between the floor and the ceiling."""
    assert claimed(polling(1, 60), NOW, next_due=NOW + seconds(due_in)) == seconds(wait)


def test_without_a_ceiling_the_next_due_job_changes_nothing() -> None:
    """With the back-off off the poll interval is the poll interval."""
    assert claimed(polling(), NOW, next_due=NOW + seconds(30)) == seconds(1)


def test_a_hint_brings_the_next_poll_forward() -> None:
    """A hint makes the poll due now."""
    poll = polling()
    claimed(poll, NOW)
    poll.hint(NOW + seconds(0.3))
    assert poll.next_at == NOW + seconds(0.3)


def test_a_hint_never_puts_a_poll_off() -> None:
    """A poll that is overdue stays so."""
    poll = polling()
    poll.hint(NOW + seconds(5))
    assert poll.next_at == NOW


def test_the_newest_empty_claim_is_known_by_when_it_was_asked() -> None:
    """What a claim did not find was not there when it was asked for."""
    poll = polling()
    assert poll.empty_at is None
    poll.claimed(NOW + seconds(2), asked_at=NOW, found=0, wanted=4, next_due=None)
    assert poll.empty_at == NOW
    claimed(poll, NOW + seconds(3), found=1)
    assert poll.empty_at is None
