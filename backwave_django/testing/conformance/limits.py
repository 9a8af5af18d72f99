"""Chapter 0, ground rules: limits (0.5)."""

from __future__ import annotations

import pytest

from ...core.events import Verdict
from ...core.outcomes import Failed, Succeeded, Unroutable
from ...storage.contract import JobStore
from ...storage.values import EnqueueStatus, JobFilter
from .scenario import (
    START,
    claim,
    end,
    new_job,
    report_one,
    running,
    snapshot,
    store_all,
    stored,
)


def test_0_5_a_payload_at_the_limit_is_stored_whole_and_one_over_it_is_refused(
    store: JobStore,
) -> None:
    """The limit is in bytes, and nothing is cut to fit."""
    most = store.limits.max_payload_bytes
    payload = bytes(range(256)) * (most // 256) + b"x" * (most % 256)
    assert store.job_payload(stored(store, payload=payload)) == payload
    refused = store.enqueue(new_job(payload=payload + b"x"), START)
    assert refused.status is EnqueueStatus.PAYLOAD_TOO_LARGE


def test_0_5_a_wire_name_is_measured_in_code_points(store: JobStore) -> None:
    """A name of the longest length is kept whole, however many bytes it takes."""
    name = "🦄" * store.limits.max_wire_name_length
    assert snapshot(store, stored(store, wire_name=name)).wire_name == name
    refused = store.enqueue(new_job(wire_name=name + "x"), START)
    assert refused.status is EnqueueStatus.WIRE_NAME_TOO_LONG


def test_0_5_a_job_has_at_most_so_many_parents(store: JobStore) -> None:
    """As many as the limit says are accepted, one more is refused."""
    parents = store_all(store, [new_job() for _ in range(store.limits.max_parents_per_job + 1)])
    assert store.enqueue(new_job(parents=tuple(parents[1:])), START).status is EnqueueStatus.OK
    refused = store.enqueue(new_job(parents=tuple(parents)), START)
    assert refused.status is EnqueueStatus.TOO_MANY_PARENTS


def test_0_5_a_claim_is_clamped_to_the_largest_batch(store: JobStore) -> None:
    """A larger wish is no error; it gets what the limit allows."""
    most = store.limits.max_claim_batch
    store_all(store, [new_job() for _ in range(most + 2)])
    assert len(claim(store, max_jobs=most + 2).jobs) == most
    assert len(claim(store, max_jobs=most + 2).jobs) == 2


def test_0_5_a_page_is_clamped_to_the_largest_page(store: JobStore) -> None:
    """A reader that asks for everything gets one page."""
    most = store.limits.max_monitor_page_size
    store_all(store, [new_job() for _ in range(most + 1)])
    assert len(store.list_jobs(JobFilter(), limit=most + 1)) == most


def test_0_5_an_output_at_the_limit_is_kept_whole_and_one_over_it_is_refused(
    store: JobStore,
) -> None:
    """An output is data that a descendant decodes: it is never cut."""
    output = b"\x00\xff" * (store.limits.max_output_bytes // 2)
    output += b"x" * (store.limits.max_output_bytes - len(output))
    lease = running(store)
    assert report_one(store, lease, Succeeded(output + b"x")).verdict is Verdict.OUTPUT_TOO_LARGE
    end(store, lease, Succeeded(output))
    assert store.job_output(lease.job_id) == output


def test_0_5_a_long_failure_detail_is_cut_between_characters(store: JobStore) -> None:
    """Only the middle of a detail goes, and no character is split, wherever the cut falls."""
    if store.history.value != "transitions_and_failure_detail":
        pytest.skip("the store keeps no failure details")
    most = store.limits.max_failure_detail_bytes
    for shift in range(4):
        lease = running(store)
        end(store, lease, Failed("boom", "a" * shift + "🙂" * most + "the last line"))
        detail = store.job_history(lease.job_id)[-1].failure_detail
        assert detail is not None
        assert most - 8 <= len(detail.encode()) <= most
        assert set(detail.replace("[... cut ...]", "")) <= set("🙂\nathe last line")
        assert detail.endswith("the last line")


def test_0_5_a_failure_detail_at_the_limit_is_kept_whole(store: JobStore) -> None:
    """What fits is not touched."""
    if store.history.value != "transitions_and_failure_detail":
        pytest.skip("the store keeps no failure details")
    detail = "é" * (store.limits.max_failure_detail_bytes // 2)
    lease = running(store)
    end(store, lease, Failed("boom", detail))
    assert store.job_history(lease.job_id)[-1].failure_detail == detail


def test_0_5_a_long_terminal_cause_is_cut_to_1024_code_points(store: JobStore) -> None:
    """A cause is for people to read; what ends a job never fails for being wordy."""
    for result in (Failed("é" * 2_000), Unroutable("é" * 2_000)):
        lease = running(store)
        end(store, lease, result)
        cause = snapshot(store, lease.job_id).terminal_cause
        assert cause is not None
        assert len(cause) == 1_024
        assert cause.startswith("é" * 1_000)


def test_0_5_an_empty_output_is_an_output(store: JobStore) -> None:
    """No bytes and no output are two things."""
    with_output, without = running(store), running(store)
    end(store, with_output, Succeeded(b""))
    end(store, without, Succeeded())
    assert store.job_output(with_output.job_id) == b""
    assert store.job_output(without.job_id) is None
