"""``kill -9`` at the worst points: every outcome is recorded once, and nothing is lost."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from backwave_django import enqueue_many
from backwave_django.core.states import JobState
from backwave_django.models import Job, Transition
from tests.support.processes import Child, spawn_python, spawn_worker, wait_until
from tests.testapp import jobs

from .conftest import effects

COUNT = 25
GROUP = {
    "BACKWAVE_TEST_GROUP": json.dumps(
        {
            "pool_size": COUNT,
            "poll_interval": 0.05,
            "maintenance_interval": 0.2,
            "lease_duration": 3,
        }
    )
}
ENDINGS = tuple(state.value for state in JobState if state.is_terminal)


def leased(alias: str) -> int:
    """Count the leased jobs."""
    return Job.objects.using(alias).filter(state=JobState.LEASED).count()


def recover(alias: str) -> None:
    """Let a second worker run until everything has ended."""
    with spawn_worker(alias=alias, environment=GROUP) as second:
        live = Job.objects.using(alias).exclude(state__in=ENDINGS)
        second.wait_for_output("worker started")
        wait_until(lambda: not live.exists(), 60, "every job ends")
        second.terminate()
        assert second.wait() == 0


def check_books(alias: str) -> Counter[int]:
    """Check that each job has one recorded outcome; give how often jobs were claimed."""
    assert set(Job.objects.using(alias).values_list("state", flat=True)) == {JobState.SUCCEEDED}
    log = Transition.objects.using(alias)
    ended = Counter(log.filter(state__in=ENDINGS).values_list("job_id", flat=True))
    assert len(ended) == COUNT
    assert set(ended.values()) == {1}
    per_claim = Counter(log.exclude(state=JobState.LEASED).values_list("job_id", "claim_number"))
    assert set(per_claim.values()) == {1}
    return Counter(Job.objects.using(alias).values_list("claim_number", flat=True))


def stopped_worker(alias: str, point: str, file: Path) -> Child:
    """Start a worker that stands still at one point of its report."""
    options = ("backwave_worker", "--group", "default")[1:]
    environment = {**GROUP, "BACKWAVE_TEST_OUTCOMES": str(COUNT)}
    return spawn_python(
        "-m", "tests.support.faulty_worker", point, str(file), *options,
        alias=alias, environment=environment,
    )  # fmt: skip


def test_killed_in_the_handler(alias: str) -> None:
    """The handlers were at work: each job runs again, and ends once."""
    enqueue_many([jobs.stuck_once.payload(key=str(i)) for i in range(COUNT)])
    with spawn_worker(alias=alias, environment=GROUP) as first:
        wait_until(lambda: len(effects(alias)) == COUNT, 60, "every handler is at work")
        assert leased(alias) >= 20
        first.kill()
    recover(alias)
    assert check_books(alias) == {2: COUNT}
    assert Counter(effects(alias)) == {"1": COUNT, "2": COUNT}


@pytest.mark.parametrize("point", ["before", "during"])
def test_killed_before_the_outcomes_are_committed(alias: str, point: str, tmp_path: Path) -> None:
    """The handlers had ended, nobody knew: each job runs again, and ends once."""
    enqueue_many([jobs.effect.payload(key=str(i)) for i in range(COUNT)])
    here = tmp_path / "here"
    with stopped_worker(alias, point, here) as first:
        wait_until(here.exists, 60, f"the worker stands still {point} its report")
        assert leased(alias) >= 20
        first.kill()
    recover(alias)
    assert check_books(alias) == {2: COUNT}
    assert len(effects(alias)) == 2 * COUNT


def test_killed_after_the_commit(alias: str, tmp_path: Path) -> None:
    """The outcomes were recorded, though the pump never learned it: nothing runs again."""
    enqueue_many([jobs.effect.payload(key=str(i)) for i in range(COUNT)])
    here = tmp_path / "here"
    with stopped_worker(alias, "after", here) as first:
        wait_until(here.exists, 60, "the worker stands still after its report")
        first.kill()
    recover(alias)
    assert check_books(alias) == {1: COUNT}
    assert len(effects(alias)) == COUNT
