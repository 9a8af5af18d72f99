"""Chapter 4, outcomes: reports and what follows from them."""

from __future__ import annotations

from ...core.events import Verdict
from ...core.outcomes import (
    Cancelled,
    Failed,
    Lease,
    Outcome,
    Released,
    Result,
    Succeeded,
    Unroutable,
)
from ...core.states import JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from ...storage.values import DependencyMode
from .scenario import (
    OTHER_WORKER,
    START,
    WORKER,
    after,
    claim,
    claimed_job,
    end,
    new_id,
    new_job,
    report_one,
    running,
    snapshot,
    state_of,
    store_all,
    stored,
    view,
    whole,
)

RETRY = Failed("boom", "the trace", after(30))
RESULTS: tuple[Result, ...] = (
    Succeeded(b"out", (Tag(None, "t"),)), Failed("boom", "trace", None, (Tag(None, "t"),)), RETRY,
    Cancelled("asked", (Tag(None, "t"),)), Unroutable("unknown"), Released(started=True),
    Released(started=False),
)  # fmt: skip


def _strangers(lease: Lease) -> list[Lease]:
    """Give leases that differ from a live one in one part each."""
    return [
        lease._replace(job_id=new_id()),
        lease._replace(worker_id=OTHER_WORKER),
        lease._replace(attempt=lease.attempt + 1),
        lease._replace(attempt=lease.attempt - 1),
        lease._replace(claim_number=lease.claim_number + 1),
        lease._replace(claim_number=lease.claim_number - 1),
    ]


def _too_large(store: JobStore) -> Succeeded:
    return Succeeded(bytes(store.limits.max_output_bytes + 1), (Tag(None, "late"),))


def test_4_2_an_outcome_is_fenced_by_every_part_of_its_lease(store: JobStore) -> None:
    """Job, worker, attempt and claim number all have to be those of the live lease."""
    lease = running(store)
    before = whole(store)
    for stranger in _strangers(lease):
        for result in RESULTS:
            assert report_one(store, stranger, result) == (Verdict.STALE, None)
    assert whole(store) == before
    assert end(store, lease) is JobState.SUCCEEDED


def test_4_2_live_outcomes_apply_beside_stale_ones(store: JobStore) -> None:
    """Each row of a batch stands for itself, and the answers are in order."""
    leases = [running(store) for _ in range(3)]
    stranger = leases[1]._replace(claim_number=9)
    batch = [
        Outcome(leases[0], Succeeded()),
        Outcome(stranger, Failed("boom")),
        Outcome(leases[2], RETRY),
        Outcome(leases[1], Unroutable("unknown")),
    ]
    assert list(store.report(batch, after(1))) == [
        (Verdict.APPLIED, JobState.SUCCEEDED),
        (Verdict.STALE, None),
        (Verdict.APPLIED, JobState.SCHEDULED),
        (Verdict.APPLIED, JobState.QUARANTINED),
    ]


def test_4_2_an_outcome_applies_once(store: JobStore) -> None:
    """A report that is repeated, because its answer was lost, changes nothing."""
    for result in RESULTS:
        lease = running(store, queue=f"q-{new_id()}")
        end(store, lease, result)
        before = view(store, lease.job_id)
        assert report_one(store, lease, result, after(5)).verdict is Verdict.STALE
        assert view(store, lease.job_id) == before


def test_4_2_of_two_outcomes_for_one_lease_the_first_counts(store: JobStore) -> None:
    """Also within one batch."""
    lease = running(store)
    batch = [Outcome(lease, Succeeded(b"first")), Outcome(lease, Failed("second"))]
    assert [answer.verdict for answer in store.report(batch, START)] == [
        Verdict.APPLIED,
        Verdict.STALE,
    ]
    assert state_of(store, lease.job_id) is JobState.SUCCEEDED
    assert store.job_output(lease.job_id) == b"first"


def test_4_2_a_later_claim_fences_an_earlier_one_of_the_same_attempt(store: JobStore) -> None:
    """A hand-back gives the attempt back, so only the claim number tells the two apart."""
    first = running(store)
    end(store, first, Released(started=False))
    second = claimed_job(store, first.job_id).lease
    assert (second.worker_id, second.attempt) == (first.worker_id, first.attempt)
    assert report_one(store, first, Succeeded()).verdict is Verdict.STALE
    assert state_of(store, first.job_id) is JobState.LEASED
    assert end(store, second) is JobState.SUCCEEDED


def test_4_2_a_lapsed_lease_that_was_not_swept_is_alive(store: JobStore) -> None:
    """Its outcome applies: after an outage no work is lost that nobody else has begun."""
    lease = running(store)
    assert end(store, lease, now=after(3_600)) is JobState.SUCCEEDED


def test_4_2_a_swept_lease_is_dead(store: JobStore) -> None:
    """Whatever became of the job, the outcome of the lost worker comes too late."""
    lease = running(store)
    store.expire_leases(None, lambda lapsed: RETRY, 10, after(60))
    before = view(store, lease.job_id)
    assert report_one(store, lease, Succeeded(b"late"), after(61)).verdict is Verdict.STALE
    assert view(store, lease.job_id) == before


def test_4_2_an_output_over_the_limit_changes_nothing(store: JobStore) -> None:
    """The lease is kept, the others of the batch apply, and a failure can follow."""
    lease, other = running(store), running(store)
    before = view(store, lease.job_id)
    batch = [Outcome(lease, _too_large(store)), Outcome(other, Succeeded(b"fits"))]
    assert list(store.report(batch, after(1))) == [
        (Verdict.OUTPUT_TOO_LARGE, None),
        (Verdict.APPLIED, JobState.SUCCEEDED),
    ]
    assert view(store, lease.job_id) == before
    assert store.job_output(other.job_id) == b"fits"
    assert end(store, lease, Failed("output too large")) is JobState.DEAD_LETTERED


def test_4_2_a_refused_output_does_not_use_up_the_lease(store: JobStore) -> None:
    """A second outcome for the same lease, in the same batch, applies."""
    lease = running(store)
    batch = [Outcome(lease, _too_large(store)), Outcome(lease, Failed("output too large"))]
    assert [answer.verdict for answer in store.report(batch, START)] == [
        Verdict.OUTPUT_TOO_LARGE,
        Verdict.APPLIED,
    ]
    assert state_of(store, lease.job_id) is JobState.DEAD_LETTERED


def test_4_2_a_large_batch_is_answered_in_order(store: JobStore) -> None:
    """However the store writes it, each answer stands where its outcome stood."""
    store_all(store, [new_job() for _ in range(90)])
    leases = [job.lease for _ in range(3) for job in claim(store, max_jobs=30).jobs]
    stale = {lease for place, lease in enumerate(leases) if place % 7 == 3}
    batch = [
        Outcome(lease._replace(attempt=9) if lease in stale else lease, Succeeded())
        for lease in reversed(leases)
    ]
    answers = store.report(batch, START)
    expected = [Verdict.STALE if o.lease.attempt == 9 else Verdict.APPLIED for o in batch]
    assert [answer.verdict for answer in answers] == expected
    assert {state_of(store, lease.job_id) for lease in stale} == {JobState.LEASED}


def test_4_2_an_empty_report_is_no_error(store: JobStore) -> None:
    """It has no answers."""
    assert list(store.report([], START)) == []


def test_4_3_each_result_leads_to_its_state(store: JobStore) -> None:
    """The answer names the state, and the job is in it."""
    states = [
        JobState.SUCCEEDED, JobState.DEAD_LETTERED, JobState.SCHEDULED, JobState.CANCELLED,
        JobState.QUARANTINED, JobState.SCHEDULED, JobState.SCHEDULED,
    ]  # fmt: skip
    for result, state in zip(RESULTS, states, strict=True):
        lease = running(store, queue=f"q-{new_id()}")
        assert end(store, lease, result) is state
        assert state_of(store, lease.job_id) is state


def test_4_3_a_retry_is_due_when_its_outcome_says(store: JobStore) -> None:
    """The attempt is used up, and the next claim counts on."""
    lease = running(store)
    end(store, lease, RETRY, after(1))
    found = snapshot(store, lease.job_id)
    assert (found.due_time, found.attempt, found.claim_number) == (after(30), 1, 1)
    assert not claim(store, now=after(29)).jobs
    assert claimed_job(store, lease.job_id, after(30)).lease == (lease.job_id, WORKER, 2, 2)


def test_4_3_an_end_keeps_the_cause_and_the_instant(store: JobStore) -> None:
    """Each end but success says why."""
    for result, cause in (
        (Failed("boom"), "boom"),
        (Cancelled("asked"), "asked"),
        (Unroutable("unknown"), "unknown"),
        (Succeeded(), None),
    ):
        lease = running(store)
        end(store, lease, result, after(4))
        found = snapshot(store, lease.job_id)
        assert (found.terminal_cause, found.terminal_at) == (cause, after(4))
        assert (found.attempt, found.claim_number, found.due_time) == (1, 1, START)


def test_4_4_all_that_follows_is_there_when_the_report_returns(store: JobStore) -> None:
    """State, lease, output, tags, log, released children and cancelled ones."""
    lease = running(store)
    child = stored(store, parents=(lease.job_id,))
    end(store, lease, Succeeded(b"out", (Tag("k", "v"),)), after(2))
    found = view(store, lease.job_id)
    assert (found.snapshot.state, found.snapshot.lease_owner) == (JobState.SUCCEEDED, None)
    assert (found.output, found.tags) == (b"out", [Tag("k", "v")])
    if store.history.value != "off":
        assert (found.history[-1].state, found.history[-1].at) == (JobState.SUCCEEDED, after(2))
        assert store.job_history(child)[-1].at == after(2)
    assert state_of(store, child) is JobState.SCHEDULED


def test_4_4_one_report_can_end_a_parent_and_its_child_at_once_or_not_at_all(
    store: JobStore,
) -> None:
    """Outcomes of unrelated jobs and of parents apply in one batch, each with its own cascade."""
    parents = [running(store) for _ in range(4)]
    children = [stored(store, parents=(parent.job_id,), queue="later") for parent in parents]
    plain = running(store)
    results: list[Result] = [Succeeded(), Failed("boom"), RETRY, Unroutable("unknown")]
    batch = [Outcome(lease, result) for lease, result in zip(parents, results, strict=True)]
    answers = store.report([*batch, Outcome(plain, Succeeded())], START)
    assert [answer.verdict for answer in answers] == [Verdict.APPLIED] * 5
    assert [state_of(store, child) for child in children] == [
        JobState.SCHEDULED, JobState.CANCELLED, JobState.AWAITING_PARENT, JobState.CANCELLED,
    ]  # fmt: skip


def test_4_4_a_cascade_goes_down_two_hundred_levels(store: JobStore) -> None:
    """However deep, it is done when the report returns, each cause naming the parent above."""
    chain = [new_job()]
    for _ in range(200):
        chain.append(new_job(parents=(chain[-1].job_id,)))
    store_all(store, chain)
    end(store, claimed_job(store, chain[0].job_id).lease, Failed("boom"), after(3))
    for place in (1, 2, 100, 200):
        found = snapshot(store, chain[place].job_id)
        assert (found.state, found.terminal_at) == (JobState.CANCELLED, after(3))
        assert str(chain[place - 1].job_id) in str(found.terminal_cause)
    assert {count.state: count.count for count in store.count_jobs()} == {
        JobState.DEAD_LETTERED: 1,
        JobState.CANCELLED: 200,
    }


def test_4_4_a_parent_releases_or_cancels_a_thousand_children(store: JobStore) -> None:
    """However wide, every child has moved when the report returns."""
    parent = running(store)
    modes = (DependencyMode.ON_SUCCESS, DependencyMode.ON_ANY_TERMINAL)
    store_all(store, [new_job(parents=(parent.job_id,), mode=modes[n % 2]) for n in range(1_000)])
    end(store, parent, Failed("boom"))
    assert {count.state: count.count for count in store.count_jobs()} == {
        JobState.SCHEDULED: 500,
        JobState.CANCELLED: 500,
        JobState.DEAD_LETTERED: 1,
    }


def test_4_5_an_output_is_stored_with_success_alone(store: JobStore) -> None:
    """Whatever the history policy; other ends leave none, and none is left by a stale one."""
    for result in RESULTS:
        lease = running(store, queue=f"q-{new_id()}")
        end(store, lease, result)
        expected = b"out" if isinstance(result, Succeeded) else None
        assert store.job_output(lease.job_id) == expected
    lease = running(store, queue="stale")
    report_one(store, lease._replace(claim_number=5), Succeeded(b"stale"))
    assert store.job_output(lease.job_id) is None


def test_4_5_outputs_of_one_batch_do_not_mix(store: JobStore) -> None:
    """Each job gets its own, and those without get none."""
    leases = [running(store) for _ in range(4)]
    outputs = [b"first", None, b"third", b""]
    store.report(
        [Outcome(lease, Succeeded(out)) for lease, out in zip(leases, outputs, strict=True)], START
    )
    assert [store.job_output(lease.job_id) for lease in leases] == outputs
    assert [store.job_payload(lease.job_id) for lease in leases] == [b"{}"] * 4


def test_4_5_tags_are_added_with_every_live_outcome(store: JobStore) -> None:
    """They join those that are there, in first-seen order, and survive a retry."""
    new, old = Tag(None, "new"), Tag("k", "old")
    for result in (
        Succeeded(None, (new, old)),
        Failed("boom", "", None, (new, old)),
        Failed("boom", "", START, (new, old)),
        Cancelled("asked", (new, old)),
    ):
        lease = running(store, tags=(old,), queue=f"q-{new_id()}")
        end(store, lease, result)
        assert store.job_tags(lease.job_id) == [old, new]


def test_4_5_a_retry_carries_the_tags_of_the_attempts_before(store: JobStore) -> None:
    """The next handler finds what the last one has added."""
    lease = running(store, tags=(Tag(None, "a"),))
    end(store, lease, Failed("boom", "", START, (Tag(None, "b"), Tag(None, "b"))))
    job = claimed_job(store, lease.job_id)
    assert list(job.tags) == [Tag(None, "a"), Tag(None, "b")]
    end(store, job.lease, Succeeded(None, (Tag(None, "c"), Tag(None, "a"))))
    assert store.job_tags(lease.job_id) == [Tag(None, "a"), Tag(None, "b"), Tag(None, "c")]


def test_4_5_tags_of_one_batch_do_not_mix(store: JobStore) -> None:
    """Live jobs get their own, stale and refused ones none."""
    first, second, stale, refused = (running(store) for _ in range(4))
    store.report(
        [
            Outcome(first, Succeeded(None, (Tag(None, "1"), Tag(None, "both")))),
            Outcome(stale._replace(attempt=7), Succeeded(None, (Tag(None, "3"),))),
            Outcome(refused, _too_large(store)),
            Outcome(second, Failed("boom", "", None, (Tag(None, "both"), Tag(None, "2")))),
        ],
        START,
    )
    assert store.job_tags(first.job_id) == [Tag(None, "1"), Tag(None, "both")]
    assert store.job_tags(second.job_id) == [Tag(None, "both"), Tag(None, "2")]
    assert store.job_tags(stale.job_id) == store.job_tags(refused.job_id) == []
