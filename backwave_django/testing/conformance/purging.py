"""Chapter 8, keep, then purge."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from ...core.outcomes import Failed, Succeeded, Unroutable
from ...core.states import TERMINAL_STATES, JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from ...storage.errors import StoreMisused
from ...storage.values import EnqueueStatus, JobFilter
from .scenario import (
    START,
    after,
    at_once,
    cancelled_job,
    claimed_job,
    end,
    new_id,
    new_job,
    running,
    stored,
)


def _all_before(instant: datetime) -> Mapping[JobState, datetime]:
    return dict.fromkeys(TERMINAL_STATES, instant)


LATER = after(1_000)
EVERYTHING = _all_before(LATER)


def _done(store: JobStore, ended_at: datetime = START, **changes: Any) -> UUID:
    lease = running(store, **changes)
    end(store, lease, Succeeded(b"out", (Tag(None, "t"),)), ended_at)
    return lease.job_id


def _there(store: JobStore, *job_ids: UUID) -> list[bool]:
    return [store.get_job(job_id) is not None for job_id in job_ids]


def test_8_3_what_ended_before_the_cutoff_goes(store: JobStore) -> None:
    """Not what ended at that very instant, and nothing that lives."""
    old, exact, young = (_done(store, after(n), queue=f"q{n}") for n in (1, 2, 3))
    live = stored(store)
    leased = running(store, queue="x").job_id
    assert store.purge(_all_before(after(2)), 100, LATER) == 1
    assert _there(store, old, exact, young, live, leased) == [False, True, True, True, True]
    assert store.purge(_all_before(after(2)), 100, LATER) == 0


def test_8_3_each_state_has_its_own_cutoff(store: JobStore) -> None:
    """A state that is left out stays."""
    done, cancelled = _done(store, queue="a"), cancelled_job(store, queue="b")
    dead, lost = running(store, queue="c"), running(store, queue="d")
    end(store, dead, Failed("boom"))
    end(store, lost, Unroutable("who?"))
    jobs = (done, cancelled, dead.job_id, lost.job_id)
    assert store.purge({JobState.CANCELLED: LATER, JobState.DEAD_LETTERED: START}, 100, LATER) == 1
    assert _there(store, *jobs) == [True, False, True, True]
    assert store.purge({JobState.DEAD_LETTERED: LATER, JobState.SUCCEEDED: LATER}, 100, LATER) == 2
    assert _there(store, *jobs) == [False, False, False, True]
    assert store.purge({}, 100, LATER) == 0
    assert store.purge({JobState.QUARANTINED: LATER}, 100, LATER) == 1


def test_8_3_all_that_hangs_on_a_job_goes_with_it(store: JobStore) -> None:
    """Payload, output, tags, log and edges; its id is free again."""
    job_id = _done(store, tags=(Tag("k", "v"),))
    child = running(store, parents=(job_id,))
    end(store, child)
    other = _done(store, parents=(child.job_id,), queue="kept")
    assert store.purge(EVERYTHING, 100, LATER, queues=["mail"]) == 2
    assert _there(store, job_id, child.job_id, other) == [False, False, True]
    assert store.job_payload(job_id) is store.job_output(job_id) is None
    assert (store.job_tags(job_id), store.job_history(job_id)) == ([], [])
    assert store.tag_facets(JobFilter(), "k") == []
    assert store.get_dependency_edges(job_id) is None
    assert store.read_output(other, child.job_id) is None
    again = store.enqueue(new_job(job_id=job_id), START)
    assert again.status is EnqueueStatus.OK
    assert store.job_tags(job_id) == []
    assert store.get_dependency_edges(job_id) == ((), ())


def test_8_3_only_the_queues_given(store: JobStore) -> None:
    """Or all but some; names compare by code point."""
    jobs = [_done(store, queue=queue) for queue in ("a", "A", "b", "c")]
    assert store.purge(EVERYTHING, 100, LATER, queues=["a", "nobody's"]) == 1
    assert _there(store, *jobs) == [False, True, True, True]
    assert store.purge(EVERYTHING, 100, LATER, but_queues=["c", "a"]) == 2
    assert _there(store, *jobs) == [False, False, False, True]
    assert store.purge(EVERYTHING, 100, LATER, queues=["c"], but_queues=["c"]) == 0
    assert store.purge(EVERYTHING, 100, LATER, queues=[]) == 0


def test_8_3_a_batch_is_bounded(store: JobStore) -> None:
    """By what is asked, and by the limit; the rest goes with the next."""
    for _ in range(5):
        _done(store)
    assert [store.purge(EVERYTHING, 2, LATER) for _ in range(4)] == [2, 2, 1, 0]
    _done(store)
    assert store.purge(EVERYTHING, 0, LATER) == store.purge(EVERYTHING, -3, LATER) == 0


def test_8_3_a_batch_is_clamped_to_the_limit(store: JobStore) -> None:
    """However many are asked for."""
    most = store.limits.max_purge_batch
    jobs = [new_job(queue="big") for _ in range(most + 1)]
    store.enqueue_many(jobs, START)
    wanted = JobFilter(queue="big")
    while store.cancel_many(wanted, None, START, max_jobs=200).looked_at:
        pass
    assert [store.purge(EVERYTHING, 10_000, LATER) for _ in range(3)] == [most, 1, 0]


def test_8_3_a_workflow_goes_as_a_whole(store: JobStore) -> None:
    """When the last of it is due, its other queues and states included."""
    workflow, other = new_id(), new_id()
    first = _done(store, after(1), queue="a", workflow_id=workflow)
    last = _done(store, after(5), queue="b", workflow_id=workflow)
    alone = _done(store, after(1), queue="a")
    unfinished = _done(store, after(1), queue="a", workflow_id=other)
    member = stored(store, queue="z", workflow_id=other)
    assert store.purge(_all_before(after(4)), 100, LATER) == 1
    assert _there(store, first, last, alone, unfinished) == [True, True, False, True]
    assert store.purge({JobState.CANCELLED: LATER}, 100, LATER) == 0
    assert store.purge(_all_before(after(6)), 1, LATER, queues=["a"]) == 2
    assert _there(store, first, last, unfinished, member) == [False, False, True, True]


def test_8_3_an_error_purges_nothing(store: JobStore) -> None:
    """A live state, or a cutoff that is no aware UTC instant."""
    job_id = _done(store)
    for bad in ({JobState.SCHEDULED: LATER}, {JobState.SUCCEEDED: LATER.replace(tzinfo=None)}):
        with pytest.raises(StoreMisused):
            store.purge(bad, 100, LATER)
    assert _there(store, job_id) == [True]


def test_8_3_sweeps_at_once_share_the_work(store: JobStore) -> None:
    """Together they purge each job once."""
    for _ in range(12):
        _done(store)
    counts = at_once(store, *[lambda: store.purge(EVERYTHING, 4, LATER)] * 3)
    while sum(counts) < 12:
        counts.append(store.purge(EVERYTHING, 4, LATER))
        assert counts[-1], counts
    assert sum(counts) == 12
    assert store.list_jobs(JobFilter()) == []


def test_6_4_a_parent_stays_while_a_dependent_lives(store: JobStore) -> None:
    """Waiting, scheduled or leased: it may want to read what the parent left."""
    parent, slow = running(store, queue="a"), running(store, queue="b")
    child = stored(store, parents=(parent.job_id, slow.job_id))
    end(store, parent, Succeeded(b"out"))
    assert store.purge(EVERYTHING, 100, LATER) == 0
    end(store, slow)
    assert store.purge(EVERYTHING, 100, LATER) == 0
    lease = claimed_job(store, child).lease
    assert store.purge(EVERYTHING, 100, LATER) == 0
    assert store.read_output(child, parent.job_id) is not None
    end(store, lease)
    assert store.purge(EVERYTHING, 100, LATER) == 3


def test_6_4_the_rest_goes_while_a_parent_stays(store: JobStore) -> None:
    """One that cannot go keeps nobody else from going."""
    parent = running(store)
    child = stored(store, parents=(parent.job_id,))
    end(store, parent)
    others = [_done(store, after(1), queue="mail2") for _ in range(3)]
    assert store.purge(EVERYTHING, 3, LATER) == 3
    assert _there(store, parent.job_id, child, *others) == [True, True, False, False, False]
