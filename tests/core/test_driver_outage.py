"""The store is away: what is kept, how long the driver waits, what it does first after."""

from __future__ import annotations

import pytest

from backwave_django.core.commands import Exchange, Heartbeat, Sweep
from backwave_django.core.events import Renewal
from backwave_django.core.outcomes import Succeeded

from .stories import NOW, Story, job, jobs, seconds


def failing(story: Story, count: int) -> list[float]:
    """Let ``count`` tries in a row fail; give the waits after each in seconds."""
    waits = []
    for _ in range(count):
        assert story.store_failed() == []
        wake_at = story.driver.wake_at()
        assert wake_at is not None
        waits.append((wake_at - story.now).total_seconds())
        story.wake()
    return waits


def test_tries_are_spaced_out_from_half_a_second_to_fifteen() -> None:
    """0.5, 1, 2 … 15: a database that comes back is not met by a stampede."""
    assert failing(Story(lease_duration=120), 8) == [0.5, 1, 2, 4, 8, 15, 15, 15]


def test_no_wait_is_longer_than_half_a_heartbeat_interval() -> None:
    """Every pump has found the store again before any of them sweeps."""
    assert failing(Story(lease_duration=12), 5) == [0.5, 1, 2, 2, 2]


def test_an_answer_starts_the_waits_anew() -> None:
    """The next outage begins with the shortest wait."""
    story = Story()
    failing(story, 5)
    story.exchanged()
    story.wake()
    assert failing(story, 2) == [0.5, 1]


def test_nothing_goes_to_the_store_before_the_wait_is_over() -> None:
    """Neither hints nor ends of attempts nor time itself shorten it."""
    story = Story()
    story.exchanged(*jobs(2))
    story.executed(job(1))
    story.store_failed()
    assert story.executed(job(2), after=0.1) == []
    assert story.hint(after=0.1) == []
    assert story.tick(after=0.1) == []
    assert story.driver.wake_at() == story.now + seconds(0.2)


def test_the_driver_says_that_it_is_degraded() -> None:
    """From the first failure to the first answer."""
    story = Story()
    assert not story.driver.is_degraded
    story.store_failed()
    assert story.driver.is_degraded
    story.wake()
    assert story.driver.is_degraded
    story.exchanged()
    assert not story.driver.is_degraded


def test_outcomes_are_kept_and_reported_in_order_after_the_outage() -> None:
    """What the failed report carried goes first, then what finished meanwhile."""
    story = Story(lease_duration=600)
    story.exchanged(*jobs(3))
    story.executed(job(2))
    story.store_failed()
    story.executed(job(1), job(3))
    story.wake()
    if isinstance(story.in_flight, Heartbeat):
        story.renewed()
    assert [outcome.lease for outcome in story.exchange.outcomes] == [
        job(2).lease, job(1).lease, job(3).lease,
    ]  # fmt: skip
    assert story.results == [Succeeded()] * 3


def test_a_failed_claim_is_asked_again_and_costs_no_turn() -> None:
    """The same shares go out once more."""
    story = Story()
    first = story.exchange
    story.store_failed()
    story.wake()
    assert story.exchange == first


def test_capacity_counts_what_an_outage_holds_back() -> None:
    """Unwritten outcomes keep their slots however long the store is away."""
    story = Story()
    story.exchanged(*jobs(4))
    story.executed(*jobs(4))
    failing(story, 6)
    assert story.driver.capacity == 0


# -- recovery -------------------------------------------------------------------


def test_after_an_outage_the_leases_are_renewed_before_anything_waits() -> None:
    """Others may sweep soon: the heartbeat is the probe, or follows it at once."""
    story = Story()
    story.exchanged(*jobs(2))
    story.executed(job(1))
    story.store_failed()
    story.wake()
    if isinstance(story.in_flight, Exchange):
        story.exchanged(after=0.01)
    assert isinstance(story.in_flight, Heartbeat)
    assert job(2).lease in story.in_flight.leases


def test_a_heartbeat_that_falls_due_in_an_outage_is_the_first_command_after_it() -> None:
    """The probe is the heartbeat itself, and it is not sent twice."""
    story = Story()
    story.exchanged(*jobs(2))
    story.executed(job(1), after=19)
    failing(story, 3)
    assert isinstance(story.in_flight, Heartbeat)
    story.renewed()
    assert isinstance(story.in_flight, Exchange)


def sweep_instant(story: Story) -> float:
    """Go on until the next sweep; give the seconds from now."""
    began = story.now
    for _ in range(500):
        if isinstance(story.in_flight, Sweep):
            return (story.now - began).total_seconds()
        if isinstance(story.in_flight, Exchange):
            story.exchanged()
        elif isinstance(story.in_flight, Heartbeat):
            story.renewed()
        else:
            story.wake()
    raise AssertionError("no sweep came")


def test_no_sweep_comes_before_one_heartbeat_interval_after_recovery() -> None:
    """Leases that lapsed meanwhile may be those of workers that are about to renew them."""
    story = Story(maintenance_interval=5)
    story.exchanged(job(1))
    story.wake()
    failing(story, 5)
    while story.driver.is_degraded:
        story.renewed() if isinstance(story.in_flight, Heartbeat) else story.exchanged()
    assert sweep_instant(story) >= 20


def test_a_sweep_that_fails_is_not_the_first_command_after_an_outage() -> None:
    """Also a pump that holds nothing must not sweep what others are about to renew."""
    story = Story(maintenance_interval=5, poll_interval=60)
    story.exchanged()
    while not isinstance(story.in_flight, Sweep):
        story.exchanged() if story.in_flight else story.wake()
    story.store_failed()
    for _ in range(10):
        story.wake()
        assert story.in_flight is not None, "nobody asks whether the store is back"
        assert not isinstance(story.in_flight, Sweep), "the probe of a dead store is a sweep"
        story.store_failed()


@pytest.mark.parametrize("count", [0, 1, 100])
def test_a_pump_survives_an_outage_that_began_with_a_sweep(count: int) -> None:
    """The first command of a pump is a sweep; a database that is late must not end it."""
    story = Story(begin=False, maintenance_interval=5)
    story.tick()
    failing(story, 3)
    if isinstance(story.in_flight, Sweep):
        story.maintained(count)
    for _ in range(10):
        if isinstance(story.in_flight, Sweep):
            story.maintained()
        elif story.in_flight is not None:
            story.exchanged()
        else:
            story.wake()
    assert not story.driver.is_degraded


def test_sweeps_that_an_outage_cut_short_begin_again() -> None:
    """Both kinds are done after it."""
    story = Story(begin=False)
    story.tick()
    story.maintained()
    story.store_failed()
    story.wake()
    kinds = []
    for _ in range(200):
        if isinstance(story.in_flight, Sweep):
            kinds.append(story.in_flight.kind.name)
            story.maintained()
        elif story.in_flight is not None:
            story.exchanged()
        elif len(kinds) >= 2:
            break
        else:
            story.wake()
    assert kinds[-2:] == ["LAPSED_LEASES", "WAITING_JOBS"]


def test_an_outage_in_a_heartbeat_is_followed_by_the_heartbeat() -> None:
    """Leases come first, again."""
    story = Story()
    story.exchanged(job(1))
    while not isinstance(story.in_flight, Heartbeat):
        story.exchanged() if story.in_flight else story.wake()
    story.store_failed()
    story.wake()
    assert isinstance(story.in_flight, Heartbeat)
    assert story.now > NOW + seconds(20)


def test_a_full_pump_whose_every_lease_is_lost_gets_through_an_outage() -> None:
    """With nothing to renew, report or claim it must neither spin nor fall asleep for good."""
    story = Story(pool_size=1, lease_duration=6, maintenance_interval=5)
    story.exchanged(job(1))
    for _ in range(20):
        if isinstance(story.in_flight, Sweep):
            break
        story.renewed({job(1): Renewal.LOST}) if story.in_flight else story.wake()
    story.store_failed()
    for _ in range(5):
        story.wake()
        wake_at = story.driver.wake_at()
        if story.in_flight is not None:
            story.store_failed()
        else:
            assert wake_at is not None
            assert wake_at > story.now, "it asks to be woken at an instant that has passed"


def test_the_first_sweep_leaves_others_the_time_to_renew() -> None:
    """What was before the start may have been an outage: the sweep comes a heartbeat later."""
    story = Story(begin=False, sweeps_at_once=False, lease_duration=60, maintenance_interval=5)
    story.tick()
    assert isinstance(story.in_flight, Exchange)
    story.exchanged()
    story.pass_time(19)
    story.tick()
    assert not isinstance(story.in_flight, Sweep)
    story.exchanged()
    story.tick(after=1)
    assert isinstance(story.in_flight, Sweep)


def test_a_host_that_slept_does_not_sweep_as_its_first_act() -> None:
    """A gap longer than a lease: others on the same host slept too, and renew first."""
    story = Story(lease_duration=60, maintenance_interval=5)
    story.exchanged()
    story.tick(after=600)
    assert isinstance(story.in_flight, Exchange)
    story.exchanged()
    story.tick(after=19)
    assert not isinstance(story.in_flight, Sweep)
