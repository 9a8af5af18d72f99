"""Everything but OK raises, with the value and the limit, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from backwave_django import (
    BackwaveError,
    DuplicateJob,
    EnqueueError,
    InvalidPayload,
    OnAnyTerminal,
    PayloadTooLarge,
    TooManyParents,
    UnknownParent,
    WireNameTooLong,
    enqueue,
    enqueue_dependency,
    enqueue_many,
)
from tests.testapp.jobs import nothing
from tests.testapp.models import Effect

from .conftest import both, row, stored
from .payloads import labelled

pytestmark = both


@pytest.fixture
def refused(alias: str) -> Any:
    """Check that a call raises in an open transaction, which stays usable, and stores nothing."""

    def check(kind: type[EnqueueError], call: Callable[[], Any], *texts: str) -> Any:
        before = stored(alias)
        with transaction.atomic(using=alias):
            with pytest.raises(kind) as caught:
                call()
            Effect.objects.using(alias).create(key="after the refusal")
        assert stored(alias) == before
        assert Effect.objects.using(alias).filter(key="after the refusal").exists()
        assert isinstance(caught.value, EnqueueError | BackwaveError)
        for text in texts:
            assert text in str(caught.value)
        return caught.value

    return check


def test_a_duplicate_by_id(alias: str, refused: Any) -> None:
    """It names the id, and what would give it back instead."""
    job_id = nothing.using(job_id=uuid4()).enqueue()
    error = refused(
        DuplicateJob,
        lambda: nothing.using(job_id=job_id).enqueue(),
        str(job_id), "'nothing'", "on_duplicate='return'",
    )  # fmt: skip
    assert error.job_id == error.facts["job_id"] == job_id
    # The id is taken for every wire name.
    refused(DuplicateJob, lambda: labelled.using(job_id=job_id).enqueue(1))


def test_a_duplicate_by_key(alias: str, refused: Any) -> None:
    """It names the key too; another key or wire name is no duplicate."""
    first = nothing.using(idempotency_key="order-42").enqueue()
    error = refused(
        DuplicateJob,
        lambda: enqueue(nothing.payload(x=9), idempotency_key="order-42"),
        "idempotency key 'order-42'",
    )
    assert error.job_id == first
    assert nothing.using(idempotency_key="order-43").enqueue() != first
    assert labelled.using(idempotency_key="order-42").enqueue(1) != first


@pytest.mark.parametrize("by", ["job_id", "idempotency_key"])
def test_a_duplicate_can_give_back_the_first_id(alias: str, by: str) -> None:
    """The job that is there stays as it is."""
    options: dict[str, Any] = {by: uuid4() if by == "job_id" else "k"}
    first = nothing.using(**options, due=timedelta(days=1)).enqueue(x=1)
    before = row(alias, first)
    again = nothing.using(**options, on_duplicate="return", queue="other").enqueue(x=2)
    assert again == first
    after = row(alias, first)
    assert (after.queue, after.due_time, after.ordinal) == (before.queue, before.due_time, 1)
    assert bytes(after.content.payload) == b'{"x":1}'


def test_a_payload_over_the_limit(alias: str, settings: Any, refused: Any) -> None:
    """At the limit it is stored; one byte more is refused with both sizes."""
    settings.BACKWAVE = {"DATABASE": alias, "LIMITS": {"MaxPayloadBytes": 30}}
    fixed = len(b'{"x":1,"note":""}')
    labelled.enqueue(1, note="x" * (30 - fixed))
    error = refused(
        PayloadTooLarge,
        lambda: labelled.enqueue(1, note="x" * (31 - fixed)),
        "31 bytes", "MaxPayloadBytes of 30", "'labelled'", "reference",
    )  # fmt: skip
    assert error.facts == {"size": 31, "limit": 30}


def test_the_default_limit_of_a_payload(alias: str, refused: Any) -> None:
    """65,536 bytes as encoded, so that a letter may count for more than one."""
    fixed = len(b'{"x":1,"note":""}')
    labelled.enqueue(1, note="ü" * ((65_536 - fixed) // 2))
    error = refused(PayloadTooLarge, lambda: labelled.enqueue(1, note="ü" * 32_768))
    assert error.facts == {"size": 65_536 + fixed, "limit": 65_536}


def test_a_wire_name_over_the_limit(alias: str, settings: Any, refused: Any) -> None:
    """The store's limit may be lower than what a declaration takes."""
    settings.BACKWAVE = {"DATABASE": alias, "LIMITS": {"MaxWireNameLength": 7}}
    nothing.enqueue()
    error = refused(
        WireNameTooLong, lambda: labelled.enqueue(1),
        "'labelled'", "8 characters", "MaxWireNameLength of 7",
    )  # fmt: skip
    assert error.facts == {"length": 8, "limit": 7}


def test_an_unknown_parent(alias: str, refused: Any) -> None:
    """It names the first one that nobody knows."""
    known, unknown = nothing.enqueue(), uuid4()
    error = refused(
        UnknownParent, lambda: nothing.using(after=[known, unknown, uuid4()]).enqueue(),
        str(unknown), "'nothing'", "enqueue it first",
    )  # fmt: skip
    assert error.facts == {"parent_id": unknown}


def test_a_job_is_not_its_own_parent(alias: str, refused: Any) -> None:
    """It would wait for ever."""
    job_id = uuid4()
    refused(UnknownParent, lambda: nothing.using(job_id=job_id, after=[job_id]).enqueue())


def test_too_many_parents(alias: str, refused: Any) -> None:
    """Sixteen distinct ones are taken, seventeen are not."""
    parents = [nothing.enqueue() for _ in range(17)]
    waiting = nothing.using(after=[*parents[:16], *parents[:16]]).enqueue()
    assert row(alias, waiting).latch == 16
    error = refused(
        TooManyParents, lambda: nothing.using(after=parents).enqueue(),
        "17 parents", "MaxParentsPerJob of 16", "put a job in between",
    )  # fmt: skip
    assert error.facts == {"count": 17, "limit": 16}


def test_a_dependency_needs_a_parent(alias: str) -> None:
    """Without one it is a plain enqueue, which is most likely not what was meant."""
    for parents in ([], (), None):
        with pytest.raises(ValueError, match="needs at least one parent"):
            enqueue_dependency(nothing.payload(), parents=parents)  # type: ignore[arg-type]
    assert stored(alias) == 0


def test_a_dependency_takes_every_option_of_enqueue(alias: str) -> None:
    """And only those."""
    parent = nothing.enqueue()
    job_id = enqueue_dependency(
        nothing.payload(), [parent], OnAnyTerminal, queue="q", tags=["t"], idempotency_key="k"
    )
    job = row(alias, job_id)
    assert (job.queue, job.mode, job.latch) == ("q", 2, 1)
    with pytest.raises(TypeError):
        enqueue_dependency(nothing.payload(), [parent], after=[parent])


@pytest.mark.parametrize("how", ["enqueue", "enqueue_many"])
def test_what_cannot_be_encoded_sends_nothing_to_the_database(alias: str, how: str) -> None:
    """An enqueue that fails fails before the first statement (A038 b, A050)."""
    bad = nothing.payload(x=object())  # type: ignore[arg-type]
    with (
        CaptureQueriesContext(connections[alias]) as queries,
        pytest.raises(InvalidPayload, match="payload of job 'nothing': x: a object"),
    ):
        enqueue(bad) if how == "enqueue" else enqueue_many([nothing.payload(), bad])
    assert len(queries) == 0


def test_the_pure_checks_come_first(alias: str, settings: Any, refused: Any) -> None:
    """Payload, wire name and count of parents, then the duplicate, then the parents."""
    settings.BACKWAVE = {
        "DATABASE": alias,
        "LIMITS": {"MaxPayloadBytes": 30, "MaxParentsPerJob": 1},
    }
    job_id = nothing.enqueue()
    unknown = [uuid4(), uuid4()]
    big: dict[str, Any] = {"note": "x" * 30}
    refused(PayloadTooLarge, lambda: labelled.using(job_id=job_id, after=unknown).enqueue(1, **big))
    refused(TooManyParents, lambda: labelled.using(job_id=job_id, after=unknown).enqueue(1))
    refused(DuplicateJob, lambda: labelled.using(job_id=job_id, after=unknown[:1]).enqueue(1))
    refused(UnknownParent, lambda: labelled.using(after=unknown[:1]).enqueue(1))


def test_the_ids_in_errors_are_uuids(alias: str) -> None:
    """So that a caller need not parse a message."""
    with pytest.raises(UnknownParent) as caught:
        nothing.using(after=[uuid4()]).enqueue()
    assert isinstance(caught.value.facts["parent_id"], UUID)
