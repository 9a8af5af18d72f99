"""Declaring jobs needs neither settings nor models."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import backwave_django
from tests.support.processes import ROOT

WITHOUT_SETTINGS = """
import sys
import backwave_django
assert "django" not in sys.modules, "importing the package alone loads Django"

from backwave_django import JobContext, RetryPolicy, Strict, Weighted, handles, job
from backwave_django import GiveUp, JobState, RetryAfter

@job("send", queue="mail", labels=["a"], retry=RetryPolicy(max_attempts=2))
def send(order_id: int, ctx: JobContext) -> str:
    return f"sent {order_id}"

bound = send.payload(order_id=3)
assert bound.job_type.codec.encode(bound.value) == b'{"order_id":3}'
assert send(3, None) == "sent 3"
models = [name for name in sys.modules if name.startswith(("django.db", "backwave_django.models"))]
assert not models, models

try:
    send.enqueue(order_id=3)
except backwave_django.BackwaveError as error:
    print(error)
"""


def test_jobs_can_be_declared_without_settings() -> None:
    """No Django model is loaded, and an enqueue says what is missing."""
    environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SETTINGS],
        env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.startswith("backwave_django is not ready: add 'backwave_django' to")


@pytest.mark.parametrize("name", backwave_django.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    """Each is imported at its first use, and listed by ``dir``."""
    assert getattr(backwave_django, name) is not None
    assert name in dir(backwave_django)


def test_the_public_names_are_those_that_the_stubs_show() -> None:
    """What a type checker sees and what can be imported are the same list."""
    import ast

    tree = ast.parse((ROOT / "backwave_django" / "__init__.py").read_text())
    [checked] = [node for node in tree.body if isinstance(node, ast.If)]
    shown = {
        alias.asname for node in ast.walk(checked) if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }  # fmt: skip
    assert shown == set(backwave_django.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        backwave_django.nope  # type: ignore[attr-defined]  # noqa: B018
