"""The read-only admin: who sees what, and what nobody can do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from backwave_django import JobState, enqueue_many
from backwave_django.core.commands import ClaimRequest
from backwave_django.core.dispatch import QueueShare
from backwave_django.core.outcomes import Failed, Outcome, Released, Succeeded, Unroutable
from backwave_django.deployment import clock, store
from backwave_django.models import Job
from backwave_django.runtime.entropy import new_job_id
from backwave_django.storage.values import NewJob
from tests.testapp.jobs import nothing

pytestmark = pytest.mark.django_db(databases=["default", "postgres"])

LIST = "admin:backwave_django_job_changelist"
XSS = "<script>alert('x')</script>"


@pytest.fixture(params=["default", "postgres"], ids=["sqlite", "postgres"])
def alias(request: pytest.FixtureRequest, settings: Any) -> str:
    """Keep the jobs in each database in turn; users and sessions are in ``default``."""
    settings.BACKWAVE = {"DATABASE": request.param}
    return str(request.param)


@pytest.fixture
def superuser() -> Client:
    """A browser of somebody who may do everything."""
    return _browser(User.objects.create_superuser("root"))


@pytest.fixture
def viewer() -> Client:
    """A browser of a member of staff who may view jobs, and no more."""
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_job"))
    return _browser(user)


def _browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def new_job(wire_name: str = "nothing", queue: str = "default", payload: bytes = b"{}") -> UUID:
    """Store a job, also one that no client would make."""
    job_id = new_job_id()
    now = clock().now()
    store().enqueue(NewJob(job_id, wire_name, queue, payload, now), now)
    return job_id


def end(queue: str, result: Any) -> None:
    """Let a worker claim all of a queue and report one result for each."""
    now = clock().now() + timedelta(seconds=1)
    request = ClaimRequest((QueueShare(queue, 32),), 32, timedelta(minutes=1))
    claimed = store().claim("worker-1", request, now)
    store().report([Outcome(job.lease, result) for job in claimed.jobs], now)


def detail(alias: str, job_id: UUID) -> str:
    """Give the address of a job's page."""
    pk = Job.objects.using(alias).get(job_id=job_id).pk
    return reverse("admin:backwave_django_job_change", args=[pk])


def every_state(alias: str) -> dict[JobState, UUID]:
    """Make a job in each state that there is."""
    jobs = {JobState.SCHEDULED: new_job(queue="later")}
    jobs[JobState.AWAITING_PARENT] = nothing.using(after=[jobs[JobState.SCHEDULED]]).enqueue()
    for state, result in {
        JobState.SUCCEEDED: Succeeded(b"1"),
        JobState.DEAD_LETTERED: Failed("ValueError: secret", "Traceback: secret"),
        JobState.QUARANTINED: Unroutable("payload of job 'x': secret"),
    }.items():
        jobs[state] = new_job(queue=state.name)
        end(state.name, result)
    jobs[JobState.CANCELLED] = new_job(queue="cancelled")
    store().cancel(jobs[JobState.CANCELLED], "ada", clock().now())
    jobs[JobState.LEASED] = new_job(queue="leased")
    now = clock().now() + timedelta(seconds=1)
    store().claim(
        "worker-1", ClaimRequest((QueueShare("leased", 1),), 1, timedelta(minutes=1)), now
    )
    assert set(jobs) == set(JobState)
    return jobs


@pytest.mark.parametrize("who", ["superuser", "viewer"])
def test_list_and_pages_show_jobs_in_every_state(
    alias: str, who: str, request: pytest.FixtureRequest
) -> None:
    """To whoever may view them."""
    browser = request.getfixturevalue(who)
    jobs = every_state(alias)
    page = browser.get(reverse(LIST)).content.decode()
    for state, job_id in jobs.items():
        assert str(job_id) in page
        assert state.label in page
        answer = browser.get(detail(alias, job_id))
        assert answer.status_code == 200
        text = answer.content.decode()
        assert str(job_id) in text
        assert state.label in text
        assert "secret" not in text
    assert "secret" not in page


def test_a_page_shows_the_kind_of_a_failure_and_never_its_message(
    alias: str, viewer: Client
) -> None:
    """The message is text of the application, and may hold what not everybody may see."""
    job_id = new_job(queue="q")
    end("q", Failed("ValueError: card 4111 declined", "Traceback ... card 4111"))
    text = viewer.get(detail(alias, job_id)).content.decode()
    assert "ValueError" in text
    assert "4111" not in text


def test_text_of_the_application_is_escaped(alias: str, superuser: Client) -> None:
    """Wire names, queues and causes are data."""
    job_id = new_job(wire_name=XSS, queue=XSS)
    end(XSS, Failed(f"{XSS} and no colon", XSS))
    for address in (reverse(LIST), detail(alias, job_id), detail(alias, job_id) + "../history/"):
        text = superuser.get(address, follow=True).content.decode()
        assert XSS not in text
    assert "&lt;script&gt;" in superuser.get(reverse(LIST)).content.decode()
    assert "&lt;script&gt;" in superuser.get(detail(alias, job_id)).content.decode()


def test_control_characters_in_a_cause_are_shown(alias: str, superuser: Client) -> None:
    """NUL and lone surrogates are stored as escapes, so the page can be rendered (A047)."""
    job_id = new_job(queue="q")
    end("q", Failed("a\x00b \ud800 c", "a\x00b \ud800 c"))
    assert r"a\x00b \ud800 c" in superuser.get(detail(alias, job_id)).content.decode()


def test_a_payload_that_nobody_can_decode_is_no_obstacle(alias: str, superuser: Client) -> None:
    """The pages do not decode payloads (A048)."""
    job_id = new_job(payload=b"\xff\x00 not json")
    assert superuser.get(reverse(LIST)).status_code == 200
    assert superuser.get(detail(alias, job_id)).status_code == 200


@pytest.mark.parametrize("who", ["superuser", "viewer"])
def test_nothing_can_be_added_changed_or_deleted(
    alias: str, who: str, request: pytest.FixtureRequest
) -> None:
    """By nobody, also not by a request that no page offers."""
    browser = request.getfixturevalue(who)
    job_id = new_job()
    row = Job.objects.using(alias).get(job_id=job_id)
    before = Job.objects.using(alias).values().get()
    add = reverse("admin:backwave_django_job_add")
    delete = reverse("admin:backwave_django_job_delete", args=[row.pk])
    change = detail(alias, job_id)
    assert browser.get(add).status_code == 403
    assert browser.post(add, {"wire_name": "x"}).status_code == 403
    assert browser.get(delete).status_code == 403
    assert browser.post(delete, {"post": "yes"}).status_code == 403
    assert browser.post(change, {"wire_name": "x", "state": 4}).status_code == 403
    browser.post(
        reverse(LIST), {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    )
    assert Job.objects.using(alias).values().get() == before
    page = browser.get(reverse(LIST)).content.decode() + browser.get(change).content.decode()
    for offer in ('name="_save"', "delete_selected", add, delete, "<textarea", 'name="wire_name"'):
        assert offer not in page


def test_without_the_permission_nothing_is_shown(alias: str) -> None:
    """Members of staff are refused, others are asked to log in."""
    job_id = new_job()
    staff = _browser(User.objects.create_user("staff", is_staff=True))
    plain = _browser(User.objects.create_user("plain"))
    for address in (reverse(LIST), detail(alias, job_id)):
        assert staff.get(address).status_code == 403
        for browser in (plain, Client()):
            answer = browser.get(address)
            assert answer.status_code == 302
            assert "/login/" in answer.headers["Location"]


def found(browser: Client, **query: str) -> int:
    """Count the jobs that a search lists."""
    answer = browser.get(reverse(LIST), query)
    assert answer.status_code == 200, query
    return len(answer.context["cl"].result_list)


def test_search_finds_whole_ids_and_wire_names(alias: str, superuser: Client) -> None:
    """And nothing by a part of either: such a search would read the whole table."""
    job_id = new_job("send-receipt")
    new_job("send-invoice")
    assert found(superuser, q=str(job_id)) == 1
    assert found(superuser, q=job_id.hex) == 1
    assert found(superuser, q="send-receipt") == 1
    assert found(superuser, q="send-") == 0
    assert found(superuser, q="") == 2


@pytest.mark.parametrize("q", ["%", "'", "x" * 2_000, "\x00", "a b c", str(2**70), "ü", '"a b"'])
def test_any_search_is_answered(alias: str, superuser: Client, q: str) -> None:
    """With nothing, and with no error."""
    new_job()
    answer = superuser.get(reverse(LIST), {"q": q})
    assert answer.status_code == 200


def test_the_list_can_be_narrowed_by_state(alias: str, superuser: Client) -> None:
    """A value that is no state leads back to the list."""
    every_state(alias)
    for state in JobState:
        assert found(superuser, state__exact=str(state.value)) == 1
    for wrong in ("99", "x"):
        answer = superuser.get(reverse(LIST), {"state__exact": wrong}, follow=True)
        assert answer.status_code == 200


def test_a_page_that_does_not_exist_is_not_found(alias: str, superuser: Client) -> None:
    """The admin leads back to its index and says so."""
    for pk in ("999999", "nope", str(2**70)):
        answer = superuser.get(reverse("admin:backwave_django_job_change", args=[pk]), follow=True)
        assert answer.status_code == 200
        assert "exist" in answer.content.decode()


def test_a_long_list_costs_no_more_statements_than_a_short_one(
    alias: str, superuser: Client
) -> None:
    """Fifty rows a page, newest first, and no statement for each."""
    counts = []
    for many in (2, 60):
        enqueue_many([nothing.payload(x=i) for i in range(many)])
        superuser.get(reverse(LIST))
        with CaptureQueriesContext(connections[alias]) as queries:
            page = superuser.get(reverse(LIST))
        counts.append(len(queries))
    assert counts[0] == counts[1]
    rows = list(page.context["cl"].result_list)
    assert len(rows) == 50
    assert [row.pk for row in rows] == sorted((row.pk for row in rows), reverse=True)


def test_a_handed_back_job_is_scheduled_again(alias: str, superuser: Client) -> None:
    """A page follows the job."""
    job_id = new_job(queue="q")
    end("q", Released(started=False))
    assert JobState.SCHEDULED.label in superuser.get(detail(alias, job_id)).content.decode()
