"""Chapter 0, ground rules: text, and names that compare by code point (0.6)."""

from __future__ import annotations

import pytest

from ...core.errors import InvalidOption
from ...core.events import Renewal, Verdict
from ...core.outcomes import Cancelled, Failed, Succeeded, Unroutable
from ...core.states import JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from ...storage.values import JobFilter
from .scenario import (
    LEASE,
    QUEUE,
    START,
    claim,
    claimed_job,
    end,
    ids_of,
    new_job,
    report_one,
    request,
    running,
    snapshot,
    state_of,
    stored,
    whole,
)

ODD_NAMES = (
    "🦄 with spaces inside",
    "e\u0301",  # decomposed
    "\u0301lone combining mark",
    "עברית",
    "tab\tand\nline",
    "100%_[a-z]\\'\"`;--",
    "\ufeffbyte order mark",
    "\U0010ffff",
)
ALIKE = ("straße", "strasse", "Strasse", "STRASSE", "é", "e\u0301", "e", "E", "\uff45", "\uff25")
"""Equal to some collation or other, and ten different names all the same."""

BAD_NAMES = ("", "a\x00b", "a\ud800b", " a", "a ", "a\u00a0", "\ta", "a\n")


def test_0_6_names_survive_verbatim(store: JobStore) -> None:
    """Queue, wire name, tag, worker and trace context come back as they were given."""
    for name in ODD_NAMES:
        tags = (Tag(None, name), Tag(name, name))
        job_id = stored(store, queue=name, wire_name=name, tags=tags, trace_context=name)
        found = snapshot(store, job_id)
        assert (found.queue, found.wire_name, found.trace_context) == (name, name, name)
        assert store.job_tags(job_id) == list(tags)
        job = claimed_job(store, job_id, worker=name)
        assert (job.queue, job.wire_name, job.trace_context) == (name, name, name)
        assert (job.tags, job.lease.worker_id) == (tags, name)
        assert snapshot(store, job_id).lease_owner == name


def test_0_6_the_longest_names_are_kept_whole(store: JobStore) -> None:
    """Lengths are counted in code points, not in bytes or UTF-16 units."""
    wide = "🦄"
    tags = (Tag(wide * 64, wide * 256), Tag(None, wide * 256))
    job_id = stored(store, queue=wide * 128, tags=tags)
    assert claimed_job(store, job_id, worker=wide * 128).lease.worker_id == wide * 128
    assert store.job_tags(job_id) == list(tags)
    other = running(store)
    store.cancel(other.job_id, wide * 150, START)
    end(store, other, Failed("", retry_at=START))
    assert wide * 150 in str(snapshot(store, other.job_id).terminal_cause)


def test_0_6_queues_compare_by_code_point(store: JobStore) -> None:
    """A claim takes from the queue of exactly this name."""
    jobs = {name: stored(store, queue=name) for name in ALIKE}
    for name in ALIKE:
        assert ids_of(claim(store, name)) == [jobs[name]]
    assert len(store.count_jobs()) == len(ALIKE)


def test_0_6_pauses_and_limits_compare_by_code_point(store: JobStore) -> None:
    """What is set for one queue leaves its look-alikes alone."""
    for name in ALIKE:
        stored(store, queue=name)
    store.pause_queue("é", None, START)
    store.set_concurrency_limit("E", 1, None, START)
    stored(store, queue="E")
    stored(store, queue="e")
    found = {name: len(claim(store, name).jobs) for name in ALIKE}
    assert found == dict.fromkeys(ALIKE, 1) | {"é": 0, "e": 2}


def test_0_6_reads_compare_by_code_point(store: JobStore) -> None:
    """A filter finds exactly the queue, wire name or tag that it names."""
    jobs = {
        name: stored(
            store,
            queue=name,
            wire_name=name,
            tags=(Tag(None, name), Tag("k", name), Tag(name, "v")),
        )
        for name in ALIKE
    }
    for name, job_id in jobs.items():
        filters = [
            JobFilter(queue=name),
            JobFilter(wire_name=name),
            *(JobFilter(tags=(tag,)) for tag in (Tag(None, name), Tag("k", name), Tag(name, "v"))),
        ]
        for job_filter in filters:
            assert [job.job_id for job in store.list_jobs(job_filter)] == [job_id]


def test_0_6_tags_of_one_job_compare_by_code_point(store: JobStore) -> None:
    """Look-alikes on one job are different tags."""
    tags = tuple(Tag(None, name) for name in ALIKE)
    lease = running(store, tags=tags[:5])
    end(store, lease, Succeeded(tags=tags[5:]))
    assert store.job_tags(lease.job_id) == list(tags)


def test_0_6_workers_compare_by_code_point(store: JobStore) -> None:
    """The fence does not take a look-alike for the owner of the lease."""
    lease = claimed_job(store, stored(store), worker="Wörker").lease
    for name in ("wörker", "Worker", "Wo\u0308rker", "WÖRKER"):
        stranger = lease._replace(worker_id=name)
        assert store.heartbeat([stranger], LEASE, START) == [Renewal.LOST]
        assert report_one(store, stranger, Succeeded()).verdict is Verdict.STALE
    assert end(store, lease) is JobState.SUCCEEDED


def test_0_6_counts_are_ordered_by_code_point(store: JobStore) -> None:
    """The order of names is the same on every store."""
    for name in ALIKE:
        stored(store, queue=name)
    assert [count.queue for count in store.count_jobs()] == sorted(ALIKE)


def test_0_6_a_bad_name_of_a_new_job_is_refused_and_nothing_is_stored(store: JobStore) -> None:
    """NUL, surrogates, white space at an end and emptiness never reach a database."""
    for bad in BAD_NAMES:
        for changes in ({"queue": bad}, {"wire_name": bad}):
            with pytest.raises(InvalidOption):
                store.enqueue_many([new_job(), new_job(**changes)], START)
    with pytest.raises(InvalidOption):
        store.enqueue(new_job(queue="q" * 129), START)
    assert whole(store) == []


def test_0_6_a_bad_tag_of_a_new_job_is_refused_and_nothing_is_stored(store: JobStore) -> None:
    """A tag is a name: the whole call is refused before anything is written."""
    bad_tags = [tag for bad in BAD_NAMES for tag in (Tag(None, bad), Tag("k", bad), Tag(bad, "v"))]
    for tag in [*bad_tags, Tag("k" * 65, "v"), Tag(None, "v" * 257)]:
        with pytest.raises(InvalidOption):
            store.enqueue_many([new_job(), new_job(tags=(tag,))], START)
        assert whole(store) == []


def test_0_6_a_bad_tag_of_an_outcome_is_refused_and_nothing_changes(store: JobStore) -> None:
    """A report with such a tag is a caller's mistake, whatever else is in the batch."""
    lease = running(store)
    before = whole(store)
    for bad in BAD_NAMES:
        with pytest.raises(InvalidOption):
            report_one(store, lease, Succeeded(tags=(Tag(None, bad),)))
        assert whole(store) == before


def test_0_6_a_bad_worker_id_is_refused_and_nothing_is_claimed(store: JobStore) -> None:
    """A worker's id is a name, in a claim and in an exchange."""
    stored(store)
    before = whole(store)
    for bad in (*BAD_NAMES, "w" * 129):
        with pytest.raises(InvalidOption):
            store.claim(bad, request(QUEUE), START)
        with pytest.raises(InvalidOption):
            store.exchange(bad, [], request(QUEUE), START)
    assert whole(store) == before


def test_0_6_a_bad_actor_is_refused_and_nothing_is_cancelled(store: JobStore) -> None:
    """Who asked stands in the cause, so it has to be a name."""
    job_id = stored(store)
    before = whole(store)
    for bad in (*BAD_NAMES, "a" * 151):
        with pytest.raises(InvalidOption):
            store.cancel(job_id, bad, START)
    assert whole(store) == before


def test_0_6_a_bad_queue_name_cannot_be_paused_resumed_or_limited(store: JobStore) -> None:
    """What no job can be in, no operator can set."""
    for bad in (*BAD_NAMES, "q" * 129):
        for operation in (store.pause_queue, store.resume_queue):
            with pytest.raises(InvalidOption):
                operation(bad, None, START)
        with pytest.raises(InvalidOption):
            store.set_concurrency_limit(bad, 1, None, START)


def test_0_6_a_bad_queue_name_cannot_be_claimed_from(store: JobStore) -> None:
    """A claim that names such a queue is refused, not passed on to the database."""
    stored(store)
    before = whole(store)
    for bad in ("a\x00b", "a\ud800b"):
        with pytest.raises(InvalidOption):
            claim(store, QUEUE, bad)
    assert whole(store) == before


def test_0_6_a_cause_shows_what_cannot_be_stored(store: JobStore) -> None:
    """Free text is never refused: NUL and surrogates become visible escapes."""
    for result in (
        Failed("a\x00b\ud800c"),
        Cancelled("a\x00b\ud800c"),
        Unroutable("a\x00b\ud800c"),
    ):
        lease = running(store)
        end(store, lease, result)
        assert snapshot(store, lease.job_id).terminal_cause == "a\\x00b\\ud800c"


def test_0_6_a_failure_detail_shows_what_cannot_be_stored(store: JobStore) -> None:
    """The diagnosis of a failure survives whatever the handler printed."""
    if store.history.value != "transitions_and_failure_detail":
        pytest.skip("the store keeps no failure details")
    lease = running(store)
    end(store, lease, Failed("boom", "a\x00b\udfffc 🙂 e\u0301 \r\n", retry_at=START))
    detail = store.job_history(lease.job_id)[-1].failure_detail
    assert detail == "a\\x00b\\udfffc 🙂 e\u0301 \r\n"


def test_0_6_bytes_survive_verbatim(store: JobStore) -> None:
    """Payload and output are opaque: any byte, and none at all."""
    for content in (bytes(range(256)), b"", b"\x00", b"\xff\xfe"):
        lease = running(store, payload=content)
        assert store.job_payload(lease.job_id) == content
        end(store, lease, Succeeded(content))
        assert store.job_output(lease.job_id) == content


def test_0_6_names_with_inner_odd_characters_are_no_bad_names(store: JobStore) -> None:
    """Only NUL, surrogates and outer white space are refused."""
    for name in ODD_NAMES:
        assert state_of(store, stored(store, queue=name)) is JobState.SCHEDULED
        store.pause_queue(name, None, START)
        assert not claim(store, name).jobs
