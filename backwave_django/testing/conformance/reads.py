"""Chapter 8, reads: the transition log, tags and pages of jobs."""

from __future__ import annotations

import pytest

from ...core.outcomes import Failed, Released, Succeeded
from ...core.states import JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from ...storage.values import JobCount, JobFilter, Transition
from .scenario import (
    LEASE,
    OTHER_WORKER,
    START,
    WORKER,
    after,
    claim,
    claimed_job,
    end,
    give_up,
    needs_history,
    new_id,
    new_job,
    report_one,
    running,
    snapshot,
    store_all,
    stored,
)

SCHEDULED, LEASED = JobState.SCHEDULED, JobState.LEASED


def test_8_1_each_state_change_writes_one_row(store: JobStore) -> None:
    """Ordinal, instant, state, attempt, claim number and the worker of a claim."""
    needs_history(store)
    lease = running(store)
    end(store, lease, Failed("boom", "trace", after(5)), after(2))
    lease = claimed_job(store, lease.job_id, after(6), OTHER_WORKER).lease
    end(store, lease, Released(started=False), after(7))
    lease = claimed_job(store, lease.job_id, after(8)).lease
    end(store, lease, Succeeded(), after(9))
    rows = [row._replace(failure_detail=None) for row in store.job_history(lease.job_id)]
    assert rows == [
        Transition(1, START, SCHEDULED, 0, 0, None, None),
        Transition(2, START, LEASED, 1, 1, WORKER, None),
        Transition(3, after(2), SCHEDULED, 1, 1, None, None),
        Transition(4, after(6), LEASED, 2, 2, OTHER_WORKER, None),
        Transition(5, after(7), SCHEDULED, 1, 2, None, None),
        Transition(6, after(8), LEASED, 2, 3, WORKER, None),
        Transition(7, after(9), JobState.SUCCEEDED, 2, 3, None, None),
    ]


def test_8_1_the_newest_entries_are_kept(store: JobStore) -> None:
    """So many as the limit says; what is older ages out, whatever the job goes through."""
    needs_history(store)
    most = store.limits.max_transitions_per_job
    lease = running(store)
    for number in range(most // 2 + 3):
        end(store, lease, Released(started=True), after(number))
        lease = claimed_job(store, lease.job_id, after(number)).lease
        ordinals = [entry.ordinal for entry in store.job_history(lease.job_id)]
        newest = 2 * number + 4
        assert ordinals == list(range(max(1, newest - most + 1), newest + 1))
    end(store, lease, Succeeded(b"out"))
    assert len(store.job_history(lease.job_id)) == most
    assert store.job_output(lease.job_id) == b"out"


def test_8_1_the_policy_gates_what_is_written(store: JobStore) -> None:
    """Nothing, the steps alone, or the steps with failure details."""
    lease = running(store)
    end(store, lease, Failed("boom", "the trace"))
    rows = store.job_history(lease.job_id)
    expected = {
        "off": [],
        "transitions": [None, None, None],
        "transitions_and_failure_detail": [None, None, "the trace"],
    }
    assert [row.failure_detail for row in rows] == expected[store.history.value]


def test_8_1_no_policy_changes_what_becomes_of_a_job(store: JobStore) -> None:
    """State, output, tags, children and the order of further steps are as ever."""
    lease = running(store, tags=(Tag(None, "a"),))
    child = stored(store, parents=(lease.job_id,))
    end(store, lease, Failed("boom", "trace", START, (Tag(None, "b"),)))
    end(store, claimed_job(store, lease.job_id).lease, Succeeded(b"out"))
    assert store.job_output(lease.job_id) == b"out"
    assert store.job_tags(lease.job_id) == [Tag(None, "a"), Tag(None, "b")]
    assert snapshot(store, child).state is SCHEDULED
    lapsing = claimed_job(store, child).lease
    assert store.expire_leases(None, give_up, 1, after(60)) == 1
    assert snapshot(store, lapsing.job_id).state is JobState.DEAD_LETTERED
    logged = {"off": 0}.get(store.history.value, 4)
    assert len(store.job_history(child)) == logged


def test_8_1_the_failure_detail_stands_on_the_failing_row_alone(store: JobStore) -> None:
    """Each attempt has its own, and no other row has any."""
    if store.history.value != "transitions_and_failure_detail":
        pytest.skip("the store keeps no failure details")
    lease = running(store)
    end(store, lease, Failed("boom", "first", START))
    end(store, claimed_job(store, lease.job_id).lease, Failed("boom", "", START))
    end(store, claimed_job(store, lease.job_id).lease, Failed("boom", "third"))
    details = [row.failure_detail for row in store.job_history(lease.job_id)]
    assert details == [None, None, "first", None, None, None, "third"]


def test_8_1_what_changes_no_state_writes_no_row(store: JobStore) -> None:
    """Heartbeats, requests to cancel, stale outcomes and duplicates are no steps."""
    needs_history(store)
    lease = running(store)
    store.heartbeat([lease], LEASE, after(1))
    store.cancel(lease.job_id, None, after(1))
    report_one(store, lease._replace(attempt=9), Succeeded())
    report_one(store, lease, Succeeded(bytes(store.limits.max_output_bytes + 1)))
    store.enqueue(new_job(job_id=lease.job_id), after(1))
    assert [row.state for row in store.job_history(lease.job_id)] == [SCHEDULED, LEASED]


def test_8_1_a_cascade_writes_a_row_for_each_job(store: JobStore) -> None:
    """Jobs that are moved by the end of another have their steps in their own logs."""
    needs_history(store)
    parent = running(store)
    child = stored(store, parents=(parent.job_id,))
    grandchild = stored(store, parents=(child,))
    end(store, parent, Failed("boom", "the trace"), after(4))
    for job_id in (child, grandchild):
        assert store.job_history(job_id) == [
            Transition(1, START, JobState.AWAITING_PARENT, 0, 0, None, None),
            Transition(2, after(4), JobState.CANCELLED, 0, 0, None, None),
        ]


def test_8_1_a_log_belongs_to_its_own_job(store: JobStore) -> None:
    """An unknown job has none."""
    needs_history(store)
    first, second = running(store), stored(store)
    assert len(store.job_history(first.job_id)) == 2
    assert len(store.job_history(second)) == 1
    assert store.job_history(new_id()) == []


def test_8_2_a_label_is_not_a_keyed_tag(store: JobStore) -> None:
    """A filter for one finds none of the other, and a colon parts nothing."""
    label = stored(store, tags=(Tag(None, "a:b"),))
    keyed = stored(store, tags=(Tag("a", "b"),))
    bare = stored(store, tags=(Tag(None, "b"),))
    found = {
        tag: [job.job_id for job in store.list_jobs(JobFilter(tags=(tag,)))]
        for tag in (Tag(None, "a:b"), Tag("a", "b"), Tag(None, "b"), Tag("b", "a"), Tag(None, "a"))
    }
    assert list(found.values()) == [[label], [keyed], [bare], [], []]


def test_8_2_a_filter_joins_its_tags_with_and(store: JobStore) -> None:
    """A job has to carry all of them; one key may have several values."""
    both = stored(store, tags=(Tag("k", "1"), Tag("k", "2"), Tag(None, "x")))
    one = stored(store, tags=(Tag("k", "1"), Tag(None, "x")))
    other = stored(store, tags=(Tag("k", "3"),))
    for tags, expected in (
        ((Tag("k", "1"),), [both, one]),
        ((Tag("k", "1"), Tag("k", "2")), [both]),
        ((Tag(None, "x"), Tag("k", "1")), [both, one]),
        ((Tag("k", "1"), Tag("k", "3")), []),
        ((), [both, one, other]),
    ):
        assert [job.job_id for job in store.list_jobs(JobFilter(tags=tags))] == expected


def test_8_2_a_tag_matches_exactly(store: JobStore) -> None:
    """No part of it, no pattern, no other case."""
    stored(store, tags=(Tag("key", "a_value%"), Tag(None, "urgent")))
    for tag in (
        Tag("key", "a_value"), Tag("key", "a%"), Tag("key", "abvalue%"), Tag("Key", "a_value%"),
        Tag("key", "A_VALUE%"), Tag(None, "URGENT"), Tag(None, "urg%"), Tag(None, "urgent "),
    ):  # fmt: skip
        assert store.list_jobs(JobFilter(tags=(tag,))) == []
    assert len(store.list_jobs(JobFilter(tags=(Tag("key", "a_value%"), Tag(None, "urgent"))))) == 1


def test_8_2_tags_join_with_the_other_conditions(store: JobStore) -> None:
    """State, queue, wire name and tags all have to match."""
    tags = (Tag(None, "x"),)
    lease = running(store, queue="a", wire_name="w", tags=tags)
    others = [
        stored(store, queue="a", wire_name="w", tags=tags),
        running(store, queue="b", wire_name="w", tags=tags).job_id,
        running(store, queue="c", wire_name="v", tags=tags).job_id,
        running(store, queue="d", wire_name="w").job_id,
    ]
    found = store.list_jobs(JobFilter(state=LEASED, queue="a", wire_name="w", tags=tags))
    assert [job.job_id for job in found] == [lease.job_id]
    assert len(store.list_jobs(JobFilter(tags=tags))) == len(others)


def test_8_2_tags_are_found_once_an_outcome_has_added_them(store: JobStore) -> None:
    """A filter sees what a handler has said of its job."""
    lease = running(store)
    assert store.list_jobs(JobFilter(tags=(Tag("k", "v"),))) == []
    end(store, lease, Failed("boom", "", None, (Tag("k", "v"),)))
    found = store.list_jobs(JobFilter(tags=(Tag("k", "v"),)))
    assert [job.job_id for job in found] == [lease.job_id]


def test_8_4_a_page_comes_by_sequence(store: JobStore) -> None:
    """Oldest or newest first, whatever ids and due times say."""
    ids = [stored(store, due_time=after(-number)) for number in range(5)]
    assert [job.job_id for job in store.list_jobs(JobFilter())] == ids
    newest = store.list_jobs(JobFilter(), newest_first=True)
    assert [job.job_id for job in newest] == ids[::-1]


def test_8_4_a_page_begins_beyond_the_sequence_given(store: JobStore) -> None:
    """In either direction, and the job of that sequence is not in it."""
    ids = [stored(store) for _ in range(5)]
    middle = snapshot(store, ids[2]).sequence
    later = store.list_jobs(JobFilter(), after=middle)
    earlier = store.list_jobs(JobFilter(), after=middle, newest_first=True)
    assert [job.job_id for job in later] == ids[3:]
    assert [job.job_id for job in earlier] == [ids[1], ids[0]]


def test_8_4_a_page_holds_at_most_so_many(store: JobStore) -> None:
    """Fifty unless asked otherwise, and none where none are asked for."""
    store_all(store, [new_job() for _ in range(52)])
    assert len(store.list_jobs(JobFilter())) == 50
    assert len(store.list_jobs(JobFilter(), limit=3)) == 3
    assert store.list_jobs(JobFilter(), limit=0) == []


def test_8_4_a_walk_sees_each_job_once_while_others_come_and_go(store: JobStore) -> None:
    """Jobs that match all the while appear exactly once, in both directions."""
    ids = [stored(store, queue=("a", "b")[number % 2]) for number in range(20)]
    wanted = JobFilter(queue="a", state=SCHEDULED)
    for newest_first in (False, True):
        steady = {
            job.job_id for job in store.list_jobs(wanted, limit=100) if job.job_id in set(ids)
        }
        walked, last, number = [], None, 0
        while page := store.list_jobs(wanted, after=last, newest_first=newest_first, limit=3):
            walked += [job.job_id for job in page]
            last = page[-1].sequence
            number += 1
            stored(store, queue="a", due_time=after(99))
            if number == 2:
                gone = claim(store, "a", max_jobs=1).jobs[0].lease.job_id
                steady.discard(gone)
            if number > 30:
                break  # new jobs at the end keep a forward walk going
        assert len(walked) == len(set(walked))
        assert steady <= set(walked)


def test_8_4_a_filter_finds_what_matches_all_its_conditions(store: JobStore) -> None:
    """State, queue and wire name, each alone and together; empty means any."""
    due = stored(store, queue="a", wire_name="w")
    lease = running(store, queue="b", wire_name="w")
    other = stored(store, queue="b", wire_name="v")
    for job_filter, expected in (
        (JobFilter(), [due, lease.job_id, other]),
        (JobFilter(state=LEASED), [lease.job_id]),
        (JobFilter(queue="b"), [lease.job_id, other]),
        (JobFilter(wire_name="w"), [due, lease.job_id]),
        (JobFilter(queue="b", wire_name="w", state=LEASED), [lease.job_id]),
        (JobFilter(queue="b", wire_name="w", state=SCHEDULED), []),
        (JobFilter(schedule_id="nightly"), []),
    ):
        assert [job.job_id for job in store.list_jobs(job_filter)] == expected


def test_8_4_counts_are_by_queue_and_state(store: JobStore) -> None:
    """Ordered by both, without zeros."""
    assert store.count_jobs() == []
    store_all(store, [new_job(queue=queue) for queue in ("b", "a", "b", "B")])
    end(store, running(store, queue="c"))
    claim(store, "b", max_jobs=1)
    assert store.count_jobs() == [
        JobCount("B", SCHEDULED, 1),
        JobCount("a", SCHEDULED, 1),
        JobCount("b", SCHEDULED, 1),
        JobCount("b", LEASED, 1),
        JobCount("c", JobState.SUCCEEDED, 1),
    ]


def test_8_4_an_unknown_job_reads_as_nothing(store: JobStore) -> None:
    """No read fails for it."""
    unknown = new_id()
    stored(store)
    assert store.get_job(unknown) is None
    assert store.job_payload(unknown) is None
    assert store.job_output(unknown) is None
    assert store.job_tags(unknown) == []
    assert store.job_history(unknown) == []
