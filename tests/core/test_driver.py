"""The driver from poll to announcement, its capacity, and what it refuses."""

from __future__ import annotations

import random
from typing import get_args

import pytest

from backwave_django.core.commands import (
    Announce,
    ClaimRequest,
    Exchange,
    Execute,
    StoreCommand,
    Sweep,
    SweepKind,
)
from backwave_django.core.dispatch import QueueShare, Weighted
from backwave_django.core.errors import InvariantViolated
from backwave_django.core.events import (
    Claimed,
    Event,
    Exchanged,
    Executed,
    GraceEnded,
    Hinted,
    Maintained,
    Renewed,
    Reported,
    StopRequested,
    StoreFailed,
    Ticked,
    Verdict,
)
from backwave_django.core.outcomes import Cancelled, Outcome, Succeeded, Unroutable
from backwave_django.core.states import JobState

from .stories import NOW, STALE, Story, ended, job, jobs, seconds


def test_the_way_of_a_job() -> None:
    """Poll, claim, execute, executed, exchange, announced; then nothing until the next poll."""
    story = Story()
    request = ClaimRequest((QueueShare("default", 4),), 4, seconds(60))
    assert story.in_flight == Exchange((), request)
    one = job(1)
    assert story.exchanged(one) == [Execute((one,))]
    assert story.executed(one, after=0.2) == [Exchange((Outcome(one.lease, Succeeded()),), request)]
    assert story.exchanged() == [Announce(one, Succeeded(), JobState.SUCCEEDED)]
    assert story.driver.wake_at() == story.now + seconds(1)
    assert isinstance(story.wake()[0], Exchange)


def test_a_pump_sweeps_first_when_it_starts() -> None:
    """Lapsed leases, then waiting jobs, then the first claim: all at the instant of the start."""
    story = Story(begin=False)
    assert story.driver.wake_at() == NOW
    assert story.tick() == [Sweep(SweepKind.LAPSED_LEASES, 100)]
    assert story.maintained() == [Sweep(SweepKind.WAITING_JOBS, 100)]
    assert isinstance(story.maintained()[0], Exchange)


def test_what_an_outcome_released_is_claimed_in_the_same_exchange() -> None:
    """A report claims at once, though no poll is due (back-pressure of the seed)."""
    story = Story()
    story.exchanged(job(1))
    story.executed(job(1), after=0.01)
    assert story.wanted == 4
    story.exchanged(job(2))
    assert story.started == [job(2)]


def test_every_result_is_announced_with_the_state_that_was_recorded() -> None:
    """What the store made of an outcome is what is told, also where a cancel turned it."""
    story = Story()
    one, two, three = jobs(3)
    story.exchanged(one, two, three)
    story.executed(ended(one, Unroutable("who?")), ended(two, Cancelled("asked")), ended(three))
    turned = Reported(Verdict.APPLIED, JobState.CANCELLED)
    story.exchanged(reports={three: turned})
    assert [(told.job, told.state) for told in story.announced] == [
        (one, JobState.QUARANTINED), (two, JobState.CANCELLED), (three, JobState.CANCELLED),
    ]  # fmt: skip


def test_outcomes_that_wait_are_reported_together() -> None:
    """While a command is in flight outcomes gather; then all go at once, oldest first."""
    story = Story()
    story.exchanged(*jobs(3))
    story.executed(job(2))
    assert story.executed(job(3)) == []
    assert story.executed(job(1)) == []
    story.exchanged()
    assert [outcome.lease for outcome in story.exchange.outcomes] == [job(3).lease, job(1).lease]


def test_a_report_is_no_larger_than_the_outcome_batch() -> None:
    """What does not fit goes with the next one, at once."""
    story = Story(max_outcome_batch=2)
    story.exchanged(*jobs(4))
    story.executed(*jobs(4))
    assert len(story.exchange.outcomes) == 2
    story.exchanged()
    assert len(story.exchange.outcomes) == 2


# -- capacity -------------------------------------------------------------------


def test_capacity_is_the_pool_less_what_runs_and_what_is_unwritten() -> None:
    """A finished job keeps its slot until its outcome is recorded."""
    story = Story()
    assert (story.driver.capacity, story.driver.has_work) == (4, False)
    story.exchanged(*jobs(3))
    assert (story.driver.capacity, story.driver.has_work) == (1, True)
    story.executed(job(1))
    assert story.driver.capacity == 1
    story.exchanged()
    assert story.driver.capacity == 2


def test_a_claim_asks_for_what_is_free_and_what_its_own_report_frees() -> None:
    """One runs, one is reported: room for three of four."""
    story = Story()
    story.exchanged(*jobs(2))
    story.executed(job(1))
    assert story.wanted == 3


def test_outcomes_beyond_the_batch_still_count_against_the_pool() -> None:
    """Unwritten outcomes that this report does not carry free no slot."""
    story = Story(max_outcome_batch=1)
    story.exchanged(*jobs(4))
    story.executed(*jobs(4))
    assert story.wanted == 1


def test_a_claim_is_no_larger_than_the_claim_batch() -> None:
    """With a large pool the next claim follows at once."""
    story = Story(pool_size=10, max_claim_batch=3)
    assert story.wanted == 3
    story.exchanged(*jobs(3))
    assert story.wanted == 3
    story.exchanged(*jobs(2, first=4))
    assert story.in_flight is None


def test_a_full_pool_does_not_poll() -> None:
    """Back-pressure: no claim until a slot frees, though polls fall due."""
    story = Story()
    story.exchanged(*jobs(4))
    assert story.tick(after=5) == []
    assert story.hint(after=5) == []
    assert story.driver.wake_at() == NOW + seconds(20)
    story.executed(job(1))
    assert story.wanted == 1


def test_a_store_that_gives_too_much_is_stopped() -> None:
    """More than was asked for is a broken contract, told loudly."""
    story = Story()
    with pytest.raises(InvariantViolated, match="no more than was asked for"):
        story.exchanged(*jobs(5))


def test_busy_queues_share_the_pump_by_weight() -> None:
    """The driver tells its policy what each claim brought."""
    story = Story(policy=Weighted({"a": 3, "b": 1}), pool_size=1)
    taken = []
    for number in range(8):
        claim = story.exchange.claim
        assert claim is not None
        queue = next(share.queue for share in claim.shares if share.most)
        taken.append(queue)
        story.exchanged(job(number, queue=queue))
        story.executed(job(number, queue=queue))
    assert "".join(taken) == "aabaaaba"


def test_capacity_holds_over_a_long_run() -> None:
    """In flight plus unwritten never exceed the pool, whatever ends when."""
    story = Story(pool_size=5, max_claim_batch=3, max_outcome_batch=2)
    dice = random.Random(7)
    running: list[int] = []
    number = 0
    for _ in range(500):
        if isinstance(story.in_flight, Exchange):
            fresh = list(range(number, number + dice.randint(0, story.wanted)))
            number += len(fresh)
            story.exchanged(*[job(n) for n in fresh])
            running += fresh
        elif story.in_flight is not None:
            story.renewed()
        elif running:
            dice.shuffle(running)
            story.executed(*[job(running.pop()) for _ in range(dice.randint(1, len(running)))])
        else:
            story.wake()
        assert 0 <= story.driver.capacity <= 5
        assert len(running) <= 5 - story.driver.capacity
    assert number > 300


# -- what it refuses ------------------------------------------------------------


def test_time_going_back_is_refused_and_changes_nothing() -> None:
    """The driver's time never goes back; the same instant twice is fine."""
    story = Story()
    story.exchanged(after=5)
    with pytest.raises(InvariantViolated, match="time went back"):
        story.driver.step(Ticked(story.now - seconds(0.000001)))
    assert story.driver.step(Ticked(story.now)) == []


@pytest.mark.parametrize(
    "answer",
    [Exchanged(NOW, (), None), Renewed(NOW, (), ()), Maintained(NOW, 0), StoreFailed(NOW)],
    ids=lambda answer: type(answer).__name__,
)
def test_an_answer_without_its_command_is_refused(answer: Event) -> None:
    """Each answer belongs to one command, and each command has one answer."""
    story = Story()
    story.exchanged()
    with pytest.raises(InvariantViolated, match="answer"):
        story.driver.step(answer)


def test_an_answer_to_another_command_is_refused() -> None:
    """A claim in flight is not answered by a heartbeat."""
    with pytest.raises(InvariantViolated, match="an answer without its command"):
        Story().driver.step(Renewed(NOW, (), ()))


def test_a_report_that_answers_too_few_outcomes_is_refused() -> None:
    """The driver must not guess which outcome an answer is for."""
    story = Story()
    story.exchanged(job(1))
    story.executed(job(1))
    with pytest.raises(InvariantViolated, match="a report answers each outcome"):
        story.driver.step(Exchanged(NOW, (), Claimed()))


def test_every_event_has_a_handler() -> None:
    """No event of the union is unknown to the driver; those that answer are told elsewhere."""
    events: list[Event] = [
        Ticked(NOW), Hinted(NOW), StopRequested(NOW), GraceEnded(NOW, frozenset()),
    ]  # fmt: skip
    for event in events:
        Story().driver.step(event)
    told_elsewhere = {Executed, Exchanged, Renewed, Maintained, StoreFailed}
    assert set(get_args(Event)) == {*map(type, events), *told_elsewhere}


def test_an_exchange_whose_claim_was_not_answered_is_followed_by_a_poll() -> None:
    """A store that reports but does not claim costs a wait, not the pump."""
    story = Story()
    story.exchanged(job(1))
    story.executed(job(1))
    story.in_flight = None
    commands = story.tell(Exchanged(story.now, [STALE], None))
    assert commands == [Announce(job(1), Succeeded(), None)]
    assert story.driver.wake_at() == NOW + seconds(1)


def test_idleness_is_known_by_the_newest_empty_claim() -> None:
    """Idle since the claim that found nothing was asked for; not while anything is in hand."""
    story = Story()
    assert story.driver.idle_since is None
    story.exchanged(after=0.1)
    assert story.driver.idle_since == NOW
    story.wake()
    story.exchanged(job(1))
    assert story.driver.idle_since is None
    story.executed(job(1))
    assert story.driver.idle_since is None
    asked_at = story.now
    story.exchanged(after=0.1)
    assert story.driver.idle_since == asked_at


def test_a_pump_with_jobs_at_work_is_not_idle() -> None:
    """An empty claim says nothing while something is in hand."""
    story = Story()
    story.exchanged(job(1))
    story.wake()
    story.exchanged()
    assert story.driver.idle_since is None


def test_the_store_commands_are_three() -> None:
    """The commands that take a round trip, and so exclude each other."""
    assert {kind.__name__ for kind in get_args(StoreCommand)} == {"Exchange", "Heartbeat", "Sweep"}
