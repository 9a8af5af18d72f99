"""The attempts of one pump: running, finished, held, reporting; each in one place."""

from __future__ import annotations

import pytest

from backwave_django.core.attempts import HOLD, Attempts
from backwave_django.core.errors import InvariantViolated
from backwave_django.core.events import Reported, Verdict
from backwave_django.core.outcomes import Failed, Outcome, Released, Succeeded
from backwave_django.core.retry import LONGEST_DELAY, RetryPolicy
from backwave_django.core.states import JobState
from backwave_django.core.tags import Tag

from .stories import BUSY, NOW, STALE, TOO_LARGE, ended, job, jobs, seconds

THREE = RetryPolicy(max_attempts=3, backoff=lambda attempt: 10 * attempt)
DONE = Reported(Verdict.APPLIED, JobState.SUCCEEDED)


def attempts() -> Attempts:
    """Make a place for attempts of at most three tries each."""
    return Attempts(lambda wire_name: THREE, 100)


def result_of(attempt: int = 1, **extra: object) -> object:
    """Let one attempt fail; give the result that is reported."""
    held = attempts()
    claimed = job(1, attempt=attempt)
    held.begin([claimed])
    held.finish(ended(claimed, Failed("boom", "trace"), **extra), NOW)
    return held.take_outcomes(1)[0].result


def test_a_job_holds_its_slot_and_lease_until_it_is_settled() -> None:
    """Running, finished, reporting, held: all count, all are renewed."""
    held = attempts()
    first, second = jobs(2)
    held.begin([first, second])
    both = (first.lease, second.lease)
    assert (held.count, held.leases()) == (2, both)
    held.finish(ended(first), NOW)
    assert (held.count, held.leases()) == (2, both)
    (outcome,) = held.take_outcomes(5)
    assert (held.count, held.leases()) == (2, both)
    assert held.settle(outcome, BUSY, NOW) is None
    assert (held.count, held.leases()) == (2, both)
    held.release_held(NOW + HOLD)
    (outcome,) = held.take_outcomes(5)
    assert held.settle(outcome, DONE, NOW) == first
    assert (held.count, held.leases()) == (1, (second.lease,))


def test_outcomes_are_taken_once_and_oldest_first() -> None:
    """A report takes what finished first, and leaves the rest for the next."""
    held = attempts()
    one, two, three = jobs(3)
    held.begin([one, two, three])
    for claimed in (two, three, one):
        held.finish(ended(claimed), NOW)
    assert [outcome.lease for outcome in held.take_outcomes(2)] == [two.lease, three.lease]
    assert [outcome.lease for outcome in held.take_outcomes(2)] == [one.lease]
    assert held.take_outcomes(2) == ()


def test_outcomes_whose_report_failed_come_first_again() -> None:
    """What was put back stands before what finished since."""
    held = attempts()
    one, two, three = jobs(3)
    held.begin([one, two, three])
    held.finish(ended(two), NOW)
    held.finish(ended(one), NOW)
    taken = held.take_outcomes(2)
    held.finish(ended(three), NOW)
    held.put_back(taken)
    again = held.take_outcomes(5)
    assert [outcome.lease for outcome in again] == [two.lease, one.lease, three.lease]


def test_one_job_cannot_be_run_twice_in_one_claim() -> None:
    """A store that gives one job twice breaks its contract."""
    with pytest.raises(InvariantViolated, match="no lease is given twice"):
        attempts().begin([job(1), job(1)])


@pytest.mark.parametrize("verdict", [DONE, STALE])
def test_an_answer_that_settles_frees_the_slot(verdict: Reported) -> None:
    """Applied or displaced, the attempt is over."""
    held = attempts()
    held.begin([job(1)])
    assert held.settle(Outcome(job(1).lease, Succeeded()), verdict, NOW) == job(1)
    assert held.count == 0


def test_held_outcomes_wait_before_they_are_tried_again() -> None:
    """A locked row is not hammered; outcomes that came later wait with the first."""
    held = attempts()
    one, two = jobs(2)
    held.begin([one, two])
    held.settle(Outcome(one.lease, Succeeded()), BUSY, NOW)
    held.settle(Outcome(two.lease, Succeeded()), BUSY, NOW + seconds(0.1))
    assert held.held_until == NOW + HOLD
    held.release_held(NOW + HOLD - seconds(0.001))
    assert held.take_outcomes(5) == ()
    held.release_held(NOW + HOLD)
    assert [outcome.lease for outcome in held.take_outcomes(5)] == [one.lease, two.lease]
    assert held.held_until is None
    later = NOW + seconds(9)
    held.settle(Outcome(two.lease, Succeeded()), BUSY, later)
    held.settle(Outcome(one.lease, Succeeded()), DONE, later)
    held.release_held(later + HOLD)
    assert [outcome.lease for outcome in held.take_outcomes(5)] == [two.lease]


def test_a_failure_is_retried_at_the_backoff_of_its_policy() -> None:
    """The wait counts from the end of the attempt."""
    assert result_of(2) == Failed("boom", "trace", retry_at=NOW + seconds(20))


def test_a_failure_at_the_ceiling_is_the_last() -> None:
    """No further attempt, even where the handler asked for a wait."""
    assert result_of(3) == Failed("boom", "trace", retry_at=None)
    assert result_of(3, retry_after=5) == Failed("boom", "trace", retry_at=None)


def test_a_handler_that_gives_up_gets_no_further_attempt() -> None:
    """``final`` wins over what the policy would allow."""
    assert result_of(1, final=True) == Failed("boom", "trace", retry_at=None)


def test_a_handler_may_choose_its_wait() -> None:
    """``retry_after`` takes the place of the back-off; zero means at once."""
    assert result_of(1, retry_after=4.5) == Failed("boom", "trace", NOW + seconds(4.5))
    assert result_of(1, retry_after=0) == Failed("boom", "trace", NOW)
    far = result_of(1, retry_after=1e12)
    assert far == Failed("boom", "trace", NOW + LONGEST_DELAY)


@pytest.mark.parametrize("wait", [1e300, float("inf"), 86_400 * 1e9])
def test_a_wait_beyond_the_calendar_is_the_longest_one(wait: float) -> None:
    """``RetryAfter`` takes any finite number; none of them may end the pump."""
    assert result_of(1, retry_after=wait) == Failed("boom", "trace", NOW + LONGEST_DELAY)


def test_an_output_over_the_limit_becomes_a_failure_that_keeps_its_tags() -> None:
    """The failure says both sizes, and is retried as any other."""
    held = attempts()
    claimed = job(1)
    held.begin([claimed])
    held.finish(ended(claimed, Succeeded(b"x" * 101, (Tag(None, "vip"),))), NOW)
    (outcome,) = held.take_outcomes(1)
    assert held.settle(outcome, TOO_LARGE, NOW) is None
    (refused,) = held.take_outcomes(1)
    cause = "output of 101 bytes is over the limit of 100 bytes"
    assert refused.result == Failed(cause, cause, NOW + seconds(10), (Tag(None, "vip"),))
    assert refused.lease == claimed.lease


def test_an_output_over_the_limit_at_the_ceiling_is_the_end() -> None:
    """At its last attempt the job is dead-lettered with that cause."""
    held = attempts()
    claimed = job(1, attempt=3)
    held.begin([claimed])
    held.settle(Outcome(claimed.lease, Succeeded(b"x" * 101)), TOO_LARGE, NOW)
    assert held.take_outcomes(1)[0].result.retry_at is None  # type: ignore[union-attr]


def test_a_lost_lease_is_news_once_and_only_to_a_running_handler() -> None:
    """What has finished is reported all the same: the fence refuses it."""
    held = attempts()
    running, finished = jobs(2)
    held.begin([running, finished])
    held.finish(ended(finished), NOW)
    assert held.lose(running.lease)
    assert not held.lose(running.lease)
    assert not held.lose(finished.lease)
    assert not held.lose(job(9).lease)
    assert held.finish(ended(running), NOW) == running
    assert [outcome.lease for outcome in held.take_outcomes(5)] == [finished.lease]
    assert held.count == 1


def test_a_request_to_cancel_is_news_once_and_only_to_a_running_handler() -> None:
    """One interrupt is enough; a job that comes again can be asked again."""
    held = attempts()
    claimed = job(1)
    held.begin([claimed])
    assert held.request_cancel(claimed.lease)
    assert not held.request_cancel(claimed.lease)
    held.finish(ended(claimed), NOW)
    assert not held.request_cancel(claimed.lease)
    (outcome,) = held.take_outcomes(1)
    held.settle(outcome, DONE, NOW)
    held.begin([job(1, attempt=2, claim=2)])
    assert held.request_cancel(job(1, attempt=2, claim=2).lease)


def test_what_is_handed_back_is_released_or_ended_at_its_ceiling() -> None:
    """Unstarted jobs give their attempt back; a started one at the ceiling has used its last."""
    held = attempts()
    started, unstarted = job(1), job(2)
    last, last_unstarted = job(3, attempt=3), job(4, attempt=3)
    held.begin([started, unstarted, last, last_unstarted])
    held.hand_back(frozenset({unstarted.lease, last_unstarted.lease}))
    results = {outcome.lease: outcome.result for outcome in held.take_outcomes(9)}
    cause = "worker stopped during attempt 3 of 3, the last one"
    assert results == {
        started.lease: Released(started=True),
        unstarted.lease: Released(started=False),
        last.lease: Failed(cause, cause, retry_at=None),
        last_unstarted.lease: Released(started=False),
    }
    assert held.finish(ended(started), NOW) is None
    assert held.take_outcomes(9) == ()
