"""From a result to what is written."""

from __future__ import annotations

from uuid import UUID

import pytest

from backwave_django.core.limits import Limits
from backwave_django.core.outcomes import (
    Cancelled,
    Failed,
    Released,
    Result,
    Succeeded,
    Unroutable,
)
from backwave_django.core.settlement import (
    Settlement,
    cancel_cause,
    parent_cause,
    settlement_of,
)
from backwave_django.core.states import JobState, Move, moved
from backwave_django.core.text import TERMINAL_CAUSE_MAX

from .stories import NOW, seconds

LIMITS = Limits(max_failure_detail_bytes=40)
LATER = NOW + seconds(9)

CASES: list[tuple[Result, Settlement]] = [
    (Succeeded(b"out"), Settlement(Move.SUCCEED, JobState.SUCCEEDED, output=b"out")),
    (Succeeded(), Settlement(Move.SUCCEED, JobState.SUCCEEDED)),
    (
        Failed("boom", "trace", retry_at=LATER),
        Settlement(Move.RETRY, JobState.SCHEDULED, LATER, detail="trace", yields_to_cancel=True),
    ),
    (
        Failed("boom", "trace"),
        Settlement(Move.DEAD_LETTER, JobState.DEAD_LETTERED, cause="boom", detail="trace"),
    ),
    (Failed(""), Settlement(Move.DEAD_LETTER, JobState.DEAD_LETTERED, cause="failed")),
    (
        Cancelled("by hand"),
        Settlement(Move.CANCEL, JobState.CANCELLED, cause="by hand", yields_to_cancel=True),
    ),
    (
        Cancelled(""),
        Settlement(Move.CANCEL, JobState.CANCELLED, cause="cancelled", yields_to_cancel=True),
    ),
    (Unroutable("who?"), Settlement(Move.QUARANTINE, JobState.QUARANTINED, cause="who?")),
    (Unroutable(""), Settlement(Move.QUARANTINE, JobState.QUARANTINED, cause="unroutable")),
    (
        Released(started=True),
        Settlement(Move.HAND_BACK, JobState.SCHEDULED, NOW, yields_to_cancel=True),
    ),
    (
        Released(started=False),
        Settlement(
            Move.HAND_BACK, JobState.SCHEDULED, NOW, gives_attempt_back=True, yields_to_cancel=True
        ),
    ),
]


@pytest.mark.parametrize(("result", "settlement"), CASES)
def test_each_result_writes_just_this(result: Result, settlement: Settlement) -> None:
    """Every result has one reading, the same for all stores."""
    assert settlement_of(result, LIMITS, NOW) == settlement


@pytest.mark.parametrize(("result", "settlement"), CASES)
def test_each_settlement_is_a_legal_move_and_keeps_the_shape_of_a_job(
    result: Result, settlement: Settlement
) -> None:
    """State and move agree; due time while scheduled, cause while ended otherwise than well."""
    written = settlement_of(result, LIMITS, NOW)
    assert moved(JobState.LEASED, written.move) is written.state
    assert (written.due_time is not None) == (written.state is JobState.SCHEDULED)
    ended_badly = written.state.is_terminal and written.state is not JobState.SUCCEEDED
    assert (written.cause is not None) == ended_badly


def test_a_success_and_a_last_failure_stand_against_a_request_to_cancel() -> None:
    """What has ended for good is not turned into a cancellation (ruling 9)."""
    assert not settlement_of(Succeeded(), LIMITS, NOW).yields_to_cancel
    assert not settlement_of(Failed("boom"), LIMITS, NOW).yields_to_cancel
    assert not settlement_of(Unroutable("who?"), LIMITS, NOW).yields_to_cancel


def test_long_texts_are_made_storable() -> None:
    """A cause is cut by code points, a detail by bytes, and NUL is written visibly."""
    written = settlement_of(Failed("é\x00" * 5_000, "é\x00" * 5_000), LIMITS, NOW)
    assert written.cause is not None
    assert len(written.cause) == TERMINAL_CAUSE_MAX
    assert written.cause.startswith("é\\x00é")
    assert written.detail is not None
    assert len(written.detail.encode()) <= 40
    assert "\x00" not in written.detail


def test_the_causes_of_cancellations_name_who_or_what() -> None:
    """An operator, nobody in particular, or a parent."""
    assert cancel_cause("ada") == "cancelled by ada"
    assert cancel_cause(None) == "cancelled on request"
    assert parent_cause(UUID(int=5), JobState.DEAD_LETTERED) == (
        "parent 00000000-0000-0000-0000-000000000005 ended as Dead-Lettered"
    )
