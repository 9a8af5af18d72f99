"""``enqueue`` and ``using``: what each option does, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from backwave_django import InvalidOption, JobState, OnAnyTerminal, OnSuccess, enqueue, monitor
from backwave_django.core.tags import Tag
from backwave_django.deployment import clock
from backwave_django.exceptions import DeclarationError
from backwave_django.storage.values import DependencyMode
from tests.testapp.jobs import effect, nothing

from .conftest import both, row, store, stored, utc
from .payloads import Charged, labelled

pytestmark = both


def test_it_is_due_now_and_scheduled(alias: str) -> None:
    """With the type's queue and labels, its payload, and no attempt yet."""
    before = clock().now()
    job_id = labelled.enqueue(5, note="ü")
    after = clock().now()
    job = monitor.get_job(job_id)
    assert job is not None
    assert (job.wire_name, job.queue, job.state) == ("labelled", "mail", JobState.SCHEDULED)
    assert (job.attempt, job.claim_number, job.lease_owner, job.terminal_at) == (0, 0, None, None)
    assert before <= job.due_time == job.enqueued_at <= after
    assert store().job_payload(job_id) == '{"x":5,"note":"ü"}'.encode()
    assert store().job_tags(job_id) == [Tag(None, "a"), Tag(None, "b")]
    assert [entry.state for entry in monitor.job_history(job_id)] == [JobState.SCHEDULED]
    assert job_id.version == 7


def test_the_client_function_takes_both_forms(alias: str) -> None:
    """A payload class's instance, and the bound arguments of a function."""
    by_class = enqueue(Charged(order=UUID(int=3)), tags=["vip"])
    by_function = enqueue(labelled.payload(x=1), queue="slow")
    assert row(alias, by_class).wire_name == "charged"
    assert store().job_payload(by_class) == b'{"order":"00000000-0000-0000-0000-000000000003"}'
    assert row(alias, by_function).queue == "slow"


def test_a_class_job_is_frozen_when_it_is_enqueued(alias: str) -> None:
    """What happens to the arguments later does not reach the stored payload."""
    key = ["k"]
    bound = labelled.payload(x=1, note="before")
    bound.value["note"] = "after"
    job_id = enqueue(bound)
    key.append("more")
    assert store().job_payload(job_id) == b'{"x":1,"note":"after"}'


# --- due -------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", [timedelta(0), timedelta(-5), timedelta(microseconds=-1), None])
def test_zero_and_past_waits_are_due_now(alias: str, wait: timedelta | None) -> None:
    """A wait of zero is a wait of zero, not one that was left out (A041)."""
    job = row(alias, nothing.using(due=wait).enqueue())
    assert job.due_time == job.enqueued_at


def test_the_most_negative_wait_is_due_now(alias: str) -> None:
    """However far back it reaches."""
    job = row(alias, nothing.using(due=timedelta.min).enqueue())
    assert job.due_time == job.enqueued_at


def test_a_past_instant_is_due_now(alias: str) -> None:
    """So that it does not pass the jobs that have waited longer."""
    job = row(alias, nothing.using(due=utc(1999, 1, 1)).enqueue())
    assert job.due_time == job.enqueued_at


def test_a_wait_counts_from_now(alias: str) -> None:
    """To the microsecond."""
    job = row(alias, nothing.using(due=timedelta(hours=2, microseconds=1)).enqueue())
    assert job.due_time - job.enqueued_at == timedelta(hours=2, microseconds=1)


@pytest.mark.parametrize(
    ("due", "stored_as"),
    [
        (datetime(2100, 7, 1, 9, tzinfo=ZoneInfo("Europe/Berlin")), utc(2100, 7, 1, 7)),
        (datetime(2100, 1, 1, 9, tzinfo=ZoneInfo("Europe/Berlin")), utc(2100, 1, 1, 8)),
        (datetime(2100, 1, 1, tzinfo=timezone(timedelta(hours=-9, minutes=-30))),
         utc(2100, 1, 1, 9, 30)),
        (utc(2100, 1, 1, 0, 0, 0, 1), utc(2100, 1, 1, 0, 0, 0, 1)),
        (utc(9999, 12, 31, 23, 59, 59, 999_999), utc(9999, 12, 31, 23, 59, 59, 999_999)),
    ],
)  # fmt: skip
def test_an_aware_instant_is_that_instant(alias: str, due: datetime, stored_as: datetime) -> None:
    """In whatever zone it is written (A037)."""
    job_id = nothing.using(due=due).enqueue()
    assert monitor.get_job(job_id).due_time == stored_as  # type: ignore[union-attr]


@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize("due", ["2026-07-01 09:00", "2026-03-29 02:30"])
def test_a_naive_instant_is_refused(alias: str, settings: Any, due: str, use_tz: bool) -> None:
    """Whatever ``USE_TZ`` says, with what to pass instead; nothing is stored (A037)."""
    settings.USE_TZ = use_tz
    with pytest.raises(InvalidOption, match=r"is naive.* pass an aware datetime.* or a timedelta"):
        nothing.using(due=datetime.fromisoformat(due)).enqueue()
    assert stored(alias) == 0


@pytest.mark.parametrize("due", [5, 5.0, 0, True, "tomorrow", date(2027, 1, 1)], ids=repr)
def test_anything_else_is_no_due_time(alias: str, due: Any) -> None:
    """Zero and true as well: a number of what, would nobody know (A041)."""
    with pytest.raises(InvalidOption, match="due must be an aware datetime or a timedelta, not"):
        nothing.using(due=due).enqueue()


@pytest.mark.parametrize(
    "due",
    [
        timedelta.max,
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
        timedelta(days=3_000_000),
    ],
    ids=["the longest wait", "past the end of the calendar in UTC", "8,000 years"],
)
def test_a_due_time_past_the_end_of_the_calendar_is_refused(alias: str, due: Any) -> None:
    """With the same kind of error as any wrong option."""
    with pytest.raises(InvalidOption, match=r"due .* is past the end of the calendar"):
        nothing.using(due=due).enqueue()


def test_a_due_time_before_the_beginning_of_the_calendar_is_past(alias: str) -> None:
    """In UTC it lies before the year 1: due now, as all that is past."""
    due = datetime.min.replace(tzinfo=timezone(timedelta(hours=12)))
    job = row(alias, nothing.using(due=due).enqueue())
    assert job.due_time == job.enqueued_at


# --- queue, tags -----------------------------------------------------------------------


def test_a_queue_of_the_enqueue_wins(alias: str) -> None:
    """Any text that can be a name, to the longest."""
    for queue in ("slow", "ü" * 128, "a b:c"):
        assert row(alias, labelled.using(queue=queue).enqueue(1)).queue == queue
    assert row(alias, labelled.using(queue=None).enqueue(1)).queue == "mail"


@pytest.mark.parametrize("queue", ["", " a", "a ", "q" * 129, "a\x00", "\ud800", 3, b"q"], ids=repr)
def test_what_cannot_be_a_queue_is_refused(alias: str, queue: Any) -> None:
    """Nothing is sent to the database."""
    with (
        CaptureQueriesContext(connections[alias]) as queries,
        pytest.raises(InvalidOption, match=r"^queue "),
    ):
        nothing.using(queue=queue).enqueue()
    assert len(queries) == 0


def test_tags_join_the_labels_as_a_set_in_first_seen_order(alias: str) -> None:
    """Labels first; a colon is data, and a key may have several values."""
    tags = ["b", "vip", ("tenant", "acme"), ("tenant", "globex"), "tenant:acme", "vip"]
    assert store().job_tags(labelled.using(tags=tags).enqueue(1)) == [
        Tag(None, "a"), Tag(None, "b"), Tag(None, "vip"), Tag("tenant", "acme"),
        Tag("tenant", "globex"), Tag(None, "tenant:acme"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "tags",
    ["vip", {"a": "b"}, [3], [None], [("a", "b", "c")], [["k", "v"]], [""], [" a"], [("", "x")],
     [("k", "")], [("k", 3)], ["t" * 257], [("k" * 65, "v")], [("k", "v" * 257)], ["\x00"]],
    ids=repr,
)  # fmt: skip
def test_what_cannot_be_tags_is_refused(alias: str, tags: Any) -> None:
    """Nothing is stored."""
    with pytest.raises(InvalidOption):
        nothing.using(tags=tags).enqueue()
    assert stored(alias) == 0


# --- job_id, idempotency_key -----------------------------------------------------------


def test_a_job_id_of_ones_own_is_taken(alias: str) -> None:
    """Any UUID."""
    for job_id in (uuid4(), UUID(int=0), UUID(int=2**128 - 1)):
        assert nothing.using(job_id=job_id).enqueue() == job_id
        assert row(alias, job_id).wire_name == "nothing"


@pytest.mark.parametrize("job_id", [str(UUID(int=7)), 3, "x", b"1" * 16], ids=repr)
def test_what_is_no_uuid_is_refused(alias: str, job_id: Any) -> None:
    """Also a text that looks like one."""
    with pytest.raises(InvalidOption, match="job_id must be a UUID, not"):
        nothing.using(job_id=job_id).enqueue()


def test_a_key_derives_the_id_from_wire_name_and_key(alias: str) -> None:
    """So two wire names may have the same key."""
    one = nothing.using(idempotency_key="order-42").enqueue()
    other = effect.using(idempotency_key="order-42").enqueue(key="k")
    longest = nothing.using(idempotency_key="ü" * 512).enqueue()
    assert len({one, other, longest}) == 3


@pytest.mark.parametrize("key", ["", " k", "k\n", "x" * 513, "a\x00", "\ud800", 3, b"k"], ids=repr)
def test_what_cannot_be_a_key_is_refused(alias: str, key: Any) -> None:
    """An empty key is a mistake, not a key that was left out (A041)."""
    with pytest.raises(InvalidOption, match=r"^idempotency key "):
        nothing.using(idempotency_key=key).enqueue()
    assert stored(alias) == 0


def test_key_and_id_exclude_each_other(alias: str) -> None:
    """The key derives the id."""
    with pytest.raises(InvalidOption, match="give job_id or idempotency_key, not both"):
        nothing.using(idempotency_key="k", job_id=uuid4()).enqueue()


@pytest.mark.parametrize("on_duplicate", ["ignore", None, True, "RETURN"])
def test_another_answer_to_duplicates_is_refused(alias: str, on_duplicate: Any) -> None:
    """Before anything is stored, duplicate or not."""
    with pytest.raises(InvalidOption, match="on_duplicate is 'raise' or 'return', not"):
        nothing.using(on_duplicate=on_duplicate).enqueue()
    assert stored(alias) == 0


# --- after, mode -----------------------------------------------------------------------


def test_a_job_waits_for_its_parents(alias: str) -> None:
    """Several, one given bare, the same one twice."""
    first, second = nothing.enqueue(), nothing.enqueue()
    for after, latch in (([first, second], 2), (first, 1), ([first, first], 1), ({second}, 1)):
        job = row(alias, nothing.using(after=after).enqueue())  # type: ignore[arg-type]
        assert (JobState(job.state), job.latch) == (JobState.AWAITING_PARENT, latch)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(OnSuccess, 1), (OnAnyTerminal, 2), (None, 1), (2, 2), (DependencyMode.ON_ANY_TERMINAL, 2)],
)
def test_the_mode_is_kept(alias: str, mode: Any, expected: int) -> None:
    """By default it waits for success."""
    parent = nothing.enqueue()
    assert row(alias, nothing.using(after=[parent], mode=mode).enqueue()).mode == expected


@pytest.mark.parametrize("mode", [0, 3, "OnSuccess", 1.5], ids=repr)
def test_another_mode_is_refused(alias: str, mode: Any) -> None:
    """Zero is no mode, and not the default one either (A041)."""
    parent = nothing.enqueue()
    with pytest.raises(InvalidOption, match="mode"):
        nothing.using(after=[parent], mode=mode).enqueue()


@pytest.mark.parametrize("after", [["x"], "x", [str(UUID(int=7))], [None], [3]], ids=repr)
def test_what_is_no_parent_is_refused(alias: str, after: Any) -> None:
    """A parent is what an enqueue gave."""
    with pytest.raises(InvalidOption, match="a parent is the UUID that an enqueue gave, not"):
        nothing.using(after=after).enqueue()
    assert stored(alias) == 0


# --- What is no payload ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("thing", "why"),
    [
        (nothing, r"write nothing\.enqueue\(\.\.\.\), or enqueue\(nothing\.payload\(\.\.\.\)\)"),
        (Charged, "type is no job payload: put @job"),
        ({"order": 1}, "dict is no job payload: put @job"),
        (None, "NoneType is no job payload"),
        (lambda: 1, r"function is no job payload: .*\.enqueue\(\) on a function"),
    ],
    ids=["a job", "a class", "a dict", "None", "a lambda"],
)
def test_what_is_no_payload_is_refused(alias: str, thing: Any, why: str) -> None:
    """The message says what to write instead."""
    with pytest.raises(DeclarationError, match=why):
        enqueue(thing)


def test_an_unknown_option_is_a_type_error(alias: str) -> None:
    """Nothing is swallowed (A049)."""
    for wrong in ({"delay": 0}, {"priority": 0}, {"expires": timedelta(0)}, {"due_time": 1}):
        call: Callable[[], Any]
        for call in (lambda: nothing.using(**wrong), lambda: enqueue(nothing.payload(), **wrong)):  # noqa: B023
            with pytest.raises(TypeError, match=next(iter(wrong))):
                call()
