"""What the driver makes of results and of the store's answers to them."""

from __future__ import annotations

from typing import Any

from backwave_django.core.attempts import HOLD
from backwave_django.core.commands import Exchange
from backwave_django.core.outcomes import Failed, Succeeded
from backwave_django.core.retry import RetryPolicy
from backwave_django.core.states import JobState

from .stories import BUSY, NOW, STALE, TOO_LARGE, Story, ended, job, jobs, seconds

TWO = RetryPolicy(max_attempts=2, backoff=lambda attempt: 30)
BOOM = Failed("boom", "trace")


def running(*claimed: object, **options: Any) -> Story:
    """Tell of a pump that runs these jobs."""
    story = Story(retry_policy=TWO, **options)
    story.exchanged(*claimed)  # type: ignore[arg-type]
    return story


def test_a_failure_is_retried_and_announced_as_scheduled() -> None:
    """The driver decides when; the store says what came of it."""
    story = running(job(1))
    story.executed(ended(job(1), BOOM), after=2)
    retry = Failed("boom", "trace", retry_at=NOW + seconds(32))
    assert story.results == [retry]
    story.exchanged()
    assert [(told.result, told.state) for told in story.announced] == [(retry, JobState.SCHEDULED)]


def test_the_last_failure_is_a_dead_letter() -> None:
    """At the ceiling nothing is tried again."""
    story = running(job(1, attempt=2, claim=2))
    story.executed(ended(job(1, attempt=2, claim=2), BOOM))
    assert story.results == [BOOM]
    story.exchanged()
    assert story.announced[0].state is JobState.DEAD_LETTERED


def test_a_wait_that_the_handler_asked_for_wins_over_the_policy() -> None:
    """``RetryAfter`` chooses the instant, but not a further attempt."""
    story = running(job(1), job(2, attempt=2))
    last = job(2, attempt=2)
    story.executed(ended(job(1), BOOM, retry_after=7), ended(last, BOOM, retry_after=7))
    assert story.results == [Failed("boom", "trace", retry_at=NOW + seconds(7)), BOOM]


def test_a_handler_that_gave_up_is_a_dead_letter_at_once() -> None:
    """``GiveUp`` ends the job whatever the policy would allow."""
    story = running(job(1))
    story.executed(ended(job(1), BOOM, final=True))
    assert story.results == [BOOM]


def test_each_job_type_has_its_own_policy() -> None:
    """The policy is looked up by wire name, anew for each failure."""
    asked: list[str] = []

    def policy_for(wire_name: str) -> RetryPolicy:
        asked.append(wire_name)
        return RetryPolicy(max_attempts=1)

    story = Story(policy_for=policy_for)
    claimed = job(1)._replace(wire_name="fragile")
    story.exchanged(claimed)
    story.executed(ended(claimed, BOOM))
    assert story.results == [BOOM]
    assert asked == ["fragile"]


def test_a_broken_backoff_does_not_end_the_pump() -> None:
    """The default wait takes its place."""
    story = Story(retry_policy=RetryPolicy(backoff=lambda attempt: 1 / 0))
    story.exchanged(job(1))
    story.executed(ended(job(1), BOOM))
    assert story.results == [Failed("boom", "trace", retry_at=NOW + seconds(2))]


def test_an_attempt_that_ends_twice_counts_once() -> None:
    """The first end is the one that is reported."""
    story = running(job(1))
    story.executed(ended(job(1)), ended(job(1), BOOM))
    assert story.results == [Succeeded()]
    assert story.executed(ended(job(1), BOOM)) == []


# -- displaced ------------------------------------------------------------------


def test_a_stale_outcome_is_announced_as_displaced() -> None:
    """The lease had gone to another; nothing was recorded, and the slot is free."""
    story = running(job(1))
    story.executed(job(1))
    story.exchanged(reports={job(1): STALE})
    assert [(told.job, told.state) for told in story.announced] == [(job(1), None)]
    assert story.driver.capacity == 4


def test_a_job_that_was_displaced_may_come_back_in_the_same_exchange() -> None:
    """The store swept it and gives it anew: a new attempt under a new lease."""
    story = running(job(1))
    story.executed(job(1))
    again = job(1, attempt=2, claim=2)
    story.exchanged(again, reports={job(1): STALE})
    assert story.started == [again]
    assert story.driver.capacity == 3


# -- busy -----------------------------------------------------------------------


def test_a_busy_outcome_is_held_and_tried_again() -> None:
    """Someone's open transaction holds the row: wait a little, then report anew."""
    story = running(job(1), poll_interval=60)
    story.executed(job(1))
    story.exchanged(reports={job(1): BUSY})
    assert (story.announced, story.in_flight) == ([], None)
    assert story.driver.capacity == 3
    assert story.driver.wake_at() == NOW + HOLD
    story.wake()
    assert story.results == [Succeeded()]
    assert story.wanted == 4
    story.exchanged()
    assert story.announced[0].state is JobState.SUCCEEDED


def test_a_busy_outcome_does_not_hold_up_the_others() -> None:
    """What ends meanwhile is reported at once."""
    story = running(*jobs(2))
    story.executed(job(1))
    story.exchanged(reports={job(1): BUSY})
    story.executed(job(2), after=0.1)
    assert [outcome.lease for outcome in story.exchange.outcomes] == [job(2).lease]
    assert story.wanted == 3


def test_a_busy_outcome_is_tried_for_as_long_as_it_takes() -> None:
    """Every quarter of a second, and its lease is renewed all the while."""
    story = running(job(1), poll_interval=600)
    story.executed(job(1))
    tries = heartbeats = 0
    while story.now < NOW + seconds(180):
        if isinstance(story.in_flight, Exchange):
            tries += bool(story.exchange.outcomes)
            story.exchanged(reports={job(1): BUSY})
        elif story.in_flight is not None:
            heartbeats += 1
            story.renewed()
        else:
            story.wake()
    assert heartbeats >= 8
    assert tries > 700
    assert story.driver.capacity == 3


# -- output too large -----------------------------------------------------------


def test_an_output_over_the_limit_is_reported_as_a_failure_next() -> None:
    """Nothing was changed and the lease is kept, so the attempt can still fail."""
    story = running(job(1))
    story.executed(ended(job(1), Succeeded(b"x" * 200)))
    story.exchanged(reports={job(1): TOO_LARGE})
    assert story.announced == []
    cause = "output of 200 bytes is over the limit of 100 bytes"
    assert story.results == [Failed(cause, cause, retry_at=NOW + seconds(30))]
    story.exchanged()
    assert story.announced[0].state is JobState.SCHEDULED


def test_an_output_over_the_limit_keeps_its_slot() -> None:
    """The exchange after it claims no more than is free."""
    story = running(*jobs(4))
    story.executed(job(1))
    story.exchanged(reports={job(1): TOO_LARGE})
    assert story.driver.capacity == 0
    assert story.wanted == 1
