"""Rule 0.1 in the columns: no setting of Django or of a session moves an instant."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.db import connections

from backwave_django.core.instants import to_micros
from backwave_django.models import Job
from backwave_django.storage.dialects.base import Dialect
from backwave_django.storage.orm.store import DjangoStore
from backwave_django.storage.values import JobSnapshot
from backwave_django.testing.conformance.scenario import (
    LEASE,
    MICROSECOND,
    START,
    after,
    claimed_job,
    end,
    snapshot,
    stored,
)

from .conftest import DATABASE_STORES, POSTGRES_STORES, empty

EDGES = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 3, 29, 0, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 3, 29, 1, 0, 0, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
)
"""The ends of the calendar, both sides of 1970, both sides of a change to summer time."""


def _life(store: DjangoStore) -> tuple[JobSnapshot, JobSnapshot]:
    """Let a job live; give it as it ran and as it ended."""
    job_id = stored(store, due_time=after(1))
    lease = claimed_job(store, job_id, after(2)).lease
    leased = snapshot(store, job_id)
    end(store, lease, now=after(3))
    return leased, snapshot(store, job_id)


def _stored_numbers(alias: str) -> tuple[int, ...]:
    with connections[alias].cursor() as cursor:
        cursor.execute(f"SELECT due_time, enqueued_at, terminal_at FROM {Job._meta.db_table}")
        (row,) = cursor.fetchall()
    return row


def _is_right(store: DjangoStore, plain_alias: str) -> None:
    leased, ended = _life(store)
    assert leased.lease_expires_at == after(2) + LEASE
    assert (ended.due_time, ended.enqueued_at, ended.terminal_at) == (after(1), START, after(3))
    expected = tuple(to_micros(instant) for instant in (after(1), START, after(3)))
    assert _stored_numbers(plain_alias) == expected


@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize("name", DATABASE_STORES)
def test_0_1_use_tz_makes_no_difference(name, use_tz, make_store, settings):
    """The same numbers are stored, and the same aware instants are read."""
    settings.USE_TZ = use_tz
    settings.TIME_ZONE = "Asia/Kathmandu"
    store = make_store(name)
    _is_right(store, store.alias)


@pytest.fixture(params=["default", "postgres"], ids=["sqlite", "postgres"])
def zoned_alias(request: pytest.FixtureRequest, databases: None) -> Iterator[tuple[str, str]]:
    """An alias whose database is said to have a time zone of its own, and the plain one."""
    plain = request.param
    alias = f"{plain}_zoned"
    ours = connections[plain].settings_dict
    connections.settings[alias] = {**ours, "TIME_ZONE": "America/St_Johns"}
    empty(plain)
    yield alias, plain
    connections[alias].close()
    del connections[alias]
    del connections.settings[alias]


@pytest.mark.parametrize("portable", [False, True], ids=["own", "portable"])
def test_0_1_the_time_zone_of_an_alias_makes_no_difference(portable, zoned_alias):
    """What one alias writes, another reads."""
    alias, plain = zoned_alias
    _is_right(DjangoStore(alias, dialect=Dialect(alias) if portable else None), plain)


@pytest.mark.parametrize("name", POSTGRES_STORES)
def test_0_1_the_time_zone_of_a_session_makes_no_difference(name, make_store):
    """Whatever a session has set, instants are numbers."""
    store = make_store(name)
    with connections[store.alias].cursor() as cursor:
        cursor.execute("SET TIME ZONE 'Pacific/Chatham'")
    try:
        _is_right(store, store.alias)
    finally:
        connections[store.alias].close()


@pytest.mark.parametrize("name", DATABASE_STORES)
def test_0_1_every_microsecond_is_kept_and_ordered(name, make_store):
    """At the ends of the calendar, around 1970 and around a change to summer time."""
    store = make_store(name)
    instants = [*EDGES, START, START + MICROSECOND, START - MICROSECOND]
    ids = {stored(store, due_time=instant): instant for instant in instants}
    for job_id, instant in ids.items():
        assert snapshot(store, job_id).due_time == instant
    read = Job.objects.using(store.alias).order_by("due_time").values_list("due_time", flat=True)
    assert list(read) == sorted(instants)
