"""System checks: each id is given when something is wrong, and only then."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from backwave_django import Strict, handles, job
from backwave_django.handlers.registry import Registry
from tests.support.processes import ROOT

pytestmark = pytest.mark.usefixtures("declared")


def handler(x: int) -> None:
    """Be a job."""


def other(x: int) -> None:
    """Be another."""


def payload_class() -> Any:
    """Make a payload class; each can be declared once."""

    @dataclass
    class Payload:
        x: int

    return Payload


class Handler:
    """Its handler."""

    def handle(self, job: Any, ctx: Any) -> None:
        """Do nothing."""


def found() -> dict[str, str]:
    """Run the checks of this package; gives the messages by the last part of the id."""
    messages = [m for m in run_checks(tags=["backwave"]) if m.id]
    assert all(message.hint for message in messages)
    return {str(message.id).removeprefix("backwave_django."): message.msg for message in messages}


def test_nothing_is_said_when_all_is_well() -> None:
    """With jobs in both forms, on the queues that are served."""
    job("one")(handler)
    handles(job("two")(payload_class()))(Handler)
    assert found() == {}


# Each sets something wrong; the id that it gives, and what its message names.
Wrong = Callable[[Any, pytest.MonkeyPatch], None]


def sqlite_options(**options: Any) -> Wrong:
    """Set the OPTIONS of the SQLite alias."""

    def apply(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(django_settings.DATABASES["default"], "OPTIONS", options)

    return apply


GOOD = {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL", "timeout": 20}


def wrong_key(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Misspell a key."""
    settings.BACKWAVE = {"DATABSE": "default"}


def twice(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare two jobs of one name."""
    job("same")(handler)
    job("same")(other)


def no_handler(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a payload class without handler."""
    job("lonely")(payload_class())


def unknown_annotation(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotate a parameter with what does not exist."""
    monkeypatch.setitem(handler.__annotations__, "x", "Nowhere")
    job("broken")(handler)


def broken_annotation(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotate a parameter with what is no Python."""
    monkeypatch.setitem(handler.__annotations__, "x", "list[")
    job("broken")(handler)


def ambiguous_annotation(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotate a parameter with types that look alike in JSON."""
    monkeypatch.setitem(handler.__annotations__, "x", set[int] | list[int])
    job("broken")(handler)


def not_routed(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the jobs elsewhere, and leave out the router."""
    settings.BACKWAVE = {"DATABASE": "postgres"}
    settings.DATABASE_ROUTERS = []


def unserved_queue(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a job where nobody works."""
    job("one", queue="nobody")(handler)


def dedicated(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the jobs elsewhere."""
    settings.BACKWAVE = {"DATABASE": "postgres"}


def small_pool(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a group use more connections than there are."""
    group = {"policy": Strict("default"), "pool_size": 10, "pumps": 2}
    settings.BACKWAVE = {"DATABASE": "postgres", "WORKER_GROUPS": {"big": group}}
    monkeypatch.setitem(
        django_settings.DATABASES["postgres"], "OPTIONS", {"pool": {"max_size": 21}}
    )


CASES: list[tuple[str, Wrong, tuple[str, ...]]] = [
    ("E001", wrong_key, ("'DATABSE'", "did you mean 'DATABASE'")),
    ("E002", twice, ("'same'", "test_checks.handler", "test_checks.other")),
    ("E003", no_handler, ("'lonely'", "Payload")),
    ("E004", unknown_annotation, ("'broken'", "Nowhere")),
    ("E004", broken_annotation, ("'broken'",)),
    ("E004", ambiguous_annotation, ("'broken'", "array-like")),
    ("E005", not_routed, ("'postgres'", "to 'default'")),
    ("W001", unserved_queue, ("'one'", "'nobody'")),
    ("W002", dedicated, ("'postgres'",)),
    ("W003", sqlite_options(**{**GOOD, "transaction_mode": None}), ("'default'", "IMMEDIATE")),
    ("W003", sqlite_options(**{**GOOD, "transaction_mode": "DEFERRED"}), ("'default'",)),
    ("W004", sqlite_options(**{**GOOD, "init_command": ""}), ("'default'", "write-ahead")),
    ("W005", sqlite_options(**{**GOOD, "timeout": 4.9}), ("'default'", "4.9 seconds")),
    ("W005", sqlite_options(**{**GOOD, "timeout": 0}), ("'default'", "0 seconds")),
    ("W006", small_pool, ("'postgres'", "21 connections", "22")),
]


@pytest.mark.parametrize(
    ("check_id", "wrong", "texts"), CASES, ids=[f"{c[0]}-{c[1].__name__}" for c in CASES]
)
def test_each_fault_has_its_id(
    settings: Any, monkeypatch: pytest.MonkeyPatch, check_id: str, wrong: Wrong, texts: Any
) -> None:
    """The message names what is wrong, and a hint says what to do."""
    wrong(settings, monkeypatch)
    messages = found()
    assert check_id in messages
    for text in texts:
        assert text in messages[check_id]
    # The jobs elsewhere are a warning of their own; else nothing besides is said.
    assert set(messages) - {"W002"} == {check_id} - {"W002"}


def test_every_id_of_the_page_is_produced() -> None:
    """A check that nothing sets off would be a promise only."""
    import re

    page = (ROOT / "docs/reference/checks.md").read_text()
    documented = set(re.findall(r"backwave_django\.([EW]\d{3})", page))
    assert documented == {check_id for check_id, _, _ in CASES}


def test_a_broken_setting_is_said_once(settings: Any) -> None:
    """The other checks need the settings, and are silent rather than confusing."""
    job("one", queue="nobody")(handler)
    settings.BACKWAVE = {"WORKER_GROUPS": 3}
    assert set(found()) == {"E001"}


def test_the_sqlite_checks_are_for_the_alias_of_the_jobs(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the jobs are on PostgreSQL, a plain SQLite file is no concern of theirs."""
    sqlite_options()(settings, monkeypatch)
    settings.BACKWAVE = {"DATABASE": "postgres"}
    assert set(found()) == {"W002"}


@pytest.mark.parametrize(
    ("pool", "warned"),
    [(True, True), ({"min_size": 4}, True), ({"max_size": 21}, False), ({"min_size": 30}, False)],
    ids=repr,
)
def test_a_pool_has_to_be_as_big_as_a_group(
    settings: Any, monkeypatch: pytest.MonkeyPatch, pool: Any, warned: bool
) -> None:
    """A pump and its twenty slots; without a pool there is nothing to say."""
    dedicated(settings, monkeypatch)
    monkeypatch.setitem(django_settings.DATABASES["postgres"], "OPTIONS", {"pool": pool})
    assert ("W006" in found()) is warned


def test_a_reloaded_module_is_no_clash(declared: Registry) -> None:
    """The same declaration twice is one."""
    job("same")(handler)
    job("same")(handler)
    assert found() == {}


def test_the_checks_are_registered(settings: Any) -> None:
    """``manage.py check`` runs them, alone with ``--tag backwave``, and fails for an error."""
    job("lonely")(payload_class())
    for options in ({}, {"tags": ["backwave"]}):
        with pytest.raises(SystemCheckError, match=r"backwave_django\.E003.*lonely"):
            call_command("check", **options)


def test_a_warning_does_not_fail_the_command(settings: Any, capsys: Any) -> None:
    """And can be silenced by its id."""
    job("one", queue="nobody")(handler)
    errors = io.StringIO()
    call_command("check", tags=["backwave"], stderr=errors)
    assert "backwave_django.W001" in errors.getvalue()
    settings.SILENCED_SYSTEM_CHECKS = ["backwave_django.W001"]
    errors, output = io.StringIO(), io.StringIO()
    call_command("check", tags=["backwave"], stderr=errors, stdout=output)
    assert "W001" not in errors.getvalue() + output.getvalue().replace("(1 silenced)", "")
