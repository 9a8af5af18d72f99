"""``enqueue_many``: all of them or none, in a few statements."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from backwave_django import (
    DuplicateJob,
    InvalidOption,
    InvalidPayload,
    PayloadTooLarge,
    client,
    enqueue_many,
)
from backwave_django.exceptions import DeclarationError
from backwave_django.models import Job
from backwave_django.runtime.entropy import new_job_id
from tests.testapp.jobs import nothing

from .conftest import both, row, store, stored
from .payloads import Charged, labelled

pytestmark = both


def test_jobs_of_several_types_are_due_in_their_order(alias: str) -> None:
    """The ids come in the order of the payloads, and so do the sequences."""
    payloads = [nothing.payload(x=i) if i % 2 else labelled.payload(x=i) for i in range(20)]
    payloads.append(Charged(order=UUID(int=1)))  # type: ignore[arg-type]
    ids = enqueue_many(payloads)
    rows = {job.job_id: job for job in Job.objects.using(alias).order_by("sequence")}
    assert list(rows) == ids
    assert [rows[i].wire_name for i in ids[:2]] == ["labelled", "nothing"]
    assert rows[ids[-1]].wire_name == "charged"
    assert store().job_payload(ids[7]) == b'{"x":7}'
    assert len({job.due_time for job in rows.values()}) == 1


def test_options_hold_for_each(alias: str) -> None:
    """Due time, queue and tags; labels of the types stay."""
    ids = enqueue_many(
        [nothing.payload(), labelled.payload(1)], due=timedelta(hours=1), queue="q", tags=["t"]
    )
    for job_id in ids:
        job = row(alias, job_id)
        assert (job.queue, job.due_time - job.enqueued_at) == ("q", timedelta(hours=1))
    assert [tag.value for tag in store().job_tags(ids[0])] == ["t"]
    assert [tag.value for tag in store().job_tags(ids[1])] == ["a", "b", "t"]


def test_nothing_is_nothing(alias: str) -> None:
    """An empty list needs no statement."""
    with CaptureQueriesContext(connections[alias]) as queries:
        assert enqueue_many([]) == []
        assert enqueue_many(iter(())) == []
    assert len(queries) == 0


def test_a_generator_is_read_once(alias: str) -> None:
    """Any iterable will do."""

    def payloads() -> Iterator[Any]:
        for i in range(3):
            yield nothing.payload(x=i)

    assert len(enqueue_many(payloads())) == 3
    assert Job.objects.using(alias).count() == 3


def test_a_thousand_jobs_are_a_few_statements(alias: str) -> None:
    """At most four statements (jobs, contents, tags, history) for each 500, plus savepoints."""
    payloads = [labelled.payload(x=i) for i in range(1_000)]
    with CaptureQueriesContext(connections[alias]) as queries:
        ids = enqueue_many(payloads)
    assert len(set(ids)) == Job.objects.using(alias).count() == 1_000
    statements = [q["sql"] for q in queries if "SAVEPOINT" not in q["sql"]]
    assert len(statements) <= 8, [sql[:60] for sql in statements]
    assert len(queries) <= 16


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (labelled.payload(1, note="x" * 70_000), PayloadTooLarge),
        (labelled.payload("one"), InvalidPayload),  # type: ignore[arg-type]
        (nothing, DeclarationError),
        (3, DeclarationError),
        (None, DeclarationError),
    ],
    ids=["too large", "wrong type", "a job", "a number", "None"],
)
def test_one_refusal_refuses_all(alias: str, bad: Any, kind: type[Exception]) -> None:
    """First, in the middle or last; no statement is sent for them."""
    good = [nothing.payload(x=i) for i in range(4)]
    for place in (0, 2, 4):
        with CaptureQueriesContext(connections[alias]) as queries, pytest.raises(kind):
            enqueue_many([*good[:place], bad, *good[place:]])
        assert len(queries) == 0
    assert stored(alias) == 0


def test_one_payload_alone_is_no_list(alias: str) -> None:
    """It is refused, not taken apart."""
    with pytest.raises(TypeError):
        enqueue_many(nothing.payload())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [{"on_duplicate": "ignore"}, {"queue": ""}, {"tags": "vip"}, {"due": 5}, {"queue": 3}],
)
def test_a_wrong_option_is_refused(alias: str, options: dict[str, Any]) -> None:
    """As for ``enqueue``."""
    with pytest.raises(InvalidOption):
        enqueue_many([nothing.payload()], **options)
    assert stored(alias) == 0


@pytest.fixture
def clashing(alias: str, monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """Let the next ids be three new ones, one that is stored, and one that stands there twice."""
    there = nothing.using(queue="first").enqueue(x=99)
    new = [new_job_id() for _ in range(3)]
    ids = [new[0], there, new[1], new[1], new[2]]
    source = iter([*ids, *ids])
    monkeypatch.setattr(client, "new_job_id", lambda: next(source))
    return ids


def test_a_duplicate_refuses_all(alias: str, clashing: list[UUID]) -> None:
    """The open transaction stays usable, and holds only what was there before (A042)."""
    before = stored(alias)
    with transaction.atomic(using=alias):
        with pytest.raises(DuplicateJob) as caught:
            enqueue_many([nothing.payload(x=i) for i in range(5)])
        assert caught.value.job_id == clashing[1]
        assert stored(alias) == before
    assert nothing.enqueue(x=1) is not None


def test_duplicates_can_be_left_alone(alias: str, clashing: list[UUID]) -> None:
    """Every other job is stored, also the first of two with one id (A042)."""
    ids = enqueue_many([nothing.payload(x=i) for i in range(5)], on_duplicate="return")
    assert ids == clashing
    assert Job.objects.using(alias).count() == 4
    assert row(alias, clashing[1]).queue == "first"
    assert store().job_payload(clashing[2]) == b'{"x":2}'
    assert store().job_payload(clashing[1]) == b'{"x":99}'
