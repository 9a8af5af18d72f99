"""Chapter 3, claim: queues that are paused or have a concurrency limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ...core.events import Renewal
from ...core.outcomes import Cancelled, Failed, Outcome, Released, Result, Succeeded, Unroutable
from ...core.states import JobState
from ...storage.contract import JobStore
from .scenario import (
    LEASE,
    OTHER_WORKER,
    PATIENCE_SECONDS,
    QUEUE,
    START,
    WORKER,
    after,
    at_once,
    claim,
    end,
    give_up,
    new_job,
    request,
    retry_in,
    running,
    state_of,
    store_all,
    stored,
)

ENDS: tuple[Result, ...] = (
    Succeeded(), Failed("boom"), Failed("boom", retry_at=START), Cancelled("asked"),
    Unroutable("unknown"), Released(started=True), Released(started=False),
)  # fmt: skip


def _leased(store: JobStore, queue: str = QUEUE) -> int:
    """Count the leased jobs of a queue."""
    return sum(
        count.count
        for count in store.count_jobs()
        if count.queue == queue and count.state is JobState.LEASED
    )


def test_3_3_a_paused_queue_yields_nothing_until_it_is_resumed(store: JobStore) -> None:
    """Its jobs stay where they are, and come once it is resumed."""
    stored(store)
    store.pause_queue(QUEUE, None, START)
    assert not claim(store).jobs
    assert not claim(store, now=after(99)).jobs
    store.resume_queue(QUEUE, None, START)
    assert len(claim(store).jobs) == 1


def test_3_3_a_pause_leaves_other_queues_alone(store: JobStore) -> None:
    """A claim that names a paused queue goes on with its others, in both passes."""
    for queue in ("a", "b", "b"):
        stored(store, queue=queue)
    store.pause_queue("a", None, START)
    jobs = claim(store, ("a", 1), ("b", 1), max_jobs=2).jobs
    assert [job.queue for job in jobs] == ["b", "b"]


def test_3_3_a_queue_may_be_paused_before_its_first_job(store: JobStore) -> None:
    """The pause waits for the jobs."""
    store.pause_queue("new", None, START)
    stored(store, queue="new")
    assert not claim(store, "new").jobs


def test_3_3_a_pause_leaves_running_jobs_alone(store: JobStore) -> None:
    """They renew their leases, end, and are swept as before."""
    renewed, ended, lapsed = running(store), running(store), running(store)
    store.pause_queue(QUEUE, None, START)
    assert end(store, ended) is JobState.SUCCEEDED
    assert store.heartbeat([renewed], LEASE, after(30)) == [Renewal.RENEWED]
    assert store.expire_leases(None, give_up, 10, after(61)) == 1
    assert state_of(store, lapsed.job_id) is JobState.DEAD_LETTERED


class _Setting(NamedTuple):
    """A setting of a queue that is made while others claim from it."""

    make: Callable[[], object]
    begun: threading.Event
    made: threading.Event


def _make(setting: _Setting) -> None:
    """Wait for the first claim, then make the setting."""
    setting.begun.wait(PATIENCE_SECONDS)
    setting.make()
    setting.made.set()


def _claimed_after(store: JobStore, worker: str, queue: str, setting: _Setting) -> int:
    """Claim until a claim has started after the setting was made; give what that one got."""
    wanted = request(queue, max_jobs=1)
    for _ in range(60):
        starts_later = setting.made.is_set()
        jobs = store.claim(worker, wanted, START).jobs
        setting.begun.set()
        if starts_later:
            return len(jobs)
    setting.made.wait(PATIENCE_SECONDS)
    return len(store.claim(worker, wanted, START).jobs)


def _claims_around(store: JobStore, queue: str, make: Callable[[], object]) -> list[int]:
    """Let two workers claim while a setting is made; give what each got afterwards."""
    store_all(store, [new_job(queue=queue) for _ in range(150)])
    setting = _Setting(make, threading.Event(), threading.Event())
    workers = (WORKER, OTHER_WORKER)
    claims = [partial(_claimed_after, store, worker, queue, setting) for worker in workers]
    return at_once(store, *claims, partial(_make, setting))[:2]


def test_3_3_a_claim_that_starts_after_a_first_pause_honours_it(store: JobStore) -> None:
    """Other claims run all the while; none that starts after the pause yields anything."""
    for number in range(3):
        queue = f"busy-{number}"
        assert _claims_around(store, queue, partial(store.pause_queue, queue, None, START)) == [
            0,
            0,
        ]
        assert not claim(store, queue).jobs


def test_3_4_no_more_jobs_run_than_the_limit_allows(store: JobStore) -> None:
    """The limit bounds the whole cluster, over several claims and workers."""
    store.set_concurrency_limit(QUEUE, 3, None, START)
    store_all(store, [new_job() for _ in range(6)])
    assert len(claim(store, max_jobs=2).jobs) == 2
    assert len(claim(store, max_jobs=2, worker=OTHER_WORKER).jobs) == 1
    assert not claim(store).jobs


def test_3_4_a_limit_bounds_one_claim_too(store: JobStore) -> None:
    """A batch larger than the limit is cut to it."""
    store.set_concurrency_limit(QUEUE, 2, None, START)
    store_all(store, [new_job() for _ in range(6)])
    assert len(claim(store, max_jobs=6).jobs) == 2


def test_3_4_every_way_out_of_a_lease_frees_its_slot(store: JobStore) -> None:
    """Success, failure, retry, cancel, quarantine and hand-back alike."""
    for number, result in enumerate(ENDS):
        queue = f"q{number}"
        store.set_concurrency_limit(queue, 1, None, START)
        lease = running(store, queue=queue)
        stored(store, queue=queue, due_time=after(-1))
        assert not claim(store, queue).jobs
        end(store, lease, result)
        assert len(claim(store, queue).jobs) == 1


def test_3_4_a_lapsed_lease_counts_until_it_is_swept(store: JobStore) -> None:
    """Only the sweep says that a worker is lost."""
    store.set_concurrency_limit(QUEUE, 1, None, START)
    running(store)
    stored(store)
    assert not claim(store, now=after(120)).jobs
    assert store.expire_leases(None, retry_in(9_999), 10, after(120)) == 1
    assert len(claim(store, now=after(120)).jobs) == 1


def test_3_4_a_lowered_limit_takes_no_lease_away(store: JobStore) -> None:
    """It only stops new ones, until enough have ended."""
    store_all(store, [new_job() for _ in range(6)])
    leases = [job.lease for job in claim(store, max_jobs=4).jobs]
    store.set_concurrency_limit(QUEUE, 2, None, START)
    assert store.heartbeat(leases, LEASE, after(1)) == [Renewal.RENEWED] * 4
    for lease, free in zip(leases, (0, 0, 1), strict=False):
        end(store, lease)
        assert len(claim(store, max_jobs=1).jobs) == free


def test_3_4_a_limit_counts_what_ran_before_it_was_set(store: JobStore) -> None:
    """The very first limit of a queue finds its leases counted."""
    store_all(store, [new_job() for _ in range(4)])
    claim(store, max_jobs=2)
    store.set_concurrency_limit(QUEUE, 3, None, START)
    assert len(claim(store).jobs) == 1


def test_3_4_a_limit_that_is_raised_or_lifted_lets_more_run(store: JobStore) -> None:
    """The next claim already gets them."""
    store.set_concurrency_limit(QUEUE, 1, None, START)
    store_all(store, [new_job() for _ in range(9)])
    assert len(claim(store).jobs) == 1
    store.set_concurrency_limit(QUEUE, 3, None, START)
    assert len(claim(store).jobs) == 2
    store.set_concurrency_limit(QUEUE, None, None, START)
    assert len(claim(store).jobs) == 6


def test_3_4_a_limit_bounds_its_own_queue_alone(store: JobStore) -> None:
    """Its neighbours in the same claim take what it leaves, and each limit counts for itself."""
    for queue in ("a", "b", "c"):
        store_all(store, [new_job(queue=queue) for _ in range(4)])
    store.set_concurrency_limit("a", 1, None, START)
    store.set_concurrency_limit("b", 2, None, START)
    jobs = claim(store, ("a", 4), ("b", 4), ("c", 2), max_jobs=12).jobs
    assert [job.queue for job in jobs] == [*"abb", *"cccc"]


def test_3_4_both_passes_of_a_claim_count_against_the_limit(store: JobStore) -> None:
    """What the first pass took leaves less for the second."""
    store.set_concurrency_limit("a", 3, None, START)
    store_all(store, [new_job(queue="a") for _ in range(9)])
    assert len(claim(store, ("a", 2), ("b", 4), max_jobs=6).jobs) == 3


def test_3_4_claims_at_once_do_not_exceed_the_limit_together(store: JobStore) -> None:
    """Also right after the very first limit, and whatever each of them asks for."""
    for number in range(6):
        queue = f"limited-{number}"
        store_all(store, [new_job(queue=queue) for _ in range(20)])
        store.set_concurrency_limit(queue, 3, None, START)
        calls = [
            partial(claim, store, queue, worker=f"w{worker}", max_jobs=2) for worker in range(4)
        ]
        assert sum(len(claimed.jobs) for claimed in at_once(store, *calls)) <= 3
        claim(store, queue)
        assert _leased(store, queue) == 3


def test_3_4_a_limit_holds_while_jobs_come_and_go(store: JobStore) -> None:
    """Workers claim and report at once; at no moment do more run than the limit allows."""
    store.set_concurrency_limit(QUEUE, 2, None, START)
    store_all(store, [new_job() for _ in range(40)])
    wanted = request(QUEUE, max_jobs=2)

    def work(worker: str) -> int:
        most = 0
        for _ in range(12):
            claimed = store.claim(worker, wanted, START)
            most = max(most, _leased(store))
            store.report([Outcome(job.lease, Succeeded()) for job in claimed.jobs], START)
        return most

    calls = [partial(work, f"w{worker}") for worker in range(3)]
    answers = at_once(store, *calls)
    assert max(answers) == 2


def test_3_4_limited_queues_named_in_opposite_orders_do_not_deadlock(store: JobStore) -> None:
    """Claimers take their turns in one order, whatever their policies say."""
    for queue in ("a", "b"):
        store_all(store, [new_job(queue=queue) for _ in range(40)])
        store.set_concurrency_limit(queue, 30, None, START)

    def work(*queues: str) -> int:
        return sum(len(claim(store, *queues, max_jobs=1).jobs) for _ in range(12))

    answers = at_once(store, *[lambda: work("a", "b"), lambda: work("b", "a")] * 2)
    assert sum(answers) == 48


def test_3_4_a_first_limit_binds_claims_that_start_after_it(store: JobStore) -> None:
    """Set while other claims run, it is exceeded by nothing that starts later."""
    for number in range(3):
        queue = f"first-{number}"
        running(store, queue=queue)  # so that the limit leaves no room
        limit = partial(store.set_concurrency_limit, queue, 1, None, START)
        assert _claims_around(store, queue, limit) == [0, 0]
