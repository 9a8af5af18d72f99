"""The two column types, and the router."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections, models, router
from hypothesis import given
from hypothesis import strategies as st

from backwave_django.fields import InstantField, NameField
from backwave_django.models import Job, Queue
from backwave_django.routers import BackwaveRouter

instants = st.datetimes(timezones=st.just(UTC))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(instants)
def test_an_instant_survives_the_way_through_its_column(instant: datetime) -> None:
    """As a whole number of microseconds, with nothing rounded."""
    field = InstantField()
    number = field.get_prep_value(instant)
    assert isinstance(number, int)
    assert number == (instant - EPOCH) // timedelta(microseconds=1)
    assert field.from_db_value(number) == instant
    assert field.to_python(number) == field.to_python(instant) == instant


def test_an_instant_is_read_as_utc() -> None:
    """Whatever zone it was written in."""
    field = InstantField()
    at = datetime(2026, 7, 1, 9, tzinfo=timezone(timedelta(hours=2)))
    read = field.from_db_value(field.get_prep_value(at))
    assert read is not None
    assert (read, read.tzinfo) == (at, UTC)
    assert field.from_db_value(None) is None
    assert field.to_python(None) is None
    assert field.get_prep_value(None) is None


def test_a_naive_instant_is_refused() -> None:
    """Nothing guesses its zone."""
    with pytest.raises((TypeError, ValueError)):
        InstantField().get_prep_value(datetime.fromisoformat("2026-07-01"))


@pytest.mark.django_db(databases=["default", "postgres"])
@pytest.mark.parametrize("alias", ["default", "postgres"])
@pytest.mark.parametrize("use_tz", [True, False])
def test_comparisons_are_by_time(alias: str, settings: Any, use_tz: bool) -> None:
    """Filters and order take aware instants, whatever ``USE_TZ`` says (A036)."""
    settings.USE_TZ = use_tz
    base = datetime(2026, 1, 1, tzinfo=UTC)
    # As text, the one without microseconds would stand elsewhere.
    offsets = [0, 1, 999_999, 1_000_000]
    times = [base + timedelta(microseconds=offset) for offset in offsets]
    for number, at in enumerate(reversed(times)):
        Job.objects.using(alias).create(
            job_id=f"{number:032x}", wire_name="w", queue="q", state=1, due_time=at, enqueued_at=at
        )
    jobs = Job.objects.using(alias).order_by("due_time")
    assert [job.due_time for job in jobs] == times
    in_berlin = times[1].astimezone(timezone(timedelta(hours=1)))
    assert [job.due_time for job in jobs.filter(due_time__lte=in_berlin)] == times[:2]
    assert jobs.filter(due_time=times[2]).count() == 1
    assert jobs.filter(due_time__in=times).count() == 4
    assert jobs.aggregate(models.Max("due_time"))["due_time__max"] == times[3]


@pytest.mark.django_db(databases=["default", "postgres"])
@pytest.mark.parametrize("alias", ["default", "postgres"])
def test_names_compare_by_code_point(alias: str) -> None:
    """Case, accents and order, the same on every database."""
    names = [
        "B",
        "a",
        "A",
        "b",
        "é",
        "e\u0301",
        "Z",
        "_",
        "ß",
        "ss",
        "\u0131",
        "i",
        "İ",
        "ﬁ",
        "😀",
        "\uff5e",
    ]
    for name in names:
        Queue.objects.using(alias).create(name=name)
    queues = Queue.objects.using(alias)
    found = list(queues.order_by("name").values_list("name", flat=True))
    assert found == sorted(names)
    for name in names:
        assert queues.filter(name=name).count() == 1
    assert queues.filter(name__gt="Z").count() == len([name for name in names if name > "Z"])


def test_the_collation_is_that_of_the_vendor() -> None:
    """Named where the default is not by code point; left alone where it is."""
    field = NameField(max_length=3)
    field.set_attributes_from_name("n")
    assert field.db_parameters(connections["postgres"])["collation"] == "C"
    assert field.db_parameters(connections["default"])["collation"] is None


def test_migrations_can_name_the_fields() -> None:
    """By their place in this package, with their options."""
    assert InstantField(null=True).deconstruct()[1:] == (
        "backwave_django.fields.InstantField", [], {"null": True},
    )  # fmt: skip
    assert NameField(max_length=9).deconstruct()[1] == "backwave_django.fields.NameField"


# --- The router ------------------------------------------------------------------------


def test_the_router_routes_our_models_and_no_others(settings: Any) -> None:
    """To the alias of the settings; of all else it says nothing."""
    settings.DATABASE_ROUTERS = ["backwave_django.routers.BackwaveRouter"]
    for alias in ("default", "postgres"):
        settings.BACKWAVE = {"DATABASE": alias}
        assert router.db_for_read(Job) == router.db_for_write(Queue) == alias
        assert router.db_for_read(User) == router.db_for_write(User) == "default"


def test_the_router_makes_our_tables_in_one_place(settings: Any) -> None:
    """And lets others decide on theirs."""
    ours = BackwaveRouter()
    settings.BACKWAVE = {"DATABASE": "postgres"}
    assert ours.allow_migrate("postgres", "backwave_django") is True
    assert ours.allow_migrate("default", "backwave_django") is False
    assert ours.allow_migrate("default", "auth") is None
    assert ours.allow_migrate("postgres", "auth", model_name="user") is None
