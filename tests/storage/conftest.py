"""The stores that the contract's tests run on: five, each emptied before a test.

What a test writes is committed, so that other threads and connections see it; no test
here stands in a transaction of pytest-django's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections, transaction

from backwave_django.storage.contract import JobStore
from backwave_django.storage.dialects.base import Dialect
from backwave_django.storage.memory import InMemoryStore
from backwave_django.storage.orm.store import DjangoStore
from backwave_django.storage.values import HistoryPolicy
from backwave_django.testing.conformance import scenario

from .databases import TABLES

FULL = HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL

# "portable" is the dialect that other databases get, here on the two that we have.
STORES: dict[str, Callable[[HistoryPolicy], JobStore]] = {
    "memory": lambda history: InMemoryStore(history=history),
    "sqlite": lambda history: DjangoStore("default", history=history),
    "postgres": lambda history: DjangoStore("postgres", history=history),
    "sqlite-portable": lambda history: DjangoStore(
        "default", history=history, dialect=Dialect("default")
    ),
    "postgres-portable": lambda history: DjangoStore(
        "postgres", history=history, dialect=Dialect("postgres")
    ),
}
DATABASE_STORES = [name for name in STORES if name != "memory"]
POSTGRES_STORES = ["postgres", "postgres-portable"]
SQLITE_STORES = ["sqlite", "sqlite-portable"]


def empty(alias: str) -> None:
    """Delete every row; quicker than a flush, which has to lock and rewrite each table."""
    connection = connections[alias]
    with transaction.atomic(using=alias), connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table._meta.db_table)}")


@pytest.fixture
def databases(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Open the databases; what is written stays until the next test empties the tables."""
    scenario.after_thread = connections.close_all
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def make_store(databases: None) -> Iterator[Callable[..., JobStore]]:
    """Make a store by its name, over emptied tables, which are empty again afterwards."""
    used: set[str] = set()

    def make(name: str, history: HistoryPolicy = FULL) -> JobStore:
        if name != "memory":
            alias = "default" if name.startswith("sqlite") else "postgres"
            empty(alias)
            used.add(alias)
        return STORES[name](history)

    yield make
    for alias in used:
        empty(alias)


@pytest.fixture(params=list(STORES))
def store(request: pytest.FixtureRequest, make_store: Callable[..., JobStore]) -> JobStore:
    """Each store in turn, empty."""
    return make_store(request.param)
