"""Each test of the client runs on both databases; some commit, most are rolled back."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import pytest
from django.db import connections

from backwave_django.core.commands import ClaimRequest
from backwave_django.core.dispatch import QueueShare
from backwave_django.core.events import Verdict
from backwave_django.core.outcomes import Outcome, Succeeded
from backwave_django.deployment import clock
from backwave_django.deployment import store as current_store
from backwave_django.models import Dependency, Job, JobContent, JobTag, Queue, QueueGate, Transition
from backwave_django.storage.orm.store import DjangoStore
from tests.support.processes import wait_until
from tests.testapp.models import Effect

T = TypeVar("T")
ALIASES = ["default", "postgres"]
TABLES = (Dependency, JobContent, JobTag, Transition, Job, Queue, QueueGate, Effect)

both = pytest.mark.django_db(databases=ALIASES)
"""For tests that run inside Django's own test transaction, on both databases."""


@pytest.fixture(params=ALIASES, ids=["sqlite", "postgres"])
def alias(request: pytest.FixtureRequest, settings: Any) -> str:
    """Keep the jobs in each database in turn; the test is marked with ``both``."""
    settings.BACKWAVE = {"DATABASE": request.param}
    clock().now()  # its one look at the database is not what a test counts
    return str(request.param)


@pytest.fixture(params=ALIASES, ids=["sqlite", "postgres"])
def committed(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any, settings: Any
) -> Iterator[str]:
    """Do the same where the test commits: no test transaction around it, emptied tables."""
    with real_transactions(str(request.param), django_db_blocker, settings) as alias:
        yield alias


@pytest.fixture
def on_postgres(django_db_setup: None, django_db_blocker: Any, settings: Any) -> Iterator[str]:
    """The same for what only a database with many writers can show."""
    with real_transactions("postgres", django_db_blocker, settings) as alias:
        yield alias


@contextlib.contextmanager
def real_transactions(alias: str, blocker: Any, settings: Any) -> Iterator[str]:
    """Let a test commit to ``alias``; before and after it the tables are empty."""
    settings.BACKWAVE = {"DATABASE": alias}
    with blocker.unblock():
        empty(alias)
        clock().now()
        yield alias
        for connection in connections.all(initialized_only=True):
            connection.close()
        empty(alias)


def empty(alias: str) -> None:
    """Empty the tables of jobs and effects."""
    for table in TABLES:
        table.objects.using(alias).all().delete()  # type: ignore[attr-defined]


def store() -> DjangoStore:
    """Give the store of the settings."""
    return current_store()


def stored(alias: str) -> int:
    """Count the rows that an enqueue may leave behind."""
    return sum(
        table.objects.using(alias).count()
        for table in (Job, JobContent, JobTag, Transition, Dependency)
    )


def row(alias: str, job_id: UUID) -> Job:
    """Give the row of a job."""
    return Job.objects.using(alias).get(job_id=job_id)


def finish(queue: str, *job_ids: UUID) -> None:
    """Claim these jobs as a worker does, and report that they succeeded.

    What is locked just then is reported again, as a worker does too.
    """
    now = clock().now() + timedelta(seconds=1)
    shares = (QueueShare(queue, 32),)
    claimed = store().claim("w", ClaimRequest(shares, 32, timedelta(minutes=1)), now)
    leases = [job.lease for job in claimed.jobs]
    assert {lease.job_id for lease in leases} == set(job_ids)
    outcomes = [Outcome(lease, Succeeded()) for lease in leases]

    def all_reported() -> bool:
        answers = store().report(outcomes, now)
        pairs = list(zip(outcomes, answers, strict=True))
        assert {answer.verdict for _, answer in pairs} <= {Verdict.APPLIED, Verdict.BUSY}
        outcomes[:] = [outcome for outcome, answer in pairs if answer.verdict is Verdict.BUSY]
        return not outcomes

    wait_until(all_reported, message="every outcome is recorded")


def in_thread(function: Callable[[], T]) -> Future[T]:
    """Run a function in a thread with connections of its own; they are closed at its end."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 — handed to who waits for the result
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            connections.close_all()

    threading.Thread(target=run, daemon=True).start()
    return future


def utc(*parts: int) -> datetime:
    """Make an aware instant."""
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc]
