"""Stopping: no claims, heartbeats go on, what is left is handed back, then the end."""

from __future__ import annotations

from typing import Any

from backwave_django.core.commands import Announce, Exchange, Finish, Heartbeat, Sweep
from backwave_django.core.outcomes import Failed, Outcome, Released, Succeeded
from backwave_django.core.retry import RetryPolicy
from backwave_django.core.states import JobState

from .stories import BUSY, NOW, Story, ended, job, jobs, seconds


def running(*numbers: int, **options: Any) -> Story:
    """Tell of a pump that runs these jobs."""
    story = Story(**options)
    story.exchanged(*[job(number) for number in numbers])
    return story


def test_an_idle_pump_ends_at_once() -> None:
    """With nothing in hand there is nothing to wait for."""
    story = running()
    assert story.stop() == [Finish()]
    assert story.driver.wake_at() is None


def test_a_command_in_flight_is_waited_for() -> None:
    """Its answer may bring what has to be dealt with."""
    story = Story()
    assert story.stop() == []
    assert story.exchanged() == [Finish()]


def test_a_stopping_pump_claims_nothing_more() -> None:
    """Reports go on without claims; polls and hints and sweeps do not."""
    story = running(1, 2, maintenance_interval=5)
    story.stop()
    assert story.hint(after=2) == []
    assert story.tick(after=10) == []
    story.executed(job(1))
    assert story.exchange.claim is None
    assert len(story.exchange.outcomes) == 1
    story.exchanged()
    assert story.in_flight is None


def test_heartbeats_go_on_until_the_last_outcome_is_written() -> None:
    """A job that takes its time in the grace keeps its lease."""
    story = running(1)
    story.stop(after=1)
    for _ in range(5):
        story.wake()
        assert isinstance(story.in_flight, Heartbeat)
        story.renewed()
    story.executed(job(1))
    assert story.exchanged() == [
        Announce(job(1), Succeeded(), JobState.SUCCEEDED), Finish(),
    ]  # fmt: skip


def test_the_end_is_told_once_and_nothing_follows() -> None:
    """After ``Finish`` no event brings a command."""
    story = running()
    assert story.stop() == [Finish()]
    assert story.stop(after=1) == []
    assert story.tick(after=100) == []
    assert story.hint() == []
    assert story.executed(job(1)) == []
    assert story.grace_ended() == []


def test_jobs_that_arrive_after_the_request_are_dealt_with() -> None:
    """A claim that was in flight may bring jobs: each ends up settled before the end."""
    story = Story()
    story.stop()
    story.exchanged(*jobs(2))
    for _ in range(20):
        if story.finished:
            break
        if isinstance(story.in_flight, Exchange):
            story.exchanged()
        else:
            story.executed(*jobs(2))
    assert story.finished


def test_a_busy_outcome_is_waited_for() -> None:
    """The pump ends when the row is free, not before."""
    story = running(1)
    story.stop()
    story.executed(job(1))
    story.exchanged(reports={job(1): BUSY})
    assert not story.finished
    story.wake()
    story.exchanged()
    assert story.finished


# -- the grace ------------------------------------------------------------------


def test_when_the_grace_ends_the_rest_is_handed_back() -> None:
    """Unstarted jobs give their attempt back, started ones have used it."""
    story = running(1, 2, 3)
    story.stop()
    story.grace_ended([job(2)], after=30)
    while isinstance(story.in_flight, Heartbeat):
        story.renewed()
    results = {outcome.lease: outcome.result for outcome in story.exchange.outcomes}
    assert results == {
        job(1).lease: Released(started=True),
        job(2).lease: Released(started=False),
        job(3).lease: Released(started=True),
    }
    assert story.exchange.claim is None
    story.exchanged()
    assert [told.state for told in story.announced] == [JobState.SCHEDULED] * 3
    assert story.finished


def test_a_started_job_at_its_ceiling_is_a_dead_letter() -> None:
    """As a lapse would do; one that had not begun is not."""
    story = Story(retry_policy=RetryPolicy(max_attempts=2))
    story.exchanged(job(1, attempt=2), job(2, attempt=2))
    story.grace_ended([job(2, attempt=2)])
    results = {outcome.lease.job_id.int: outcome.result for outcome in story.exchange.outcomes}
    assert isinstance(results[1], Failed)
    assert results[1].retry_at is None
    assert "attempt 2 of 2" in results[1].cause
    assert results[2] == Released(started=False)


def test_the_grace_may_end_without_a_request_before() -> None:
    """Stop now: nothing is claimed any more."""
    story = running(1)
    story.grace_ended()
    assert story.exchange.claim is None
    assert story.exchanged()[-1] == Finish()


def test_finished_outcomes_are_reported_as_they_are() -> None:
    """Handing back touches only what still runs."""
    story = running(1, 2)
    story.executed(job(1))
    story.stop()
    story.grace_ended()
    story.exchanged()
    assert story.results == [Released(started=True)]
    story.exchanged()
    assert story.finished


def test_a_handler_that_ends_after_it_was_handed_back_changes_nothing() -> None:
    """Nobody waited for it, and its lease is spoken for."""
    story = running(1)
    story.grace_ended()
    assert story.executed(ended(job(1), Succeeded(b"late"))) == []
    story.exchanged()
    assert [told.result for told in story.announced] == [Released(started=True)]
    assert story.executed(job(1)) == []


def test_jobs_that_arrive_after_the_grace_are_handed_back() -> None:
    """Nobody will run them, and nobody will say so a second time."""
    story = Story()
    story.grace_ended()
    story.exchanged(*jobs(2))
    assert story.started == []
    assert story.results == [Released(started=False)] * 2
    story.exchanged()
    assert story.finished


# -- while the store is away ----------------------------------------------------


def test_a_stop_while_the_store_is_away_keeps_the_outcomes() -> None:
    """They are written when it is back; then the pump ends."""
    story = running(1)
    story.executed(job(1))
    story.store_failed()
    assert story.stop() == []
    story.wake()
    for _ in range(5):
        if story.finished:
            break
        story.renewed() if isinstance(story.in_flight, Heartbeat) else story.exchanged()
    assert story.finished


def test_a_pump_with_nothing_in_hand_ends_though_the_store_is_away() -> None:
    """There is nothing to write, so there is nothing to wait for."""
    story = Story()
    for _ in range(6):
        story.store_failed()
        story.wake()
    story.store_failed()
    assert story.stop() == [Finish()]


def test_a_sweep_in_flight_is_the_last() -> None:
    """A stopping pump begins no other."""
    story = Story(begin=False)
    story.tick()
    assert isinstance(story.in_flight, Sweep)
    story.stop()
    assert story.maintained(100) == [Finish()]
    assert story.now == NOW + seconds(0)


def test_a_stop_gives_back_what_arrives_and_lets_the_rest_run() -> None:
    """A claim that was under way brings a job: it goes back unbegun, the others go on."""
    story = running(1)
    story.hint(after=1)
    story.stop()
    story.exchanged(job(2))
    assert story.exchange.outcomes == (Outcome(job(2).lease, Released(started=False)),)
    story.exchanged()
    assert story.driver.has_work
