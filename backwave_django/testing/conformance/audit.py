"""Chapter 5, what is remembered: the audit, and actions on many jobs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from ...core.errors import InvalidOption
from ...core.outcomes import Failed
from ...core.states import JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from ...storage.values import AuditAction, BulkResult, JobFilter
from .scenario import (
    QUEUE,
    START,
    after,
    end,
    new_id,
    new_job,
    running,
    snapshot,
    state_of,
    store_all,
    stored,
)

CANCEL, REQUEUE = AuditAction.CANCEL, AuditAction.REQUEUE


def _told(store: JobStore, **asked: object) -> list[tuple[AuditAction, str, str | None, str]]:
    records = store.list_audit(limit=200, **asked)  # type: ignore[arg-type]
    return [(r.action, r.target, r.actor, r.detail) for r in records]


def test_5_5_each_change_leaves_a_record(store: JobStore) -> None:
    """Who did what to what, and when, in order; with what was given."""
    failed, leased, idle = running(store), running(store), stored(store, queue="later")
    end(store, failed, Failed("boom"))
    store.requeue(failed.job_id, "anna", after(1))
    store.reschedule(idle, after(60), "bert", after(2))
    store.cancel(idle, None, after(3))
    store.cancel(leased.job_id, "anna", after(4))
    store.pause_queue(QUEUE, "anna", after(5))
    store.resume_queue(QUEUE, "bert", after(6))
    store.set_concurrency_limit(QUEUE, 3, "anna", after(7))
    store.set_concurrency_limit(QUEUE, None, "anna", after(8))
    assert _told(store) == [
        (REQUEUE, str(failed.job_id), "anna", ""),
        (AuditAction.RESCHEDULE, str(idle), "bert", f"to {after(60).isoformat()}"),
        (CANCEL, str(idle), None, ""),
        (CANCEL, str(leased.job_id), "anna", "requested"),
        (AuditAction.PAUSE_QUEUE, QUEUE, "anna", ""),
        (AuditAction.RESUME_QUEUE, QUEUE, "bert", ""),
        (AuditAction.SET_CONCURRENCY_LIMIT, QUEUE, "anna", "to 3"),
        (AuditAction.SET_CONCURRENCY_LIMIT, QUEUE, "anna", "lifted"),
    ]
    assert [record.at for record in store.list_audit()] == [after(n) for n in range(1, 9)]


def test_5_5_what_changed_nothing_leaves_none(store: JobStore) -> None:
    """What was refused, what was so already, and what nobody knows."""
    leased, idle = running(store), stored(store, queue="later")
    store.cancel(leased.job_id, "anna", START)
    store.pause_queue(QUEUE, "anna", START)
    before = store.list_audit()
    store.cancel(leased.job_id, "bert", START)
    store.requeue(idle, "bert", START)
    store.reschedule(leased.job_id, after(9), "bert", START)
    store.reschedule(idle, START, "bert", START)
    store.pause_queue(QUEUE, "bert", START)
    store.resume_queue("never paused", "bert", START)
    store.set_concurrency_limit(QUEUE, None, "bert", START)
    for act in (store.cancel, store.requeue):
        act(new_id(), "bert", START)
    assert store.list_audit() == before
    assert len(before) == 2


def test_5_5_a_cascade_is_nobodys_action(store: JobStore) -> None:
    """The children that are cancelled with a job are not recorded as the actor's doing."""
    top = stored(store)
    stored(store, parents=(top,))
    store.cancel(top, "anna", START)
    assert _told(store) == [(CANCEL, str(top), "anna", "")]


def test_5_5_records_are_read_in_pages(store: JobStore) -> None:
    """By number, from either end, all of them or those of one target."""
    for second in range(5):
        store.pause_queue(f"q{second}", "anna", after(second))
    whole = store.list_audit()
    numbers = [record.number for record in whole]
    assert numbers == sorted(set(numbers))
    assert store.list_audit(after=numbers[1], limit=2) == whole[2:4]
    assert store.list_audit(newest_first=True, limit=2) == whole[:2:-1]
    assert store.list_audit(newest_first=True, after=numbers[3], limit=9) == whole[2::-1]
    assert store.list_audit(target="q3") == [whole[3]]
    assert store.list_audit(target="Q3") == []
    assert store.list_audit(target="\x00") == []
    assert store.list_audit(limit=-1) == []


def test_5_5_a_bad_actor_is_refused(store: JobStore) -> None:
    """By every action, before anything changes."""
    lease, idle = running(store), stored(store, queue="later")
    end(store, lease, Failed("boom"))
    for bad in ("", " anna", "a" * 151, "a\x00"):
        actions: list[Callable[[], object]] = [
            partial(store.cancel, idle, bad, START),
            partial(store.requeue, lease.job_id, bad, START),
            partial(store.reschedule, idle, after(9), bad, START),
            partial(store.cancel_many, JobFilter(), bad, START),
            partial(store.requeue_many, JobFilter(), bad, START),
            partial(store.pause_queue, QUEUE, bad, START),
            partial(store.resume_queue, QUEUE, bad, START),
            partial(store.set_concurrency_limit, QUEUE, 1, bad, START),
        ]
        for action in actions:
            with pytest.raises(InvalidOption):
                action()
    assert store.list_audit() == []
    assert state_of(store, idle) is JobState.SCHEDULED


def test_5_5_many_are_cancelled_in_batches(store: JobStore) -> None:
    """In order of sequence, so many at a time, until nothing is looked at any more."""
    jobs = store_all(store, [new_job(tags=(Tag(None, "old"),)) for _ in range(5)])
    other = stored(store)
    wanted = JobFilter(tags=(Tag(None, "old"),))
    sequences = [snapshot(store, job_id).sequence for job_id in jobs]
    first = store.cancel_many(wanted, "anna", after(1), max_jobs=2)
    assert first == BulkResult(2, 2, sequences[1])
    assert [state_of(store, job) is JobState.CANCELLED for job in jobs] == [1, 1, 0, 0, 0]
    second = store.cancel_many(wanted, "anna", after(1), after=first.after or 0, max_jobs=9)
    assert second == BulkResult(3, 3, sequences[4])
    assert store.cancel_many(wanted, "anna", after(1)) == BulkResult(0, 0, None)
    assert {snapshot(store, job).terminal_cause for job in jobs} == {"cancelled by anna"}
    assert state_of(store, other) is JobState.SCHEDULED
    assert _told(store) == [(CANCEL, str(job), "anna", "") for job in jobs]


def test_5_5_a_batch_asks_what_runs_and_cancels_what_does_not(store: JobStore) -> None:
    """Descendants follow; what was asked before is looked at and not changed."""
    asked, leased = running(store), running(store)
    store.cancel(asked.job_id, None, START)
    top = stored(store)
    child = stored(store, parents=(top,), queue="other")
    answer = store.cancel_many(JobFilter(queue=QUEUE), "anna", after(1))
    assert answer[:2] == (3, 2)
    assert snapshot(store, leased.job_id).cancel_requested
    assert (state_of(store, top), state_of(store, child)) == (JobState.CANCELLED,) * 2
    assert str(top) in str(snapshot(store, child).terminal_cause)


def test_5_5_a_child_in_the_batch_is_the_actors_doing(store: JobStore) -> None:
    """What matches is cancelled for itself, whatever its parent in the batch does to it."""
    top = stored(store)
    child = stored(store, parents=(top,))
    assert store.cancel_many(JobFilter(), "anna", START)[:2] == (2, 2)
    assert snapshot(store, child).terminal_cause == "cancelled by anna"
    assert snapshot(store, child).terminal_at == START


def test_5_5_many_are_requeued_in_batches(store: JobStore) -> None:
    """Only those that can be; the filter's state, queue and type hold."""
    failed = [running(store, queue=queue) for queue in ("a", "a", "b")]
    for lease in failed:
        end(store, lease, Failed("boom"))
    done = running(store, queue="a")
    end(store, done)
    answer = store.requeue_many(JobFilter(queue="a"), "anna", after(1))
    assert answer == BulkResult(2, 2, snapshot(store, failed[1].job_id).sequence)
    states = [state_of(store, lease.job_id) for lease in (*failed, done)]
    assert states == [
        JobState.SCHEDULED,
        JobState.SCHEDULED,
        JobState.DEAD_LETTERED,
        JobState.SUCCEEDED,
    ]
    assert [record.action for record in store.list_audit()] == [REQUEUE, REQUEUE]


def test_5_5_a_batch_is_bounded(store: JobStore) -> None:
    """By the limit of a page; a negative wish is no wish."""
    store_all(store, [new_job() for _ in range(store.limits.max_monitor_page_size + 1)])
    answer = store.cancel_many(JobFilter(), None, START, max_jobs=10_000)
    assert answer[:2] == (store.limits.max_monitor_page_size,) * 2
    assert store.cancel_many(JobFilter(), None, START, max_jobs=-1) == BulkResult(0, 0, None)
    assert store.cancel_many(JobFilter(queue="a\x00"), None, START) == BulkResult(0, 0, None)
