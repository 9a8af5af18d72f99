"""A worker and a sweep that reach for one lease at once: one of them has it, never both."""

from __future__ import annotations

from functools import partial

from backwave_django.core.events import Renewal, Verdict
from backwave_django.core.outcomes import Outcome, Succeeded
from backwave_django.core.states import JobState
from backwave_django.storage.contract import JobStore
from backwave_django.testing.conformance.scenario import (
    LEASE,
    after,
    at_once,
    retry_in,
    running,
    snapshot,
    steps_of,
)

ROUNDS = 12


def test_4_6_a_report_and_a_sweep_at_once_settle_a_lease_once(store: JobStore) -> None:
    """Recorded, or lost to the sweep; a finished job stays finished (A001, A002)."""
    for _ in range(ROUNDS):
        lease = running(store)
        reports, swept = at_once(
            store,
            partial(store.report, [Outcome(lease, Succeeded())], after(61)),
            partial(store.expire_leases, None, retry_in(90), 10, after(61)),
        )
        verdict = reports[0].verdict
        if verdict is Verdict.BUSY:  # the sweep had the row; what it did decides
            (again,) = store.report([Outcome(lease, Succeeded())], after(61))
            verdict = again.verdict
        state = snapshot(store, lease.job_id).state
        assert (verdict, swept, state) in {
            (Verdict.APPLIED, 0, JobState.SUCCEEDED),
            (Verdict.STALE, 1, JobState.SCHEDULED),
        }
        if store.history.value != "off":
            assert steps_of(store, lease.job_id)[2:] == [state]


def test_4_6_a_heartbeat_and_a_sweep_at_once_agree(store: JobStore) -> None:
    """The lease is renewed and stays, or is swept and gone (A001)."""
    for _ in range(ROUNDS):
        lease = running(store)
        renewals, swept = at_once(
            store,
            partial(store.heartbeat, [lease], LEASE, after(61)),
            partial(store.expire_leases, None, retry_in(90), 10, after(61)),
        )
        state = snapshot(store, lease.job_id).state
        assert (renewals[0], swept, state) in {
            (Renewal.RENEWED, 0, JobState.LEASED),
            (Renewal.LOST, 1, JobState.SCHEDULED),
            (Renewal.BUSY, 1, JobState.SCHEDULED),
        }
        # Whoever won, a worker that lost it is told so the next time.
        (answer,) = store.heartbeat([lease], LEASE, after(62))
        assert (answer is Renewal.LOST) is (state is JobState.SCHEDULED)
        if state is JobState.LEASED:
            store.report([Outcome(lease, Succeeded())], after(62))
