"""What the tests of real workers share: both databases, emptied, with committed rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from backwave_django.core.dispatch import Strict
from backwave_django.deployment import store as current_store
from backwave_django.models import (
    Dependency,
    Job,
    JobContent,
    JobTag,
    Queue,
    QueueGate,
    Transition,
)
from backwave_django.storage.orm.store import DjangoStore
from tests.testapp.models import Effect

TABLES = (Dependency, JobContent, JobTag, Transition, Job, Queue, QueueGate, Effect)

GROUP: dict[str, Any] = {
    "policy": Strict("default"),
    "pool_size": 8,
    "poll_interval": 0.05,
    "maintenance_interval": 0.2,
    "lease_duration": 3,
}


def empty(alias: str) -> None:
    """Empty the tables of jobs and effects."""
    for table in TABLES:
        table.objects.using(alias).all().delete()  # type: ignore[attr-defined]


@pytest.fixture(params=["default", "postgres"], ids=["sqlite", "postgres"])
def alias(
    request: pytest.FixtureRequest,
    django_db_setup: None,
    django_db_blocker: Any,
    settings: Any,
) -> Iterator[str]:
    """Keep the jobs in each database in turn; what is written is committed."""
    alias: str = request.param
    settings.BACKWAVE = {"DATABASE": alias, "WORKER_GROUPS": {"default": GROUP}}
    with django_db_blocker.unblock():
        empty(alias)
        yield alias
        empty(alias)
        connections.close_all()


@pytest.fixture
def store(alias: str) -> DjangoStore:
    """The store of the settings."""
    return current_store()


def effects(alias: str, key: str | None = None) -> list[str]:
    """Give the notes of the effects, in the order in which they were written."""
    rows = Effect.objects.using(alias).order_by("pk")
    if key is not None:
        rows = rows.filter(key=key)
    return list(rows.values_list("note", flat=True))
