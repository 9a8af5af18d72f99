"""The whole way: a transaction, a real worker process, a recorded outcome."""

from __future__ import annotations

import json
import signal
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from backwave_django import enqueue_many, monitor
from backwave_django.core.states import JobState
from backwave_django.models import Job, Transition
from tests.support.processes import spawn_worker, wait_until
from tests.testapp import jobs

from .conftest import effects


def worker(alias: str, *options: str, **group: Any) -> Any:
    """Start a real worker, with quick cadences unless told otherwise."""
    quick = {"poll_interval": 0.05, "maintenance_interval": 0.2, **group}
    return spawn_worker(
        *options, alias=alias, environment={"BACKWAVE_TEST_GROUP": json.dumps(quick)}
    )


def states(alias: str) -> Counter[str]:
    """Count the jobs by state."""
    return Counter(
        JobState(s).name for s in Job.objects.using(alias).values_list("state", flat=True)
    )


def has_ended(job_id: UUID) -> bool:
    """Whether a job is in a terminal state."""
    job = monitor.get_job(job_id)
    return job is not None and job.state.is_terminal


def test_a_committed_job_runs_and_a_rolled_back_one_never_was(alias: str) -> None:
    """What commits runs; what rolls back, whole or to a savepoint, never existed (A038)."""
    with transaction.atomic(using=alias):
        committed = jobs.effect.enqueue(key="committed")
        with pytest.raises(RuntimeError), transaction.atomic(using=alias):
            jobs.effect.enqueue(key="savepoint")
            raise RuntimeError
    with pytest.raises(RuntimeError), transaction.atomic(using=alias):
        jobs.effect.enqueue(key="rolled back")
        raise RuntimeError

    with worker(alias, "--burst") as process:
        assert process.wait() == 0

    assert effects(alias, "committed")[0].startswith("1 ")
    assert monitor.get_job(committed).state is JobState.SUCCEEDED  # type: ignore[union-attr]
    assert effects(alias, "savepoint") == effects(alias, "rolled back") == []
    assert Job.objects.using(alias).count() == 1


def test_a_worker_that_waits_runs_what_is_enqueued_meanwhile(alias: str) -> None:
    """A job that a handler enqueues in its own transaction runs too, on the same worker."""
    with worker(alias) as process:
        process.wait_for_output("worker started")
        jobs.enqueues.enqueue(key="k")
        wait_until(lambda: effects(alias, "k-child"), message="the child's effect")
        process.terminate()
        assert process.wait() == 0
    assert states(alias) == {"SUCCEEDED": 2}


def test_two_workers_share_two_thousand_jobs(alias: str) -> None:
    """No job is claimed by both, and SQLite never says that it is locked (A074)."""
    for start in range(0, 2_000, 500):
        enqueue_many([jobs.effect.payload(key=f"{start + i}") for i in range(500)])
    with worker(alias, "--burst") as one, worker(alias, "--burst") as two:
        assert (one.wait(120), two.wait(120)) == (0, 0)
        output = one.output() + two.output()

    assert states(alias) == {"SUCCEEDED": 2_000}
    assert "locked" not in output
    assert "WARNING" not in output
    claims = Transition.objects.using(alias).filter(state=JobState.LEASED)
    assert claims.count() == 2_000
    assert claims.values("worker_id").distinct().count() == 2
    assert Counter(Counter(_keys(alias)).values()) == {1: 2_000}


def _keys(alias: str) -> list[str]:
    from tests.testapp.models import Effect

    return list(Effect.objects.using(alias).values_list("key", flat=True))


def test_a_job_that_kills_its_worker_is_dead_lettered(alias: str) -> None:
    """Attempts are counted at the claim, so a job that kills every worker ends (A007)."""
    job_id = jobs.kills_worker.enqueue()
    for _ in range(2):
        with worker(alias, lease_duration=1, heartbeat_interval=0.3) as process:
            wait_until(lambda: not process.is_running, 60, "the worker dies of the job")
            assert process.wait() == -signal.SIGKILL
    with worker(alias) as process:
        wait_until(lambda: has_ended(job_id), 60, "the lease of the last attempt is swept")
        process.terminate()
        assert process.wait() == 0
    job = monitor.get_job(job_id)
    assert job is not None
    assert (job.state, job.attempt) == (JobState.DEAD_LETTERED, 2)
    assert "worker lost" in (job.terminal_cause or "")


def test_sigterm_lets_a_running_job_finish_under_its_lease(alias: str) -> None:
    """The pump goes on renewing while it drains, and no other worker gets the job (A003)."""
    job_id = jobs.waits_for_cancel.enqueue(key="long")
    with worker(alias, lease_duration=0.9) as process:
        wait_until(lambda: effects(alias, "long"), message="the job runs")
        process.terminate()
        process.wait_for_output("pump stopping")
        with worker(alias, lease_duration=0.9) as other:
            other.wait_for_output("worker started")
            first = Job.objects.using(alias).get(job_id=job_id).lease_expires_at
            wait_until(
                lambda: Job.objects.using(alias).get(job_id=job_id).lease_expires_at > first,
                message="the lease is renewed during the drain",
            )
            # A request to cancel reaches it during the drain as well (A089).
            from backwave_django import operations

            operations.cancel(job_id, actor="me")
            assert process.wait() == 0
            other.terminate()
            assert other.wait() == 0
    job = monitor.get_job(job_id)
    assert job is not None
    assert (job.state, job.attempt) == (JobState.CANCELLED, 1)
    assert job.terminal_cause == "cancelled by me"
    assert job.claim_number == 1


def test_what_outlives_the_grace_is_handed_back(alias: str) -> None:
    """After the grace the job is there for others at once, its attempt used (A088)."""
    job_id = jobs.stuck_once.enqueue(key="stuck")
    with worker(alias, "--grace", "0.2") as process:
        wait_until(lambda: effects(alias, "stuck"), message="the job runs")
        process.terminate()
        assert process.wait() == 0
    job = monitor.get_job(job_id)
    assert job is not None
    assert (job.state, job.attempt) == (JobState.SCHEDULED, 1)
    with worker(alias, "--burst") as process:
        assert process.wait() == 0
    assert effects(alias, "stuck") == ["1", "2"]
    assert states(alias) == {"SUCCEEDED": 1}


def test_a_second_signal_ends_the_worker_at_once(alias: str) -> None:
    """Two signals, and a job that never ends is handed back without any grace (A087)."""
    job_id = jobs.stuck_once.enqueue(key="stuck")
    with worker(alias, "--grace", "600") as process:
        wait_until(lambda: effects(alias, "stuck"), message="the job runs")
        process.send(signal.SIGINT)
        process.wait_for_output("pump stopping")
        process.send(signal.SIGINT)
        assert process.wait(20) == 0
    job = monitor.get_job(job_id)
    assert job is not None
    assert job.state is JobState.SCHEDULED
