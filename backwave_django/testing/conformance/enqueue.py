"""Chapter 2, enqueue: answers, batches and tags."""

from __future__ import annotations

from dataclasses import replace

from ...core.outcomes import Failed
from ...core.states import JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from ...storage.values import EnqueueResult, EnqueueStatus, NewJob
from .scenario import (
    QUEUE,
    START,
    WORKER,
    after,
    at_once,
    claim,
    claimed_job,
    end,
    ids_of,
    new_id,
    new_job,
    request,
    running,
    snapshot,
    state_of,
    store_all,
    stored,
    view,
    whole,
)

OK = EnqueueResult(EnqueueStatus.OK)
DUPLICATE = EnqueueResult(EnqueueStatus.DUPLICATE)


def _statuses(store: JobStore, jobs: list[NewJob]) -> list[EnqueueStatus]:
    return [result.status for result in store.enqueue_many(jobs, START)]


def _refused(store: JobStore) -> dict[EnqueueStatus, NewJob]:
    """Make a job for each answer but OK and DUPLICATE."""
    limits = store.limits
    return {
        EnqueueStatus.PAYLOAD_TOO_LARGE: new_job(payload=bytes(limits.max_payload_bytes + 1)),
        EnqueueStatus.WIRE_NAME_TOO_LONG: new_job(
            wire_name="w" * (limits.max_wire_name_length + 1)
        ),
        EnqueueStatus.TOO_MANY_PARENTS: new_job(
            parents=tuple(new_id() for _ in range(limits.max_parents_per_job + 1))
        ),
        EnqueueStatus.UNKNOWN_PARENT: new_job(parents=(new_id(),)),
    }


def test_2_1_an_accepted_job_is_answered_ok_and_is_there(store: JobStore) -> None:
    """The answer says OK, and the job is due as it was asked for."""
    job = new_job(due_time=after(5))
    assert store.enqueue(job, START) == OK
    assert state_of(store, job.job_id) is JobState.SCHEDULED
    assert snapshot(store, job.job_id).due_time == after(5)


def test_2_1_a_job_may_be_due_in_the_past(store: JobStore) -> None:
    """Its due time stays what it was, so that it keeps its place in the queue."""
    job_id = stored(store, due_time=after(-3_600))
    assert snapshot(store, job_id).due_time == after(-3_600)


def test_2_1_each_refusal_has_its_answer_and_leaves_no_trace(store: JobStore) -> None:
    """A refused job is not there, and its id is free."""
    for status, job in _refused(store).items():
        assert store.enqueue(job, START).status is status
        assert store.get_job(job.job_id) is None
        assert store.job_history(job.job_id) == []
        assert store.job_tags(job.job_id) == []
        accepted = new_job(job_id=job.job_id, queue="again")
        assert store.enqueue(accepted, START) == OK


def test_2_1_a_duplicate_leaves_the_stored_job_untouched(store: JobStore) -> None:
    """Whatever state the first one is in, the second changes nothing of it."""
    due, lease, done = stored(store, queue="due"), running(store), running(store)
    end(store, done)
    for job_id in (due, lease.job_id, done.job_id):
        before = view(store, job_id)
        twin = new_job(
            job_id=job_id, wire_name="other", queue="other", payload=b"other",
            tags=(Tag(None, "other"),), due_time=after(-1), trace_context="other",
        )  # fmt: skip
        assert store.enqueue(twin, after(1)) == DUPLICATE
        assert view(store, job_id) == before
    assert not claim(store, "other").jobs


def test_2_1_a_duplicate_with_parents_adds_no_edge(store: JobStore) -> None:
    """The stored job goes on waiting for its own parents alone."""
    first, second = running(store), running(store)
    child = new_job(parents=(first.job_id,))
    store.enqueue(child, START)
    assert store.enqueue(replace(child, parents=(second.job_id,)), START) == DUPLICATE
    end(store, second, Failed("boom"))
    assert state_of(store, child.job_id) is JobState.AWAITING_PARENT
    end(store, first)
    assert state_of(store, child.job_id) is JobState.SCHEDULED


def test_2_1_checks_are_made_in_their_fixed_order(store: JobStore) -> None:
    """Of several faults the first in the order is answered, the same on every store."""
    limits, taken = store.limits, stored(store)
    unknown = tuple(new_id() for _ in range(limits.max_parents_per_job + 1))
    job = new_job(
        job_id=taken,
        payload=bytes(limits.max_payload_bytes + 1),
        wire_name="w" * (limits.max_wire_name_length + 1),
        parents=unknown,
    )
    answers = []
    for repaired in (
        {},
        {"payload": b""},
        {"wire_name": "w"},
        {"parents": unknown[1:]},
        {"job_id": new_id()},
        {"parents": (taken,)},
    ):
        job = replace(job, **repaired)
        answers.append(store.enqueue(job, START).status)
    assert answers == [
        EnqueueStatus.PAYLOAD_TOO_LARGE,
        EnqueueStatus.WIRE_NAME_TOO_LONG,
        EnqueueStatus.TOO_MANY_PARENTS,
        EnqueueStatus.DUPLICATE,
        EnqueueStatus.UNKNOWN_PARENT,
        EnqueueStatus.OK,
    ]


def test_2_1_the_first_unknown_parent_is_named(store: JobStore) -> None:
    """The answer carries the id that nobody knows, in the order of the parents."""
    known, first, second = stored(store), new_id(), new_id()
    answer = store.enqueue(new_job(parents=(known, second, first)), START)
    assert answer == EnqueueResult(EnqueueStatus.UNKNOWN_PARENT, second)


def test_2_1_a_job_cannot_be_its_own_parent(store: JobStore) -> None:
    """It is not there yet when its parents are looked for."""
    job_id = new_id()
    answer = store.enqueue(new_job(job_id=job_id, parents=(job_id,)), START)
    assert answer == EnqueueResult(EnqueueStatus.UNKNOWN_PARENT, job_id)
    assert store.get_job(job_id) is None


def test_2_2_a_batch_is_answered_job_by_job_in_order(store: JobStore) -> None:
    """A refused job refuses only itself; all others of the batch are stored."""
    refused, taken = _refused(store), stored(store)
    good = [new_job() for _ in range(6)]
    mixed = [
        good[0], refused[EnqueueStatus.PAYLOAD_TOO_LARGE],
        good[1], new_job(job_id=taken),
        good[2], refused[EnqueueStatus.UNKNOWN_PARENT],
        good[3], refused[EnqueueStatus.TOO_MANY_PARENTS],
        good[4], refused[EnqueueStatus.WIRE_NAME_TOO_LONG],
        good[5],
    ]  # fmt: skip
    answers = _statuses(store, mixed)
    assert answers[::2] == [EnqueueStatus.OK] * 6
    assert answers[1::2] == [
        EnqueueStatus.PAYLOAD_TOO_LARGE, EnqueueStatus.DUPLICATE,
        EnqueueStatus.UNKNOWN_PARENT, EnqueueStatus.TOO_MANY_PARENTS,
        EnqueueStatus.WIRE_NAME_TOO_LONG,
    ]  # fmt: skip
    there = [found.snapshot.job_id for found in whole(store)]
    assert there == [taken, *(job.job_id for job in good)]


def test_2_2_sequences_follow_the_order_of_the_batch(store: JobStore) -> None:
    """Ids, queues and due times do not matter to it, nor does the size of the batch."""
    jobs = [
        new_job(queue=f"q{number % 3}", due_time=after(-number), job_id=job_id)
        for number, job_id in enumerate(sorted((new_id() for _ in range(1_100)), reverse=True))
    ]
    store_all(store, jobs)
    probes = [*jobs[::100], jobs[-1]]
    sequences = [snapshot(store, job.job_id).sequence for job in probes]
    assert sequences == sorted(sequences)
    assert sequences[-1] - sequences[0] == len(jobs) - 1


def test_2_2_the_second_of_two_equal_ids_is_a_duplicate(store: JobStore) -> None:
    """Within a batch too, the first one counts."""
    first = new_job(payload=b"first")
    second = replace(first, payload=b"second", tags=(Tag(None, "second"),))
    assert store.enqueue_many([first, second, new_job()], START) == [OK, DUPLICATE, OK]
    assert store.job_payload(first.job_id) == b"first"
    assert store.job_tags(first.job_id) == []


def test_2_2_a_refused_job_does_not_make_its_twin_a_duplicate(store: JobStore) -> None:
    """It was never there, so the next job with its id is the first."""
    refused = _refused(store)
    for status, job in refused.items():
        twin = new_job(job_id=job.job_id)
        assert _statuses(store, [job, twin]) == [status, EnqueueStatus.OK]


def test_2_2_a_parent_may_stand_earlier_in_the_batch(store: JobStore) -> None:
    """A whole graph is stored in one call, parents first."""
    top = new_job()
    left, right = new_job(parents=(top.job_id,)), new_job(parents=(top.job_id,))
    bottom = new_job(parents=(left.job_id, right.job_id))
    store_all(store, [top, left, right, bottom])
    for job in (left, right, bottom):
        assert state_of(store, job.job_id) is JobState.AWAITING_PARENT
    for job in (top, left, right, bottom):
        end(store, claimed_job(store, job.job_id).lease)


def test_2_2_a_parent_that_stands_later_in_the_batch_is_unknown(store: JobStore) -> None:
    """The order of a batch is the order of its jobs."""
    parent = new_job()
    child = new_job(parents=(parent.job_id,))
    answers = store.enqueue_many([child, parent], START)
    assert answers == [EnqueueResult(EnqueueStatus.UNKNOWN_PARENT, parent.job_id), OK]


def test_2_2_a_parent_that_was_refused_is_unknown(store: JobStore) -> None:
    """What was not stored can have no children, further down neither."""
    for job in _refused(store).values():
        child = new_job(parents=(job.job_id,))
        grandchild = new_job(parents=(child.job_id,))
        answers = _statuses(store, [job, child, grandchild])
        assert answers[1:] == [EnqueueStatus.UNKNOWN_PARENT] * 2


def test_2_2_a_duplicate_may_be_a_parent(store: JobStore) -> None:
    """Its job is there: the one that was stored first."""
    done = running(store)
    end(store, done)
    child = new_job(parents=(done.job_id,))
    assert store.enqueue_many([new_job(job_id=done.job_id), child], START) == [DUPLICATE, OK]
    assert state_of(store, child.job_id) is JobState.SCHEDULED


def test_2_2_a_child_of_a_cancelled_job_of_the_batch_is_cancelled(store: JobStore) -> None:
    """A failure above reaches all that is enqueued below it in one batch."""
    failed = running(store)
    end(store, failed, Failed("boom"))
    child = new_job(parents=(failed.job_id,))
    grandchild = new_job(parents=(child.job_id,))
    store_all(store, [child, grandchild])
    for job, parent in ((child, failed.job_id), (grandchild, child.job_id)):
        assert state_of(store, job.job_id) is JobState.CANCELLED
        assert str(parent) in str(snapshot(store, job.job_id).terminal_cause)


def test_2_2_an_empty_batch_is_no_error(store: JobStore) -> None:
    """Nothing is stored, and there are no answers."""
    assert list(store.enqueue_many([], START)) == []
    assert whole(store) == []


def test_2_2_a_batch_of_refused_jobs_stores_nothing(store: JobStore) -> None:
    """The answers stand in order, and no job is there."""
    refused = _refused(store)
    assert _statuses(store, list(refused.values())) == list(refused)
    assert whole(store) == []


def test_2_3_a_job_is_claimable_as_soon_as_it_is_stored(store: JobStore) -> None:
    """For every thread, without any delay or further step."""
    for _ in range(3):
        job_id = stored(store)
        (claimed,) = at_once(store, lambda: store.claim(WORKER, request(QUEUE), START))
        assert ids_of(claimed) == [job_id]


def test_2_5_tags_are_kept_in_first_seen_order(store: JobStore) -> None:
    """Reading them and claiming the job give the order in which they were written."""
    tags = (Tag(None, "z"), Tag("k", "b"), Tag("k", "a"), Tag(None, "a"), Tag("a", "z"))
    job_id = stored(store, tags=tags)
    assert store.job_tags(job_id) == list(tags)
    assert claimed_job(store, job_id).tags == tags


def test_2_5_a_tag_given_twice_is_one_tag(store: JobStore) -> None:
    """Tags are a set: the second of two equal ones is passed over."""
    twice = (Tag(None, "a"), Tag("k", "v"), Tag(None, "a"), Tag("k", "v"), Tag(None, "b"))
    once = [Tag(None, "a"), Tag("k", "v"), Tag(None, "b")]
    job_id = stored(store, tags=twice)
    assert store.job_tags(job_id) == once
    assert list(claimed_job(store, job_id).tags) == once


def test_2_5_a_label_and_a_keyed_tag_are_two_kinds(store: JobStore) -> None:
    """A colon inside a label is data."""
    tags = (Tag(None, "a:b"), Tag("a", "b"), Tag(None, "a"), Tag(None, "b"))
    assert store.job_tags(stored(store, tags=tags)) == list(tags)


def test_2_5_tags_belong_to_their_own_job(store: JobStore) -> None:
    """Jobs of one batch do not mix their tags."""
    jobs = [new_job(tags=(Tag(None, str(number)), Tag("k", "v"))) for number in range(3)]
    store_all(store, [*jobs, new_job()])
    for job in jobs:
        assert store.job_tags(job.job_id) == list(job.tags)
