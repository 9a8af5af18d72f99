"""Ids: UUID version 7 that grow within a process, and ids derived from keys."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backwave_django.runtime import entropy
from backwave_django.runtime.entropy import job_id_for_key, new_job_id, new_token
from tests.support.processes import wait_until


def millis_of(job_id: UUID) -> int:
    """Give the timestamp in an id (RFC 9562, section 5.7: the first 48 bits)."""
    return job_id.int >> 80


def test_the_layout_is_that_of_rfc_9562() -> None:
    """Version 7, the RFC's variant, and the time of its making in front."""
    before = time.time_ns() // 1_000_000
    job_id = new_job_id()
    after = time.time_ns() // 1_000_000
    assert (job_id.version, job_id.variant) == (7, RFC_4122)
    assert job_id.hex[12] == "7"
    assert job_id.hex[16] in "89ab"
    # Counters that ran over may have moved it ahead of the clock.
    assert before <= millis_of(job_id) <= max(after, entropy._last_millis)


def test_ids_grow_within_a_process() -> None:
    """100,000 of them, made as fast as can be."""
    ids = [new_job_id() for _ in range(100_000)]
    assert all(one.int < other.int for one, other in itertools.pairwise(ids))
    assert all(one.bytes < other.bytes for one, other in itertools.pairwise(ids))
    assert {job_id.version for job_id in ids} == {7}
    assert {job_id.variant for job_id in ids} == {RFC_4122}


def test_the_timestamp_stays_close_to_the_clock() -> None:
    """The counter has room for two thousand ids a millisecond before it moves the time ahead."""
    newest = max(new_job_id() for _ in range(5_000))
    assert millis_of(newest) - time.time_ns() // 1_000_000 < 1_000


def test_ids_of_many_threads_are_all_different_and_grow_in_each() -> None:
    """They share one counter."""
    made: list[list[UUID]] = []
    start = threading.Barrier(8)

    def make() -> None:
        start.wait(30)
        made.append([new_job_id() for _ in range(5_000)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len({job_id for ids in made for job_id in ids}) == 40_000
    assert all(ids == sorted(ids) for ids in made)


def test_ids_grow_though_the_clock_stands_or_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also past the end of the counter, which moves the timestamp ahead."""
    monkeypatch.setattr(entropy, "_last_millis", entropy._last_millis)  # put back in the end
    now = (entropy._last_millis + 1_000) * 1_000_000
    times = iter([now, now - 10**12])
    monkeypatch.setattr(entropy.time, "time_ns", lambda: next(times, now - 10**12))
    ids = [new_job_id() for _ in range(10_000)]
    assert all(one < other for one, other in itertools.pairwise(ids))
    assert len(ids) == len(set(ids))
    assert millis_of(ids[-1]) > millis_of(ids[0]) == now // 1_000_000


def test_the_tail_is_random() -> None:
    """62 bits in which no bit stands still, so two processes do not meet."""
    tails = [new_job_id().int & ((1 << 62) - 1) for _ in range(2_000)]
    ones, zeros = 0, 0
    for tail in tails:
        ones |= tail
        zeros |= ~tail
    full = (1 << 62) - 1
    assert ones == full
    assert zeros & full == full
    assert len(set(tails)) == len(tails)


def test_the_counter_starts_anew_with_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at zero, so that an id does not tell how many came before; never in its upper half."""
    starts = set()
    while len(starts) < 5:
        monkeypatch.setattr(entropy, "_last_millis", 0)
        starts.add((new_job_id().int >> 64) & 0xFFF)
    assert max(starts) < 2_048


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_makes_ids_of_its_own() -> None:
    """Also when it was forked while another thread held the lock."""
    reader, writer = os.pipe()
    with entropy._lock:
        child = os.fork()
        if child == 0:  # pragma: no cover - coverage does not reach into it
            code = 1
            try:
                os.write(writer, new_job_id().bytes)
                code = 0
            finally:
                os._exit(code)
    ended = (0, 0)

    def has_ended() -> bool:
        nonlocal ended
        ended = os.waitpid(child, os.WNOHANG)
        return ended[0] == child

    try:
        wait_until(has_ended, 10, "the child makes an id")
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    assert os.waitstatus_to_exitcode(ended[1]) == 0
    theirs = UUID(bytes=os.read(reader, 16))
    os.close(reader)
    os.close(writer)
    assert theirs.version == 7
    assert theirs != new_job_id()


# --- Keys ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire_name", "key", "expected"),
    [
        ("send-receipt", "order-42", "52c159db-8298-536d-915f-4ef9ddc07217"),
        ("ü", "é😀", "c64499bd-3afa-5a9f-b160-5336666ee30f"),
        ("a", "b:c", "fb5183a5-7702-5845-a94a-e097a4f39900"),
    ],
)
def test_the_id_of_a_key_never_changes(wire_name: str, key: str, expected: str) -> None:
    """Another value here would let every stored key be enqueued a second time."""
    job_id = job_id_for_key(wire_name, key)
    assert str(job_id) == expected
    assert (job_id.version, job_id.variant) == (5, RFC_4122)


names = st.text("ab:1", min_size=1, max_size=4)


@given(names, names, names, names)
def test_another_name_or_key_is_another_id(
    wire_name: str, key: str, other_name: str, other_key: str
) -> None:
    """Wherever the colons stand in them."""
    same = (wire_name, key) == (other_name, other_key)
    assert (job_id_for_key(wire_name, key) == job_id_for_key(other_name, other_key)) is same


def test_tokens_differ() -> None:
    """Short, and only of characters that a log line can hold."""
    tokens = {new_token() for _ in range(1_000)}
    assert len(tokens) == 1_000
    assert all(token.isalnum() and len(token) == 8 for token in tokens)
