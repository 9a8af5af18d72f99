"""Chapter 3, claim: order, shares, leases and the advice on when to come back."""

from __future__ import annotations

from collections import Counter
from functools import partial
from uuid import UUID

from ...core.commands import ClaimRequest
from ...core.outcomes import Failed, Released
from ...core.states import JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from .scenario import (
    LEASE,
    MICROSECOND,
    OTHER_WORKER,
    QUEUE,
    START,
    WORKER,
    after,
    at_once,
    claim,
    claimed_job,
    end,
    ids_of,
    new_job,
    request,
    running,
    snapshot,
    state_of,
    store_all,
    stored,
)


def _fill(store: JobStore, **counts: int) -> dict[str, list[UUID]]:
    """Enqueue so many due jobs in each queue."""
    return {
        queue: store_all(store, [new_job(queue=queue) for _ in range(count)]) if count else []
        for queue, count in counts.items()
    }


def test_3_1_a_job_is_claimed_at_its_due_time_and_not_before(store: JobStore) -> None:
    """The instant itself counts as due, the microsecond before it does not."""
    job_id = stored(store, due_time=after(5))
    assert not claim(store, now=after(5) - MICROSECOND).jobs
    assert ids_of(claim(store, now=after(5))) == [job_id]


def test_3_1_a_claim_sets_the_lease(store: JobStore) -> None:
    """Owner, end of the lease, attempt and state are those of the claim."""
    job_id = stored(store)
    lease = claimed_job(store, job_id, after(3), worker=OTHER_WORKER).lease
    found = snapshot(store, job_id)
    assert lease == (job_id, OTHER_WORKER, 1, 1)
    assert (found.state, found.lease_owner) == (JobState.LEASED, OTHER_WORKER)
    assert found.lease_expires_at == after(3) + LEASE
    assert (found.attempt, found.claim_number) == (1, 1)


def test_3_1_a_claimed_job_carries_what_its_handler_needs(store: JobStore) -> None:
    """Wire name, queue, payload, tags and trace context come with the claim."""
    jobs = [
        new_job(
            wire_name=f"w{number}", payload=bytes([number]), trace_context=f"t{number}",
            tags=(Tag("k", str(number)), Tag(None, "all")),
        )
        for number in range(3)
    ]  # fmt: skip
    store_all(store, [*jobs, new_job()])
    claimed = claim(store).jobs
    for job, found in zip(jobs, claimed, strict=False):
        assert (found.wire_name, found.queue, found.payload) == (job.wire_name, QUEUE, job.payload)
        assert (tuple(found.tags), found.trace_context) == (job.tags, job.trace_context)
        assert (found.schedule_id, found.tick) == (None, None)
    assert (tuple(claimed[3].tags), claimed[3].trace_context) == ((), None)


def test_3_1_within_a_queue_the_earliest_due_comes_first(store: JobStore) -> None:
    """Jobs due at one instant come in the order in which they were enqueued."""
    due_times = [after(-1), after(-3), after(-1), after(-2), after(-3)]
    ids = [stored(store, due_time=due_time) for due_time in due_times]
    expected = [ids[place] for place in (1, 4, 3, 0, 2)]
    assert ids_of(claim(store)) == expected


def test_3_1_small_claims_take_the_jobs_in_the_same_order(store: JobStore) -> None:
    """One by one or all together, the order is one."""
    ids = [stored(store, due_time=after(-due)) for due in (1, 3, 2)]
    taken = [ids_of(claim(store, max_jobs=1))[0] for _ in ids]
    assert taken == [ids[1], ids[2], ids[0]]


def test_3_1_at_most_so_many_jobs_are_claimed(store: JobStore) -> None:
    """The rest stays as it was."""
    _fill(store, mail=5)
    assert len(claim(store, max_jobs=2).jobs) == 2
    assert len(claim(store, max_jobs=2).jobs) == 2
    assert len(claim(store, max_jobs=2).jobs) == 1


def test_3_1_only_the_queues_asked_for_are_touched(store: JobStore) -> None:
    """A queue that is not named keeps its jobs."""
    ids = _fill(store, a=1, b=1, c=1)
    assert ids_of(claim(store, "a", "c")) == ids["a"] + ids["c"]
    assert state_of(store, ids["b"][0]) is JobState.SCHEDULED


def test_3_1_queues_are_taken_in_the_order_given(store: JobStore) -> None:
    """A later queue gets only what those before it leave over."""
    ids = _fill(store, a=3, b=3)
    assert ids_of(claim(store, "b", "a", max_jobs=4)) == ids["b"] + ids["a"][:1]
    assert ids_of(claim(store, "b", "a", max_jobs=4)) == ids["a"][1:]


def test_3_1_shares_come_first(store: JobStore) -> None:
    """While all queues have work, each gives its share, in the order of the shares."""
    ids = _fill(store, a=9, b=9, c=9)
    claimed = claim(store, ("b", 1), ("a", 3), ("c", 2), max_jobs=6)
    assert ids_of(claimed) == ids["b"][:1] + ids["a"][:3] + ids["c"][:2]


def test_3_1_what_a_share_does_not_fill_goes_to_the_others_in_order(store: JobStore) -> None:
    """The first queue of the list that has more takes what is left over."""
    ids = _fill(store, a=9, b=1, c=9)
    claimed = claim(store, ("b", 4), ("a", 1), ("c", 1), max_jobs=6)
    assert ids_of(claimed) == ids["b"] + ids["a"][:4] + ids["c"][:1]


def test_3_1_a_queue_with_no_share_gets_only_leftovers(store: JobStore) -> None:
    """A share of 0 still takes part in the second pass."""
    ids = _fill(store, a=1, b=9)
    claimed = claim(store, ("b", 0), ("a", 3), max_jobs=3)
    assert ids_of(claimed) == ids["b"][:2] + ids["a"]
    assert len(claim(store, ("b", 0), ("a", 3), max_jobs=3).jobs) == 3


def test_3_1_shares_never_add_up_to_more_than_was_asked_for(store: JobStore) -> None:
    """The batch is the bound, whatever the shares say."""
    ids = _fill(store, a=9, b=9)
    claimed = claim(store, ("a", 4), ("b", 4), max_jobs=5)
    assert ids_of(claimed) == ids["a"][:4] + ids["b"][:1]


def test_3_1_leftovers_come_from_jobs_that_are_due(store: JobStore) -> None:
    """Neither pass takes a job before its time."""
    ids = _fill(store, a=1, b=1)
    stored(store, queue="a", due_time=after(5))
    assert ids_of(claim(store, ("a", 1), ("b", 1), max_jobs=9)) == ids["a"] + ids["b"]


def test_3_1_a_job_that_was_tried_before_keeps_to_its_new_due_time(store: JobStore) -> None:
    """A retry queues up by when it is due, not by when it was enqueued."""
    retried = running(store)
    end(store, retried, Failed("boom", retry_at=after(10)))
    fresh = stored(store, due_time=after(5))
    assert ids_of(claim(store, now=after(9))) == [fresh]
    claimed = claim(store, now=after(10))
    assert [job.lease for job in claimed.jobs] == [(retried.job_id, WORKER, 2, 2)]


def _claim_all(store: JobStore, worker: str, wanted: ClaimRequest) -> list[UUID]:
    """Claim until nothing comes."""
    taken: list[UUID] = []
    while len(taken) < 1_000 and (found := ids_of(store.claim(worker, wanted, START))):
        taken += found
    return taken


def test_3_2_two_claimers_never_get_the_same_job(store: JobStore) -> None:
    """Four workers that claim at once share the jobs without gap or overlap."""
    workers = [f"worker-{number}" for number in range(4)]
    wanted = request(("a", 2), ("b", 1), max_jobs=3)
    for _ in range(3):
        ids = _fill(store, a=20, b=20)
        answers = at_once(store, *(partial(_claim_all, store, name, wanted) for name in workers))
        counts = Counter(job_id for taken in answers for job_id in taken)
        left = ids_of(claim(store, "a", "b", max_jobs=30))
        assert set(counts.values()) == {1}
        assert sorted([*counts, *left]) == sorted(ids["a"] + ids["b"])
        for worker, taken in zip(workers, answers, strict=True):
            assert {snapshot(store, job_id).lease_owner for job_id in taken} <= {worker}


def test_3_2_a_claimed_job_is_claimed_by_nobody_else(store: JobStore) -> None:
    """While the lease is alive, and after it has lapsed until the sweep, it is taken."""
    running(store)
    for now in (START, after(59), after(61)):
        assert not claim(store, now=now, worker=OTHER_WORKER).jobs


def test_3_5_an_empty_store_gives_no_advice(store: JobStore) -> None:
    """There is nothing to come back for."""
    assert claim(store).next_due is None


def test_3_5_the_advice_is_the_earliest_due_time_of_the_queues(store: JobStore) -> None:
    """Other queues do not count, and the earliest job need not be the first enqueued."""
    for queue, due in (("a", 30), ("b", 20), ("a", 10), ("c", 5)):
        stored(store, queue=queue, due_time=after(due))
    assert claim(store, "a", "b").next_due == after(10)
    assert claim(store, "b").next_due == after(20)


def test_3_5_the_advice_keeps_its_microseconds(store: JobStore) -> None:
    """A claim at the advised instant finds the job."""
    job_id = stored(store, due_time=after(5) + MICROSECOND)
    advice = claim(store).next_due
    assert advice == after(5) + MICROSECOND
    assert ids_of(claim(store, now=advice)) == [job_id]


def test_3_5_due_work_that_a_limit_holds_back_means_now(store: JobStore) -> None:
    """A slot may come free at any moment."""
    store.set_concurrency_limit(QUEUE, 1, None, START)
    running(store)
    stored(store)
    stored(store, queue="other", due_time=after(30))
    answer = claim(store, QUEUE, "other", now=after(1))
    assert (list(answer.jobs), answer.next_due) == ([], after(1))


def test_3_5_work_due_later_behind_a_full_limit_counts_by_its_due_time(store: JobStore) -> None:
    """Nothing is held back yet."""
    store.set_concurrency_limit(QUEUE, 1, None, START)
    running(store)
    stored(store, due_time=after(30))
    assert claim(store, now=after(1)).next_due == after(30)


def test_3_5_a_paused_queue_gives_no_advice(store: JobStore) -> None:
    """Neither its due jobs nor its later ones count, those of its neighbours do."""
    stored(store, queue="a")
    stored(store, queue="a", due_time=after(10))
    stored(store, queue="b", due_time=after(20))
    store.pause_queue("a", None, START)
    assert claim(store, "a").next_due is None
    assert claim(store, "a", "b").next_due == after(20)


def test_3_5_running_waiting_and_ended_jobs_give_no_advice(store: JobStore) -> None:
    """Only a Scheduled job can be claimed."""
    parent, ended = running(store), running(store)
    stored(store, parents=(parent.job_id,))
    end(store, ended)
    assert claim(store).next_due is None


def test_3_5_a_retry_is_advised_for_its_own_instant(store: JobStore) -> None:
    """What was handed back or is to be tried again counts like any other job."""
    lease = running(store)
    end(store, lease, Failed("boom", retry_at=after(40)))
    assert claim(store).next_due == after(40)
    end(store, claimed_job(store, lease.job_id, after(40)).lease, Released(started=True), after(50))
    assert claim(store, now=after(41)).next_due == after(50)


def test_3_5_the_advice_may_be_missing_where_jobs_came(store: JobStore) -> None:
    """A claim that brought work is followed by another anyway."""
    stored(store)
    stored(store, due_time=after(10))
    answer = claim(store)
    assert len(answer.jobs) == 1
    assert answer.next_due in (None, after(10))
