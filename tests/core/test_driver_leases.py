"""Heartbeats, lost leases, and requests to cancel."""

from __future__ import annotations

from backwave_django.core.commands import Exchange, Heartbeat, Interrupt, InterruptReason
from backwave_django.core.events import Renewal
from backwave_django.core.outcomes import Cancelled, Failed, Succeeded
from backwave_django.core.states import JobState

from .stories import BUSY, NOW, STALE, Story, ended, job, jobs, seconds

LOST = InterruptReason.LEASE_LOST
CANCEL = InterruptReason.CANCEL_REQUESTED


def running(*numbers: int) -> Story:
    """Tell of a pump that runs these jobs and polls for no more."""
    story = Story(poll_interval=3600)
    story.exchanged(*[job(number) for number in numbers])
    return story


def heartbeat(story: Story) -> Heartbeat:
    """Let time go by up to the heartbeat."""
    (command,) = story.wake()
    assert isinstance(command, Heartbeat)
    return command


def test_leases_are_renewed_every_heartbeat_interval() -> None:
    """A third of the lease after the claim, and after each renewal."""
    story = running(1, 2)
    for at in (20, 40, 60):
        assert heartbeat(story) == Heartbeat((job(1).lease, job(2).lease), seconds(60))
        assert story.now == NOW + seconds(at)
        assert story.renewed() == []


def test_a_later_claim_does_not_put_a_heartbeat_off() -> None:
    """Leases that are held keep their cadence; the new ones are renewed along."""
    story = running(1)
    story.hint(after=15)
    story.exchanged(job(2))
    assert heartbeat(story).leases == (job(1).lease, job(2).lease)
    assert story.now == NOW + seconds(20)


def test_a_pump_that_was_idle_starts_its_cadence_with_the_claim() -> None:
    """No heartbeat comes at once for a lease that is new."""
    story = Story(poll_interval=100)
    story.exchanged()
    story.wake()
    story.exchanged(job(1))
    assert story.driver.wake_at() == story.now + seconds(20)


def test_a_heartbeat_comes_before_a_report() -> None:
    """When an answer was late, the leases go first."""
    story = running(1, 2)
    story.executed(job(1))
    story.executed(job(2))
    story.exchanged(after=25)
    assert isinstance(story.in_flight, Heartbeat)
    story.renewed()
    assert isinstance(story.in_flight, Exchange)


def test_finished_but_unreported_jobs_are_renewed_too() -> None:
    """Their leases must live until their outcomes are recorded."""
    story = running(1, 2)
    story.executed(job(1))
    story.exchanged(reports={job(1): BUSY})
    while not isinstance(story.in_flight, Heartbeat):
        if story.in_flight is not None:
            story.exchanged(reports={job(1): BUSY})
        else:
            story.wake()
    assert story.in_flight.leases == (job(1).lease, job(2).lease)


def test_settled_jobs_are_renewed_no_more() -> None:
    """A heartbeat names just what is held."""
    story = running(1, 2)
    story.executed(job(1))
    story.exchanged()
    assert heartbeat(story).leases == (job(2).lease,)


def test_a_locked_row_in_a_heartbeat_changes_nothing() -> None:
    """Nothing is known of that lease; the next heartbeat asks again."""
    story = running(1)
    heartbeat(story)
    assert story.renewed({job(1): Renewal.BUSY}) == []
    assert heartbeat(story).leases == (job(1).lease,)


# -- lost -----------------------------------------------------------------------


def test_a_lost_lease_interrupts_its_handler_once() -> None:
    """The handler is told that its result may not be wanted."""
    story = running(1, 2)
    heartbeat(story)
    story.renewed({job(1): Renewal.LOST})
    assert story.interrupts == [Interrupt(job(1).lease, LOST)]
    heartbeat(story)
    leases = story.in_flight.leases  # type: ignore[union-attr]
    story.renewed({job(1): Renewal.LOST} if job(1).lease in leases else {})
    assert story.interrupts == []


def test_an_attempt_without_its_lease_is_announced_as_displaced_when_it_ends() -> None:
    """There is nothing to report; the slot is free once the handler is done."""
    story = running(1)
    heartbeat(story)
    story.renewed({job(1): Renewal.LOST})
    assert story.driver.capacity == 3
    story.executed(job(1))
    assert [(told.job, told.result, told.state) for told in story.announced] == [
        (job(1), Succeeded(), None)
    ]
    assert story.driver.capacity == 4
    assert story.in_flight is None


def test_an_outcome_whose_lease_was_lost_is_refused_by_the_fence() -> None:
    """It was finished before the loss was known: reported, stale, announced once."""
    story = running(1)
    heartbeat(story)
    assert story.executed(job(1)) == []
    story.renewed({job(1): Renewal.LOST})
    assert story.interrupts == []
    story.exchanged(reports={job(1): STALE})
    assert [(told.job, told.state) for told in story.announced] == [(job(1), None)]


def test_a_job_may_come_back_while_its_lost_attempt_still_runs() -> None:
    """Another node swept it; this one claims it anew. That is no fault of anybody's."""
    story = running(1)
    heartbeat(story)
    story.renewed({job(1): Renewal.LOST})
    story.hint(after=5)
    again = job(1, attempt=2, claim=2)
    story.exchanged(again)
    assert again.lease in heartbeat(story).leases


def test_a_job_may_come_back_while_its_old_outcome_is_held() -> None:
    """The lease lapsed behind a locked row; the job was swept and claimed anew."""
    story = running(1)
    story.executed(job(1))
    story.exchanged(reports={job(1): BUSY})
    story.hint(after=0.1)
    story.exchanged(job(1, attempt=2, claim=2))
    assert story.driver.capacity >= 2


# -- cancel ---------------------------------------------------------------------


def test_a_request_to_cancel_interrupts_once() -> None:
    """Each heartbeat repeats the request; the handler hears of it once."""
    story = running(1)
    heartbeat(story)
    story.renewed({job(1): Renewal.CANCEL_REQUESTED})
    assert story.interrupts == [Interrupt(job(1).lease, CANCEL)]
    heartbeat(story)
    story.renewed({job(1): Renewal.CANCEL_REQUESTED})
    assert story.interrupts == []


def test_a_handler_that_obeys_is_reported_as_cancelled() -> None:
    """What it came to goes to the store as any result."""
    story = running(1)
    heartbeat(story)
    story.renewed({job(1): Renewal.CANCEL_REQUESTED})
    story.executed(ended(job(1), Cancelled("asked")))
    story.exchanged()
    assert story.announced[0].state is JobState.CANCELLED


def test_a_failure_of_a_job_that_is_to_be_cancelled_is_left_to_the_store() -> None:
    """The driver says when it would retry; the request on the row decides."""
    story = running(1)
    heartbeat(story)
    story.renewed({job(1): Renewal.CANCEL_REQUESTED})
    story.executed(ended(job(1), Failed("boom")))
    assert story.results[0].retry_at is not None  # type: ignore[union-attr]


def test_a_finished_job_is_not_interrupted() -> None:
    """There is no handler left to tell."""
    story = running(1)
    heartbeat(story)
    story.executed(job(1))
    story.renewed({job(1): Renewal.CANCEL_REQUESTED})
    assert story.interrupts == []


def test_a_lease_that_is_lost_after_a_request_to_cancel_interrupts_again() -> None:
    """These are two reasons, and the handler may care for the second."""
    story = running(1)
    heartbeat(story)
    story.renewed({job(1): Renewal.CANCEL_REQUESTED})
    heartbeat(story)
    story.renewed({job(1): Renewal.LOST})
    assert story.interrupts == [Interrupt(job(1).lease, LOST)]


def test_interrupts_are_told_for_each_job_apart() -> None:
    """One heartbeat may bring several kinds of news."""
    story = running(1, 2, 3, 4)
    heartbeat(story)
    story.renewed({job(1): Renewal.LOST, job(3): Renewal.CANCEL_REQUESTED, job(4): Renewal.BUSY})
    assert story.interrupts == [
        Interrupt(job(1).lease, LOST), Interrupt(job(3).lease, CANCEL),
    ]  # fmt: skip
    assert len(jobs(4)) == 4
