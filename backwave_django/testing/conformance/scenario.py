"""What the tests of the suite share: fixed instants, ids in order, and small steps.

Nothing here reads a clock or draws by chance. ``assert`` is what these steps fail by, so
the suite is not to be run under ``python -O``.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from ...core.commands import ClaimRequest
from ...core.dispatch import QueueShare
from ...core.events import Claimed, Reported, Verdict
from ...core.outcomes import ClaimedJob, Failed, LapsedLease, Lease, Outcome, Result, Succeeded
from ...core.states import JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from ...storage.values import EnqueueStatus, JobFilter, JobSnapshot, NewJob, Transition

START = datetime(2026, 3, 1, 12, 0, 0, 123_457, tzinfo=UTC)
"""When every scenario starts; its microseconds are there to be lost."""

SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=60)
MICROSECOND = timedelta(microseconds=1)
QUEUE = "mail"
WORKER = "worker-1"
OTHER_WORKER = "worker-2"
PATIENCE_SECONDS = 60.0
"""How long a test waits for a thread before it fails."""

_numbers = itertools.count(1)
_turns = itertools.count()


def _nothing() -> None:
    """Do nothing: threads need no care unless a runner says so."""


after_thread: Callable[[], None] = _nothing
"""Called at the end of each thread that a test starts.

A runner sets it where a thread must let go of something, such as Django's connections.
"""


def after(seconds: float) -> datetime:
    """Give the instant that lies so many seconds after the start."""
    return START + timedelta(seconds=seconds)


def new_id() -> UUID:
    """Make the next id: shaped as version 7, growing, the same in every run."""
    return UUID(int=0x7 << 76 | 0b10 << 62 | next(_numbers))


def new_job(**changes: Any) -> NewJob:
    """Make a job that is due at the start."""
    fields: dict[str, Any] = {
        "job_id": new_id(),
        "wire_name": "send_mail",
        "queue": QUEUE,
        "payload": b"{}",
        "due_time": START,
    }
    return NewJob(**(fields | changes))


def store_all(store: JobStore, jobs: Sequence[NewJob], now: datetime = START) -> list[UUID]:
    """Enqueue jobs that must all be accepted; give their ids."""
    statuses = [result.status for result in store.enqueue_many(jobs, now)]
    assert statuses == [EnqueueStatus.OK] * len(jobs)
    return [job.job_id for job in jobs]


def stored(store: JobStore, now: datetime = START, **changes: Any) -> UUID:
    """Enqueue one job that must be accepted; give its id."""
    return store_all(store, [new_job(**changes)], now)[0]


def request(
    *queues: str | tuple[str, int], max_jobs: int = 10, lease: timedelta = LEASE
) -> ClaimRequest:
    """Ask for jobs of some queues; a pair is a queue and the most of its first pass."""
    shares = [(queue, max_jobs) if isinstance(queue, str) else queue for queue in queues]
    return ClaimRequest(tuple(QueueShare(*share) for share in shares), max_jobs, lease)


def claim(
    store: JobStore,
    *queues: str | tuple[str, int],
    now: datetime = START,
    worker: str = WORKER,
    max_jobs: int = 10,
) -> Claimed:
    """Claim from some queues, or from the usual one."""
    return store.claim(worker, request(*(queues or (QUEUE,)), max_jobs=max_jobs), now)


def ids_of(claimed: Claimed) -> list[UUID]:
    """Give the ids of claimed jobs, in the order of the answer."""
    return [job.lease.job_id for job in claimed.jobs]


def claimed_job(
    store: JobStore, job_id: UUID, now: datetime = START, worker: str = WORKER
) -> ClaimedJob:
    """Claim this very job, which must be the first of its queue."""
    answer = claim(store, snapshot(store, job_id).queue, now=now, worker=worker, max_jobs=1)
    assert ids_of(answer) == [job_id]
    return answer.jobs[0]


def running(store: JobStore, now: datetime = START, **changes: Any) -> Lease:
    """Enqueue one job and claim it; give its lease."""
    return claimed_job(store, stored(store, now, **changes), now).lease


def report_one(store: JobStore, lease: Lease, result: Result, now: datetime = START) -> Reported:
    """Report one outcome; give the answer."""
    (answer,) = store.report([Outcome(lease, result)], now)
    return answer


def end(
    store: JobStore, lease: Lease, result: Result | None = None, now: datetime = START
) -> JobState:
    """Report an outcome that must apply; give the state that it led to."""
    answer = report_one(store, lease, Succeeded() if result is None else result, now)
    assert answer.verdict is Verdict.APPLIED
    assert answer.state is not None
    return answer.state


def cancelled_job(store: JobStore, now: datetime = START, **changes: Any) -> UUID:
    """Enqueue one job and cancel it; give its id."""
    job_id = stored(store, now, **changes)
    store.cancel(job_id, None, now)
    return job_id


def settled(store: JobStore, lease: Lease, result: Result, now: datetime = START) -> Reported:
    """Report one outcome again and again until no row that it needs is locked."""
    pause = threading.Event()
    for _ in range(2_000):
        answer = report_one(store, lease, result, now)
        if answer.verdict is not Verdict.BUSY:
            return answer
        pause.wait(0.002)
    pytest.fail("the store answered BUSY two thousand times, though no lock can last")


def snapshot(store: JobStore, job_id: UUID) -> JobSnapshot:
    """Read a job that must be there."""
    found = store.get_job(job_id)
    assert found is not None
    return found


def state_of(store: JobStore, job_id: UUID) -> JobState:
    """Read the state of a job that must be there."""
    return snapshot(store, job_id).state


class View(NamedTuple):
    """All that a store shows of one job."""

    snapshot: JobSnapshot
    payload: bytes | None
    output: bytes | None
    tags: list[Tag]
    history: list[Transition]


def view(store: JobStore, job_id: UUID) -> View:
    """Read all that there is of a job."""
    return View(
        snapshot(store, job_id),
        store.job_payload(job_id),
        store.job_output(job_id),
        store.job_tags(job_id),
        store.job_history(job_id),
    )


def whole(store: JobStore) -> list[View]:
    """Read all that there is of all jobs, by sequence."""
    views: list[View] = []
    page = store.list_jobs(JobFilter(), limit=100)
    while page:
        views += [view(store, job.job_id) for job in page]
        page = store.list_jobs(JobFilter(), after=page[-1].sequence, limit=100)
    return views


def steps_of(store: JobStore, job_id: UUID) -> list[JobState]:
    """Read the states that a job has gone through, from its log."""
    return [entry.state for entry in store.job_history(job_id)]


def needs_history(store: JobStore) -> None:
    """Skip what reads the transition log where the store's policy keeps none."""
    if store.history.value == "off":
        pytest.skip("the store keeps no history")


def retry_in(seconds: float) -> Callable[[LapsedLease], Failed]:
    """Decide of each lapsed lease: tried again so many seconds after the start."""
    return lambda lapsed: Failed("worker lost", retry_at=after(seconds))


def give_up(lapsed: LapsedLease) -> Failed:
    """Decide of each lapsed lease: no further attempt."""
    return Failed(f"worker lost: {lapsed.lease.worker_id}")


def at_once(store: JobStore, *calls: Callable[[], Any]) -> list[Any]:
    """Make calls at once, each in a thread of its own; give their answers in order.

    The thread that is started last is mostly the first to go on, so every other time
    they are started from the other end.
    """
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            store.get_job(new_id())  # so that no thread still connects while others run
            barrier.wait(PATIENCE_SECONDS)
            return call()
        finally:
            after_thread()

    with ThreadPoolExecutor(len(calls)) as pool:
        turn = -1 if next(_turns) % 2 else 1
        futures = [pool.submit(run, call) for call in calls[::turn]]
        return [future.result(PATIENCE_SECONDS) for future in futures][::turn]
