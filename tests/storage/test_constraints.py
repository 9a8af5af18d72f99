"""Rules 1.1 and 1.3 in the schema itself: a row that breaks them cannot be written."""

from __future__ import annotations

import uuid

import pytest
from django.db import IntegrityError, connections, transaction

from backwave_django.core.instants import to_micros
from backwave_django.core.states import JobState
from backwave_django.models import Job
from backwave_django.testing.conformance.scenario import START

from .conftest import empty

NOW = to_micros(START)
LEASED = {"state": 3, "lease_owner": "w", "lease_expires_at": NOW}
WAITING = {"state": 2, "latch": 1}
SUCCEEDED = {"state": 4, "terminal_at": NOW}
FAILED = {"state": 6, "terminal_at": NOW, "terminal_cause": "boom"}
GOOD = {
    "scheduled": {"state": 1},
    "waiting": WAITING,
    "leased": LEASED,
    "leased and asked to stop": LEASED | {"cancel_cause": "asked"},
    "succeeded": SUCCEEDED,
    "cancelled": FAILED | {"state": 5},
    "dead-lettered": FAILED,
    "quarantined": FAILED | {"state": 7},
}
BAD = {
    "no such state": ({"state": 0}, "state"),
    "a state too high": (FAILED | {"state": 8}, "state"),
    "leased without an owner": (LEASED | {"lease_owner": None}, "lease"),
    "leased without an end": (LEASED | {"lease_expires_at": None}, "lease"),
    "an owner while scheduled": ({"state": 1, "lease_owner": "w"}, "lease"),
    "a lease's end while scheduled": ({"state": 1, "lease_expires_at": NOW}, "lease"),
    "a lease while waiting": (WAITING | {"lease_owner": "w"}, "lease"),
    "a lease's end after success": (SUCCEEDED | {"lease_expires_at": NOW}, "lease"),
    "a request to cancel while scheduled": ({"state": 1, "cancel_cause": "asked"}, "lease"),
    "a request to cancel after the end": (FAILED | {"cancel_cause": "asked"}, "lease"),
    "an end while scheduled": ({"state": 1, "terminal_at": NOW}, "terminal"),
    "a cause while leased": (LEASED | {"terminal_cause": "boom"}, "terminal"),
    "an end while waiting": (WAITING | {"terminal_at": NOW}, "terminal"),
    "success without an end": (SUCCEEDED | {"terminal_at": None}, "terminal"),
    "success with a cause": (SUCCEEDED | {"terminal_cause": "boom"}, "terminal"),
    "a dead letter without a cause": (FAILED | {"terminal_cause": None}, "terminal"),
    "a dead letter without an end": (FAILED | {"terminal_at": None}, "terminal"),
    "cancelled without a cause": (FAILED | {"state": 5, "terminal_cause": None}, "terminal"),
    "quarantined without an end": (FAILED | {"state": 7, "terminal_at": None}, "terminal"),
    "waiting for nobody": ({"state": 2, "latch": 0}, "latch"),
    "scheduled, but waiting": ({"state": 1, "latch": 1}, "latch"),
}
ALIASES = pytest.mark.parametrize("alias", ["default", "postgres"], ids=["sqlite", "postgres"])


def write(alias: str, **columns: object) -> None:
    """Insert one job row by raw SQL."""
    row = {
        "job_id": uuid.uuid4().hex, "wire_name": "w", "queue": "q", "attempt": 0,
        "claim_number": 0, "ordinal": 1, "due_time": NOW, "enqueued_at": NOW, "mode": 1,
        "latch": 0, **columns,
    }  # fmt: skip
    names, places = ", ".join(row), ", ".join(["%s"] * len(row))
    with connections[alias].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {Job._meta.db_table} ({names}) VALUES ({places})", list(row.values())
        )


@ALIASES
@pytest.mark.parametrize("columns", GOOD.values(), ids=GOOD)
def test_1_3_a_row_that_keeps_the_rule_is_written(alias, columns, databases):
    """The constraints stand in the way of no state."""
    empty(alias)
    write(alias, **columns)
    assert [JobState(job.state) for job in Job.objects.using(alias)] == [columns["state"]]


@ALIASES
@pytest.mark.parametrize(("columns", "constraint"), BAD.values(), ids=BAD)
def test_1_3_a_row_that_breaks_the_rule_is_refused(alias, columns, constraint, databases):
    """By the constraint that is named for it, whoever writes the row."""
    empty(alias)
    with pytest.raises(IntegrityError, match=f"backwave_{constraint}"):
        write(alias, **columns)
    assert not Job.objects.using(alias).exists()


@ALIASES
@pytest.mark.parametrize("columns", GOOD.values(), ids=GOOD)
def test_1_3_a_row_cannot_be_changed_into_one_that_breaks_the_rule(alias, columns, databases):
    """Moving the state alone, without what belongs to it, is refused."""
    empty(alias)
    write(alias, **columns)
    shape = {1: "open", 2: "waiting", 3: "leased", 4: "done", 5: "ended", 6: "ended", 7: "ended"}
    for state in JobState:
        if shape[state] != shape[columns["state"]]:
            with pytest.raises(IntegrityError), transaction.atomic(using=alias):
                Job.objects.using(alias).update(state=state)


@ALIASES
def test_1_1_a_job_id_is_there_once(alias, databases):
    """The database itself keeps two jobs from having one id."""
    empty(alias)
    job_id = uuid.uuid4().hex
    write(alias, state=1, job_id=job_id)
    with pytest.raises(IntegrityError):
        write(alias, state=1, job_id=job_id)
