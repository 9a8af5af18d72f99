"""Rows in every state: the database takes them, the store and the admin show them."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from backwave_django.core.states import JobState
from backwave_django.models import Job
from backwave_django.storage.orm.store import DjangoStore
from tests.support.factories import JobFactory

ALIASES = ["default", "postgres"]


@pytest.mark.parametrize("alias", ALIASES, ids=["sqlite", "postgres"])
@pytest.mark.parametrize("state", JobState, ids=lambda state: state.name)
@pytest.mark.django_db(databases=ALIASES)
def test_a_row_in_any_state_is_read_as_that_state(alias: str, state: JobState) -> None:
    """What the CHECK constraints let in is what a snapshot shows."""
    made = JobFactory.build(state=state)
    made.save(using=alias)
    found = DjangoStore(alias).get_job(made.job_id)
    assert found is not None
    assert found.state is state
    assert (found.lease_owner is not None) is (state is JobState.LEASED)
    assert (found.terminal_at is not None) is state.is_terminal
    assert Job.objects.using(alias).count() == 1


@pytest.mark.django_db
def test_the_admin_lists_every_state_by_its_spelling(client: Client, settings: Any) -> None:
    """As the glossary spells it, on the list and on the page of the job."""
    made = [JobFactory(state=state) for state in JobState]
    client.force_login(User.objects.create_superuser("root"))
    page = client.get("/admin/backwave_django/job/").content.decode()
    for job in made:
        label = JobState(job.state).label
        assert f">{label}<" in page
        detail = client.get(f"/admin/backwave_django/job/{job.pk}/change/").content.decode()
        assert label in detail
