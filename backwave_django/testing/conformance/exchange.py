"""Chapter 4, hand-backs (4.7) and the exchange (4.8)."""

from __future__ import annotations

from ...core.events import Verdict
from ...core.outcomes import (
    Failed,
    Outcome,
    Released,
    Succeeded,
)
from ...core.states import JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from .scenario import (
    LEASE,
    QUEUE,
    START,
    WORKER,
    after,
    claimed_job,
    end,
    give_up,
    ids_of,
    new_job,
    request,
    running,
    snapshot,
    state_of,
    store_all,
    stored,
)

RETRY = Failed("boom", "the trace", after(30))


def _too_large(store: JobStore) -> Succeeded:
    return Succeeded(bytes(store.limits.max_output_bytes + 1), (Tag(None, "late"),))


def test_4_7_a_job_whose_handler_never_began_gets_its_attempt_back(store: JobStore) -> None:
    """It is due now, and its next attempt is the first again, under a new claim number."""
    lease = running(store, due_time=after(-5))
    end(store, lease, Released(started=False), after(10))
    found = snapshot(store, lease.job_id)
    assert (found.state, found.due_time) == (JobState.SCHEDULED, after(10))
    assert (found.attempt, found.claim_number) == (0, 1)
    assert claimed_job(store, lease.job_id, after(10)).lease == (lease.job_id, WORKER, 1, 2)


def test_4_7_a_job_whose_handler_had_begun_has_used_its_attempt(store: JobStore) -> None:
    """It is due now, and its next attempt is the second."""
    lease = running(store)
    end(store, lease, Released(started=True), after(10))
    found = snapshot(store, lease.job_id)
    assert (found.state, found.due_time) == (JobState.SCHEDULED, after(10))
    assert (found.attempt, found.claim_number) == (1, 1)
    assert claimed_job(store, lease.job_id, after(10)).lease == (lease.job_id, WORKER, 2, 2)


def test_4_7_a_hand_back_releases_no_child(store: JobStore) -> None:
    """The job has not ended."""
    lease = running(store)
    child = stored(store, parents=(lease.job_id,))
    end(store, lease, Released(started=True))
    assert state_of(store, child) is JobState.AWAITING_PARENT


def test_4_7_a_swept_job_counts_its_attempt(store: JobStore) -> None:
    """A lost worker is no hand-back: its attempt is used."""
    lease = running(store)
    store.expire_leases(None, lambda lapsed: RETRY, 10, after(60))
    assert snapshot(store, lease.job_id).attempt == 1
    assert store.expire_leases(None, give_up, 10, after(60)) == 0


def test_4_8_an_exchange_reports_and_then_claims(store: JobStore) -> None:
    """What the report frees or releases, the claim can take."""
    store.set_concurrency_limit(QUEUE, 1, None, START)
    lease = running(store)
    child = stored(store, parents=(lease.job_id,))
    reports, claimed = store.exchange(
        WORKER, [Outcome(lease, Succeeded())], request(QUEUE), after(1)
    )
    assert list(reports) == [(Verdict.APPLIED, JobState.SUCCEEDED)]
    assert claimed is not None
    assert ids_of(claimed) == [child]
    assert snapshot(store, child).lease_expires_at == after(1) + LEASE


def test_4_8_a_kept_slot_makes_the_claim_ask_for_less(store: JobStore) -> None:
    """An outcome that was refused for its output still holds its slot."""
    leases = [running(store) for _ in range(3)]
    waiting = store_all(store, [new_job() for _ in range(5)])
    outcomes = [Outcome(leases[0], _too_large(store)), Outcome(leases[1], Succeeded())]
    outcomes.append(Outcome(leases[2]._replace(attempt=9), Succeeded()))
    reports, claimed = store.exchange(WORKER, outcomes, request(QUEUE, max_jobs=3), START)
    assert [report.verdict for report in reports] == [
        Verdict.OUTPUT_TOO_LARGE, Verdict.APPLIED, Verdict.STALE,
    ]  # fmt: skip
    assert claimed is not None
    assert ids_of(claimed) == waiting[:2]


def test_4_8_an_exchange_without_room_claims_nothing(store: JobStore) -> None:
    """All slots are kept, so there is nothing to ask for."""
    lease = running(store)
    waiting = stored(store)
    outcome = Outcome(lease, _too_large(store))
    reports, claimed = store.exchange(WORKER, [outcome], request(QUEUE, max_jobs=1), START)
    assert [report.verdict for report in reports] == [Verdict.OUTPUT_TOO_LARGE]
    assert claimed is not None
    assert not claimed.jobs
    assert state_of(store, waiting) is JobState.SCHEDULED


def test_4_8_either_half_of_an_exchange_may_be_missing(store: JobStore) -> None:
    """Without a request nothing is claimed, without outcomes nothing is reported."""
    lease, waiting = running(store), stored(store)
    reports, claimed = store.exchange(WORKER, [Outcome(lease, Succeeded())], None, START)
    assert [report.verdict for report in reports] == [Verdict.APPLIED]
    assert claimed is None
    assert state_of(store, waiting) is JobState.SCHEDULED
    reports, claimed = store.exchange(WORKER, [], request(QUEUE), START)
    assert list(reports) == []
    assert claimed is not None
    assert ids_of(claimed) == [waiting]
    assert store.exchange(WORKER, [], None, START) == ([], None)


def test_4_8_the_claim_of_an_exchange_is_clamped_and_gives_advice(store: JobStore) -> None:
    """It is a claim like any other."""
    most = store.limits.max_claim_batch
    store_all(store, [new_job() for _ in range(most + 1)])
    stored(store, due_time=after(40))
    lease = running(store, queue="other")
    wanted = request(QUEUE, max_jobs=most + 9)
    _, first = store.exchange(WORKER, [Outcome(lease, Succeeded())], wanted, START)
    _, second = store.exchange(WORKER, [], wanted, START)
    _, third = store.exchange(WORKER, [], wanted, START)
    assert (first, second, third) != (None, None, None)
    assert [len(claimed.jobs) for claimed in (first, second, third) if claimed] == [most, 1, 0]
    assert third is not None
    assert third.next_due == after(40)
