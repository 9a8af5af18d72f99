"""What a running worker lives through: lost connections, a stopped process, a full pool."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest
from django.db import connections

from backwave_django import enqueue_many, monitor
from backwave_django.core.states import JobState
from backwave_django.models import Job, Transition
from tests.support.processes import spawn_worker, wait_until
from tests.testapp import jobs

from .conftest import effects

ENDINGS = tuple(state.value for state in JobState if state.is_terminal)


def worker(alias: str, *options: str, **group: Any) -> Any:
    """Start a real worker, with quick cadences unless told otherwise."""
    quick = {"poll_interval": 0.05, "maintenance_interval": 0.2, "lease_duration": 1.5, **group}
    environment = {"BACKWAVE_TEST_GROUP": json.dumps(quick)}
    return spawn_worker(*options, alias=alias, environment=environment)


def sessions(alias: str) -> list[tuple[int, str]]:
    """Give process id and state of every other session on the test database."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT pid, state FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return cursor.fetchall()


def all_ended(alias: str) -> bool:
    """Whether no job is live."""
    return not Job.objects.using(alias).exclude(state__in=ENDINGS).exists()


@pytest.mark.parametrize("alias", ["postgres"], ids=["postgres"], indirect=True)
def test_a_worker_outlives_the_death_of_all_its_connections(alias: str) -> None:
    """Every session is terminated: at most the jobs then at work fail, and are retried (A054)."""
    with worker(alias) as process:
        enqueue_many([jobs.effect.payload(key=f"before {i}") for i in range(20)])
        wait_until(lambda: all_ended(alias), message="the first jobs end")
        enqueue_many([jobs.effect.payload(key=f"during {i}") for i in range(200)])
        with connections[alias].cursor() as cursor:
            for pid, _ in sessions(alias):
                cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        enqueue_many([jobs.effect.payload(key=f"after {i}") for i in range(20)])
        wait_until(lambda: all_ended(alias), 60, "all jobs end")
        process.terminate()
        assert process.wait() == 0
    assert set(Job.objects.using(alias).values_list("state", flat=True)) == {JobState.SUCCEEDED}


@pytest.mark.parametrize("alias", ["postgres"], ids=["postgres"], indirect=True)
def test_a_long_job_holds_no_transaction_open(alias: str) -> None:
    """While a handler is at work no session of the worker is idle in a transaction (A066)."""
    with worker(alias) as process:
        jobs.stuck_once.enqueue(key="long")
        wait_until(lambda: effects(alias, "long"), message="the job runs")
        assert len(sessions(alias)) >= 1
        assert [state for _, state in sessions(alias) if state.startswith("idle in")] == []
        process.kill_group()


def test_a_worker_that_was_stopped_changes_nothing_when_it_goes_on(alias: str) -> None:
    """A process held for longer than its lease comes back, and its outcome is refused (A011)."""
    job_id = jobs.stuck_until_told.enqueue(key="held")
    with worker(alias) as first:
        wait_until(lambda: effects(alias, "held") == ["1"], message="the job runs")
        first.send(signal.SIGSTOP)
        with worker(alias) as second:
            wait_until(lambda: effects(alias, "held")[1:] == ["2"], 60, "the other runs it")
            wait_until(lambda: all_ended(alias), message="the other ends it")
            first.send(signal.SIGCONT)
            first.wait_for_output("job displaced")
            for process in (first, second):
                process.terminate()
                assert process.wait() == 0
    job = monitor.get_job(job_id)
    assert job is not None
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 2)
    endings = Transition.objects.using(alias).filter(state__in=ENDINGS)
    assert endings.count() == 1


def test_lapsed_leases_are_swept_though_every_slot_is_busy(alias: str) -> None:
    """The sweep needs no slot, and no knowledge of the job or its queue (A006, A009, A010)."""
    lost = jobs.effect.using(queue="nobody-serves-this").enqueue(key="lost")
    Job.objects.using(alias).filter(job_id=lost).update(
        state=JobState.LEASED,
        attempt=1,
        claim_number=1,
        ordinal=2,
        lease_owner="a worker that died",
        lease_expires_at=Job.objects.using(alias).get(job_id=lost).enqueued_at,
        wire_name="unknown.here",
    )
    busy = jobs.stuck_once.enqueue(key="busy")
    with worker(alias, pool_size=1) as process:
        wait_until(lambda: effects(alias, "busy"), message="the only slot is busy")

        def swept() -> bool:
            job = monitor.get_job(lost)
            return job is not None and job.state is JobState.SCHEDULED

        wait_until(swept, message="the lost job is swept")
        assert monitor.get_job(busy).state is JobState.LEASED  # type: ignore[union-attr]
        assert "lease expired" in process.output()
        process.kill_group()
    job = monitor.get_job(lost)
    assert job is not None
    assert (job.attempt, job.queue) == (1, "nobody-serves-this")


def test_a_signal_to_the_whole_process_group_is_one_stop(alias: str) -> None:
    """A service manager tells every process of the group; the jobs in hand still end (A087)."""
    jobs.waits_for_cancel.enqueue(key="long")
    with worker(alias, "--grace", "0.2") as process:
        wait_until(lambda: effects(alias, "long"), message="the job runs")
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait() == 0
    assert Job.objects.using(alias).get().state == JobState.SCHEDULED
