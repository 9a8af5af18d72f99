"""When the driver polls, wakes and sweeps."""

from __future__ import annotations

from typing import Any

from backwave_django.core.commands import Exchange, Sweep, SweepKind
from backwave_django.core.driver import SWEEP_BATCH

from .stories import NOW, Story, job, jobs, seconds


def idle(**options: Any) -> Story:
    """Tell of a pump whose first claim found nothing."""
    story = Story(**options)
    story.exchanged()
    return story


# -- hints ----------------------------------------------------------------------


def test_a_hint_polls_at_once() -> None:
    """Something may have been enqueued: the idle pump looks."""
    assert isinstance(idle().hint(after=0.3)[0], Exchange)


def test_a_burst_of_hints_is_one_poll() -> None:
    """Hints that come while their poll is in flight add at most one more."""
    story = idle()
    story.hint(after=0.3)
    for _ in range(50):
        assert story.hint() == []
    story.exchanged(after=0.001)
    if story.in_flight is not None:
        story.exchanged(after=0.001)
    assert story.in_flight is None


def test_a_hint_in_the_middle_of_a_claim_arms_the_next_poll() -> None:
    """The claim may have looked before the commit that the hint tells of."""
    story = idle()
    story.hint(after=0.3)
    story.hint(after=0.001)
    assert isinstance(story.exchanged(after=0.001)[-1], Exchange)


def test_a_hint_in_the_middle_of_a_sweep_is_kept() -> None:
    """The poll comes as soon as the sweep is answered."""
    story = Story(maintenance_interval=5)
    story.exchanged()
    while not isinstance(story.in_flight, Sweep):
        if story.in_flight is not None:
            story.exchanged()
        story.wake()
    story.hint()
    story.maintained()
    story.maintained()
    assert isinstance(story.in_flight, Exchange)


def test_a_hint_for_a_full_pool_is_kept_for_the_first_free_slot() -> None:
    """It neither spins nor is lost: the slot's own exchange claims."""
    story = Story()
    story.exchanged(*jobs(4))
    for _ in range(10):
        assert story.hint(after=0.01) == []
    story.executed(job(1))
    assert story.wanted == 1


def test_a_hint_on_an_idle_backed_off_pump_costs_one_claim() -> None:
    """The delay goes on from where it was: the floor is not reset."""
    story = idle(max_poll_interval=60)
    for _ in range(4):
        story.wake()
        story.exchanged()
    story.hint(after=3)
    story.exchanged()
    assert story.driver.wake_at() == story.now + seconds(32)


# -- the idle back-off ----------------------------------------------------------


def waits(story: Story, count: int) -> list[float]:
    """Let ``count`` polls in a row find nothing; give the waits before each."""
    found = []
    for _ in range(count):
        before = story.now
        story.wake()
        found.append((story.now - before).total_seconds())
        story.exchanged()
    return found


def test_an_idle_pump_polls_at_its_interval() -> None:
    """Without a ceiling the delay is fixed."""
    assert waits(idle(poll_interval=2), 5) == [2, 2, 2, 2, 2]


def test_an_idle_pump_backs_off_up_to_the_ceiling() -> None:
    """Each idle poll doubles the next delay."""
    assert waits(idle(max_poll_interval=10), 6) == [1, 2, 4, 8, 10, 10]


def test_work_snaps_the_delay_back() -> None:
    """A claim that returned work is followed by polls at the floor."""
    story = idle(max_poll_interval=60)
    waits(story, 5)
    story.wake()
    story.exchanged(job(1))
    assert story.driver.wake_at() == story.now + seconds(1)


def test_held_back_work_snaps_the_delay_back() -> None:
    """Due work that a limit holds back is looked for at the floor."""
    story = idle(max_poll_interval=60)
    waits(story, 5)
    story.wake()
    story.exchanged(next_due=story.now)
    assert story.driver.wake_at() == story.now + seconds(1)


def test_the_pump_sleeps_until_the_next_due_job() -> None:
    """Advice of the store, between the floor and the ceiling."""
    story = Story(max_poll_interval=60)
    story.exchanged(next_due=NOW + seconds(42))
    assert story.driver.wake_at() == NOW + seconds(42)


def test_a_full_claim_polls_again_at_once() -> None:
    """Where all that was asked for came there is likely more; the pool is the bound."""
    story = Story(pool_size=6, max_claim_batch=3)
    story.exchanged(*jobs(3))
    assert story.wanted == 3


def test_a_pool_that_was_full_polls_as_soon_as_a_slot_frees() -> None:
    """Back-pressure does not count as idleness."""
    story = Story(max_poll_interval=60)
    story.exchanged(*jobs(4))
    story.executed(job(1), after=10)
    story.exchanged()
    assert story.driver.wake_at() == story.now + seconds(1)


# -- sweeps ---------------------------------------------------------------------


def test_sweeps_come_at_the_maintenance_interval() -> None:
    """Both sweeps, then nothing of it for an interval."""
    story = Story(maintenance_interval=5, poll_interval=60)
    story.exchanged()
    assert story.driver.wake_at() == NOW + seconds(5)
    assert story.wake() == [Sweep(SweepKind.LAPSED_LEASES, SWEEP_BATCH)]
    assert story.maintained() == [Sweep(SweepKind.WAITING_JOBS, SWEEP_BATCH)]
    assert story.maintained() == []
    assert story.driver.wake_at() == NOW + seconds(10)


def test_a_full_sweep_is_followed_by_another_of_its_kind() -> None:
    """What one bounded sweep left is not left for an interval; own work comes between."""
    story = Story(begin=False)
    story.tick()
    story.maintained(SWEEP_BATCH)
    assert isinstance(story.in_flight, Exchange)
    story.exchanged()
    assert story.commands == [Sweep(SweepKind.LAPSED_LEASES, SWEEP_BATCH)]
    assert story.maintained(SWEEP_BATCH - 1) == [Sweep(SweepKind.WAITING_JOBS, SWEEP_BATCH)]


def test_a_sweep_that_moved_jobs_is_followed_by_a_poll() -> None:
    """What was set free may be due now."""
    story = Story(maintenance_interval=5, poll_interval=60)
    story.exchanged()
    story.wake()
    story.maintained(1)
    story.maintained()
    assert isinstance(story.in_flight, Exchange)


def test_outcomes_do_not_wait_for_a_long_run_of_sweeps() -> None:
    """A finished job is reported between two full sweeps, not after the last of many."""
    story = Story(maintenance_interval=5)
    story.exchanged(*jobs(4))
    while not isinstance(story.in_flight, Sweep):
        story.wake()
    story.executed(job(1))
    for _ in range(10):
        if isinstance(story.in_flight, Exchange):
            break
        story.maintained(SWEEP_BATCH)
    assert isinstance(story.in_flight, Exchange)
    assert len(story.exchange.outcomes) == 1


def test_a_heartbeat_does_not_wait_for_a_long_run_of_sweeps() -> None:
    """Leases come first whatever else is due."""
    story = Story(maintenance_interval=5)
    story.exchanged(job(1))
    story.tick(after=30)
    story.renewed()
    assert isinstance(story.in_flight, Sweep)
    story.pass_time(25)
    story.maintained(SWEEP_BATCH)
    story.renewed()


# -- wake_at --------------------------------------------------------------------


def test_nothing_is_due_by_time_while_a_command_is_in_flight() -> None:
    """The answer is the next event, whenever it comes."""
    assert Story().driver.wake_at() is None


def test_wake_at_is_the_earliest_of_all_that_is_due() -> None:
    """Poll, sweep or heartbeat, whichever comes first."""
    story = Story(poll_interval=30, maintenance_interval=25, lease_duration=60)
    story.exchanged(job(1))
    assert story.driver.wake_at() == NOW + seconds(20)
    story.wake()
    story.renewed()
    assert story.driver.wake_at() == NOW + seconds(25)
    story.wake()
    story.maintained()
    story.maintained()
    assert story.driver.wake_at() == NOW + seconds(30)


def test_no_heartbeat_wakes_a_pump_that_holds_nothing() -> None:
    """Without leases there is nothing to renew."""
    story = idle(poll_interval=300)
    assert story.driver.wake_at() == NOW + seconds(300)
