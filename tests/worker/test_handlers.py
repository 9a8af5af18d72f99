"""What handlers do to a worker: nothing."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections

from backwave_django import enqueue, monitor, operations
from backwave_django.core.states import JobState
from backwave_django.handlers.registry import registry
from backwave_django.models import JobContent
from backwave_django.storage.orm.store import DjangoStore
from tests.testapp import jobs

from .conftest import effects


def burst() -> None:
    """Run what is due, in this process."""
    call_command("backwave_worker", groups=["default"], burst=True, verbosity=0)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_whatever_a_handler_raises_is_a_failed_attempt(
    alias: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """SystemExit, no text, NUL bytes, ten megabytes: the worker lives (A047, A050)."""
    raising: Any = jobs.raises if kind == "sync" else jobs.araises
    ids = {what: raising.enqueue(what=what) for what in jobs.RAISERS}
    after = jobs.effect.enqueue(key="after")
    with caplog.at_level(logging.ERROR, "backwave_django"):
        burst()
    assert monitor.get_job(after).state is JobState.SUCCEEDED  # type: ignore[union-attr]
    for what, job_id in ids.items():
        job = monitor.get_job(job_id)
        assert job is not None
        assert (what, job.state, job.attempt) == (what, JobState.DEAD_LETTERED, 1)
        assert job.terminal_cause
        assert len(job.terminal_cause) <= 1_024
        detail = monitor.job_history(job_id)[-1].failure_detail
        assert detail is not None
        assert len(detail.encode()) <= 8_192
    assert "\\x00" in (monitor.get_job(ids["NUL"]).terminal_cause or "")  # type: ignore[union-attr]
    assert "str() failed" in (monitor.get_job(ids["BadText"]).terminal_cause or "")  # type: ignore[union-attr]
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == len(ids)
    assert all(record.exc_info for record in errors)


def test_retries_are_warned_of_and_the_last_failure_is_an_error(
    alias: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Four retries at WARNING, then the dead letter at ERROR, each with its traceback."""
    job_id = jobs.fails.enqueue(times=99)
    with caplog.at_level(logging.INFO, "backwave_django"):
        burst()
    job = monitor.get_job(job_id)
    assert job is not None
    assert (job.state, job.attempt) == (JobState.DEAD_LETTERED, 5)
    assert job.terminal_cause == "ValueError: failure number 5"
    about = [r for r in caplog.records if getattr(r, "backwave_job_id", None) == str(job_id)]
    assert [r.levelname for r in about] == ["WARNING"] * 4 + ["ERROR"]
    assert all(r.exc_info and "failure number" in str(r.exc_info[1]) for r in about)
    assert [r.getMessage().split(" wire_name")[0] for r in about][3:] == [
        "job retrying",
        "job dead-lettered",
    ]


def test_a_flaky_job_succeeds_in_the_end(alias: str, store: DjangoStore) -> None:
    """Every transition is in the log, with the detail on the failing ones; tags are kept."""
    job_id = jobs.fails.enqueue(times=2)
    burst()
    log = monitor.job_history(job_id)
    assert [t.state.name for t in log] == [
        "SCHEDULED",
        *["LEASED", "SCHEDULED"] * 2,
        "LEASED",
        "SUCCEEDED",
    ]
    assert [bool(t.failure_detail) for t in log] == [False, False, True, False, True, False, False]
    assert [tag.value for tag in store.job_tags(job_id)] == ["attempt 1", "attempt 2", "attempt 3"]


def test_giving_up_and_asking_for_a_wait(alias: str) -> None:
    """GiveUp dead-letters at once with its reason; RetryAfter waits as long as it says."""
    given_up = jobs.gives_up.enqueue()
    waiting = jobs.retries_after.enqueue(seconds=3600)
    burst()
    job = monitor.get_job(given_up)
    assert job is not None
    assert (job.state, job.attempt, job.terminal_cause) == (
        JobState.DEAD_LETTERED,
        1,
        "GiveUp: there is no such order",
    )
    job = monitor.get_job(waiting)
    assert job is not None
    assert job.state is JobState.SCHEDULED
    failed_at = monitor.job_history(waiting)[-1].at
    assert abs((job.due_time - failed_at).total_seconds() - 3600) < 5


def test_unroutable_jobs_are_quarantined_and_hold_nobody_up(alias: str, store: DjangoStore) -> None:
    """An unknown wire name and a payload that does not decode say which and why (A048, A051)."""
    unknown = jobs.effect.enqueue(key="unknown")
    bad = jobs.effect.enqueue(key="bad")
    broken = jobs.effect.enqueue(key="broken")
    good = jobs.effect.enqueue(key="good")
    contents = JobContent.objects.using(alias)
    contents.filter(job__job_id=bad).update(payload=b'{"key": 7}')
    contents.filter(job__job_id=broken).update(payload=b'{"key": ')
    from backwave_django.models import Job

    Job.objects.using(alias).filter(job_id=unknown).update(wire_name="old.removed")
    burst()
    causes = {}
    for job_id in (unknown, bad, broken):
        job = monitor.get_job(job_id)
        assert job is not None
        assert job.state is JobState.QUARANTINED
        causes[job_id] = job.terminal_cause
    assert causes[unknown] == "no handler is registered for wire name 'old.removed'"
    assert causes[bad] == "payload of job 'effect': key: Expected `str`, got `int`"
    assert "payload of job 'effect'" in (causes[broken] or "")
    assert monitor.get_job(good).state is JobState.SUCCEEDED  # type: ignore[union-attr]


def test_a_payload_that_explodes_when_it_is_read_harms_nobody_else(alias: str) -> None:
    """Whatever a payload class raises, its job is quarantined and the pump goes on."""
    poison = enqueue(jobs.Poison(0))
    JobContent.objects.using(alias).filter(job__job_id=poison).update(payload=b'{"fuse": 3}')
    good = jobs.effect.enqueue(key="good")
    burst()
    job = monitor.get_job(poison)
    assert job is not None
    assert (job.state, job.terminal_cause) == (
        JobState.QUARANTINED,
        "payload of job 'poison': SystemExit: 3",
    )
    assert monitor.get_job(good).state is JobState.SUCCEEDED  # type: ignore[union-attr]


DIRT = [
    "atomic", "raw begin", "closed", "raw closed", "closed in atomic", "autocommit", "broken",
    "session", "thread",
]  # fmt: skip


@pytest.mark.parametrize("persistent", [False, True], ids=["per-attempt", "persistent"])
@pytest.mark.parametrize("how", DIRT)
def test_what_a_handler_leaves_behind_disturbs_no_other_job(
    alias: str, how: str, persistent: bool, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open transaction, a closed connection, a language: gone for the next (A066, A094)."""
    monkeypatch.setitem(connections[alias].settings_dict, "CONN_MAX_AGE", 600 if persistent else 0)
    monkeypatch.setitem(settings.DATABASES[alias], "CONN_MAX_AGE", 600 if persistent else 0)
    one_thread = {**settings.BACKWAVE["WORKER_GROUPS"]["default"], "pool_size": 1}
    settings.BACKWAVE = {"DATABASE": alias, "WORKER_GROUPS": {"default": one_thread}}
    jobs.dirty.enqueue(how=how)
    ids = [jobs.tidy.enqueue(key=f"tidy {i}") for i in range(3)]
    burst()
    for place, job_id in enumerate(ids):
        job = monitor.get_job(job_id)
        assert job is not None
        assert (job.state, job.terminal_cause) == (JobState.SUCCEEDED, None)
        assert effects(alias, f"tidy {place}") == ["en-us UTC 28"]
    assert effects(alias, "dirty") == []  # what was left uncommitted is not committed for it


def test_async_handlers_have_connections_of_their_own(alias: str, store: DjangoStore) -> None:
    """Async attempts run side by side, write by the ORM and leave outputs (A093)."""
    ids = [jobs.aeffect.enqueue(key=f"a{i}") for i in range(20)]
    burst()
    assert {monitor.get_job(i).state for i in ids} == {JobState.SUCCEEDED}  # type: ignore[union-attr]
    assert sorted(effects(alias)) == ["1"] * 20
    assert store.job_output(ids[3]) == b'{"key":"a3"}'


def test_a_paused_queue_keeps_its_jobs(alias: str) -> None:
    """A burst over a paused queue runs nothing, and ends."""
    job_id = jobs.effect.enqueue(key="paused")
    operations.pause_queue("default")
    burst()
    assert monitor.get_job(job_id).state is JobState.SCHEDULED  # type: ignore[union-attr]
    operations.resume_queue("default")
    burst()
    assert monitor.get_job(job_id).state is JobState.SUCCEEDED  # type: ignore[union-attr]


def test_the_registry_knows_the_test_jobs() -> None:
    """Discovery has found ``jobs.py`` of an installed app."""
    assert registry.get("effect") is jobs.effect.job_type
