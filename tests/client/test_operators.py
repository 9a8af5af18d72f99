"""``operations`` and ``monitor`` as an application calls them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from backwave_django import (
    BackwaveError,
    InvalidOption,
    JobState,
    enqueue_many,
    monitor,
    operations,
)
from backwave_django.operations import CancelResult
from tests.testapp.jobs import nothing

from .conftest import both, finish, row

pytestmark = both


def test_cancelling_says_what_it_came_to(alias: str) -> None:
    """A waiting job goes at once, with all that waits for its success."""
    parent = nothing.using(queue="q").enqueue()
    child = nothing.using(after=[parent]).enqueue()
    assert operations.cancel(parent, actor="ada") is CancelResult.CANCELLED_IMMEDIATELY
    assert operations.cancel(parent) is CancelResult.NOT_CANCELLABLE
    assert operations.cancel(uuid4()) is CancelResult.NOT_FOUND
    for job_id in (parent, child):
        job = monitor.get_job(job_id)
        assert job is not None
        assert job.state is JobState.CANCELLED
    assert row(alias, parent).terminal_cause == "cancelled by ada"


def test_cancelling_is_part_of_the_open_transaction(alias: str) -> None:
    """A rollback takes it back."""
    job_id = nothing.enqueue()
    with pytest.raises(RuntimeError), transaction.atomic(using=alias):
        operations.cancel(job_id)
        operations.pause_queue("default")
        raise RuntimeError
    assert JobState(row(alias, job_id).state) is JobState.SCHEDULED
    assert operations.pause_queue("default")


@pytest.mark.parametrize("actor", ["", " a", "x" * 151, "a\x00", 3], ids=repr)
def test_an_actor_is_a_name(alias: str, actor: Any) -> None:
    """It becomes part of a stored text, so what cannot be stored is refused."""
    job_id = nothing.enqueue()
    with pytest.raises(InvalidOption, match=r"^actor "):
        operations.cancel(job_id, actor=actor)
    assert JobState(row(alias, job_id).state) is JobState.SCHEDULED


def test_pausing_says_whether_anything_changed(alias: str) -> None:
    """For a queue that no job was ever in as well."""
    assert [operations.pause_queue("q"), operations.pause_queue("q")] == [True, False]
    assert [operations.resume_queue("q"), operations.resume_queue("q")] == [True, False]
    assert operations.resume_queue("never seen") is False


def test_a_limit_says_whether_anything_changed(alias: str) -> None:
    """Setting, lowering, lifting."""
    limits = [3, 3, 1, None, None]
    assert [operations.set_concurrency_limit("q", limit) for limit in limits] == [
        True, False, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "3"], ids=repr)
def test_a_limit_is_a_whole_number_from_one(alias: str, limit: Any) -> None:
    """Zero is no limit and no pause (A041)."""
    with pytest.raises(BackwaveError, match="whole number of at least 1, or None, not"):
        operations.set_concurrency_limit("q", limit)


@pytest.mark.parametrize("queue", ["", " q", "q\x00", "\ud800", None, 3, "q" * 129], ids=repr)
def test_operators_name_queues_by_the_same_rules(alias: str, queue: Any) -> None:
    """As enqueueing does."""
    for call in (operations.pause_queue, operations.resume_queue):
        with pytest.raises(InvalidOption, match=r"^queue "):
            call(queue)
    with pytest.raises(InvalidOption, match=r"^queue "):
        operations.set_concurrency_limit(queue, 1)


def test_pages_follow_each_other(alias: str) -> None:
    """By sequence, either way; each job once."""
    ids = enqueue_many([nothing.payload(x=i) for i in range(7)])
    for newest_first, expected in ((False, ids), (True, ids[::-1])):
        seen, after = [], None
        while page := monitor.list_jobs(after=after, newest_first=newest_first, limit=3):
            seen += [job.job_id for job in page]
            after = page[-1].sequence
        assert seen == expected


def test_conditions_join_with_and(alias: str) -> None:
    """State, queue, wire name, tags."""
    one = nothing.using(queue="a", tags=["x", ("k", "v")]).enqueue()
    two = nothing.using(queue="a", tags=["x"]).enqueue()
    three = nothing.using(queue="b", tags=["x", "k:v"]).enqueue()
    finish("b", three)

    def found(**wanted: Any) -> list[Any]:
        return [job.job_id for job in monitor.list_jobs(**wanted)]

    assert found(queue="a") == [one, two]
    assert found(tags=["x"]) == [one, two, three]
    assert found(tags=["x", ("k", "v")]) == [one]
    assert found(tags=["k:v"]) == [three]
    assert found(state=JobState.SUCCEEDED, tags=["x"]) == [three]
    assert found(queue="a", state=JobState.SUCCEEDED) == []
    assert found(wire_name="nothing", queue="b") == [three]
    assert found(wire_name="Nothing") == found(schedule_id="none") == []


def test_a_page_is_clamped(alias: str, settings: Any) -> None:
    """To the limit ``MaxMonitorPageSize``, and never below nothing."""
    settings.BACKWAVE = {"DATABASE": alias, "LIMITS": {"MaxMonitorPageSize": 2}}
    enqueue_many([nothing.payload(x=i) for i in range(4)])
    assert len(monitor.list_jobs(limit=1_000)) == 2
    assert monitor.list_jobs(limit=0) == monitor.list_jobs(limit=-1) == []


def test_counts_and_history(alias: str) -> None:
    """Zero counts are left out; history is oldest first."""
    job_id = nothing.using(queue="b").enqueue()
    nothing.using(queue="a").enqueue()
    finish("b", job_id)
    assert [(c.queue, c.state, c.count) for c in monitor.count_jobs()] == [
        ("a", JobState.SCHEDULED, 1), ("b", JobState.SUCCEEDED, 1),
    ]  # fmt: skip
    assert [entry.state for entry in monitor.job_history(job_id)] == [
        JobState.SCHEDULED, JobState.LEASED, JobState.SUCCEEDED,
    ]  # fmt: skip
    assert monitor.get_job(uuid4()) is None
    assert monitor.job_history(uuid4()) == []


@pytest.mark.parametrize(
    "wanted", [{"queue": "a\x00"}, {"wire_name": "\ud800"}, {"schedule_id": "a\x00"}], ids=repr
)
def test_a_name_that_no_database_holds_finds_nothing(alias: str, wanted: dict[str, Any]) -> None:
    """Or is refused as a wrong option; in either case the same on every database."""
    try:
        found = monitor.list_jobs(**wanted)
    except InvalidOption:
        return
    assert found == []


@pytest.mark.parametrize("job_id", ["not an id", b"x"], ids=repr)
@pytest.mark.parametrize("call", [monitor.get_job, monitor.job_history, operations.cancel])
def test_what_is_no_id_is_refused_as_an_option(alias: str, call: Any, job_id: Any) -> None:
    """With an error of this package, as the enqueue refuses it."""
    with pytest.raises((BackwaveError, TypeError)):
        call(job_id)
