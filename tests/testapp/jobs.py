"""The jobs that the tests run."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connections, transaction
from django.utils import timezone, translation

from backwave_django import GiveUp, JobContext, RetryAfter, RetryPolicy, handles, job
from backwave_django.conf import configuration

from .models import Effect

QUICK = RetryPolicy(max_attempts=5, backoff=lambda attempt: 0)


def leave(key: str, note: str = "") -> None:
    """Write an effect beside the jobs."""
    Effect.objects.using(configuration().database).create(key=key, note=note)


@job("nothing")
def nothing(x: int = 0) -> None:
    """Do nothing."""


@job("effect", retry=QUICK)
def effect(key: str, ctx: JobContext) -> None:
    """Leave an effect that says which attempt it was."""
    leave(key, f"{ctx.attempt} {os.getpid()}")


@job("stuck-once", retry=QUICK)
def stuck_once(key: str, ctx: JobContext) -> None:
    """Leave an effect; never end in the first attempt."""
    leave(key, str(ctx.attempt))
    if ctx.attempt == 1:
        threading.Event().wait()


@job("stuck-until-told", retry=QUICK)
def stuck_until_told(key: str, ctx: JobContext) -> None:
    """Leave an effect; the first attempt ends when it hears that its lease is gone."""
    leave(key, str(ctx.attempt))
    while ctx.attempt == 1 and not ctx.cancel_requested:
        threading.Event().wait(0.02)


@job("fails", retry=QUICK)
def fails(times: int, ctx: JobContext) -> None:
    """Fail so many times, then succeed."""
    ctx.add_tag(f"attempt {ctx.attempt}")
    if ctx.attempt <= times:
        raise ValueError(f"failure number {ctx.attempt}")


class BadText(Exception):
    """An error whose text cannot be had."""

    def __init__(self, one: object, two: object) -> None:
        super().__init__(one, two)

    def __str__(self) -> str:
        raise RuntimeError("no text")


RAISERS: dict[str, Callable[[], object]] = {
    "SystemExit": lambda: sys.exit(3),
    "KeyboardInterrupt": lambda: _raise(KeyboardInterrupt()),
    "GeneratorExit": lambda: _raise(GeneratorExit()),
    "CancelledError": lambda: _raise(asyncio.CancelledError()),
    "BadText": lambda: _raise(BadText(1, 2)),
    "NUL": lambda: _raise(ValueError("a\x00b \ud800 c")),
    "huge": lambda: _raise(ValueError("x" * 10_000_000)),
    "group": lambda: _raise(ExceptionGroup("many", [ValueError("one"), TypeError("two")])),
    "recursion": lambda: _recurse(),
    "StopIteration": lambda: _raise(StopIteration()),
}


def _raise(error: BaseException) -> None:
    raise error


def _recurse() -> None:
    _recurse()


@job("raises", retry=RetryPolicy(max_attempts=1))
def raises(what: str) -> None:
    """Raise something nasty."""
    RAISERS[what]()


@job("araises", retry=RetryPolicy(max_attempts=1))
async def araises(what: str) -> None:
    """Raise something nasty on the event loop."""
    await asyncio.sleep(0)
    RAISERS[what]()


@job("poison")
@dataclass
class Poison:
    """A payload whose own check raises what no decoder expects."""

    fuse: int

    def __post_init__(self) -> None:
        if self.fuse:
            raise SystemExit(self.fuse)


@handles(Poison)
class PoisonHandler:
    """Never gets to see one."""

    def handle(self, job: Poison, ctx: JobContext) -> None:
        """Do nothing."""


@job("gives-up")
def gives_up() -> None:
    """Give up at once."""
    raise GiveUp("there is no such order")


@job("retries-after", retry=QUICK)
def retries_after(seconds: float, ctx: JobContext) -> None:
    """Ask for a wait of its own, once."""
    if ctx.attempt == 1:
        raise RetryAfter(timedelta(seconds=seconds))


@job("kills-worker", retry=RetryPolicy(max_attempts=2, backoff=lambda attempt: 0))
def kills_worker() -> None:
    """End the whole process, as an operating system short of memory does."""
    os.kill(os.getpid(), signal.SIGKILL)


@job("waits-for-cancel")
def waits_for_cancel(key: str, ctx: JobContext) -> None:
    """Run until somebody asks it to stop."""
    leave(key, "running")
    while True:
        threading.Event().wait(0.02)
        ctx.raise_if_cancelled()


@job("dirty", retry=RetryPolicy(max_attempts=1))
def dirty(how: str) -> None:
    """Leave its connection, or its thread, in a state that no other job may meet."""
    alias = configuration().database
    connection = connections[alias]
    if how == "atomic":
        transaction.atomic(using=alias).__enter__()
        leave("dirty", how)
    elif how == "raw begin":
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
        leave("dirty", how)
    elif how == "closed":
        connection.ensure_connection()
        connection.close()
    elif how == "raw closed":
        connection.ensure_connection()
        connection.connection.close()
    elif how == "closed in atomic":
        with transaction.atomic(using=alias):
            connection.close()
    elif how == "autocommit":
        connection.set_autocommit(False)
    elif how == "broken":
        with transaction.atomic(using=alias):
            connection.needs_rollback = True
            raise ValueError("inside")
    elif how == "session":
        _change_session(connection)
    elif how == "thread":
        _change_thread()


def _change_session(connection: Any) -> None:
    text = "PRAGMA cache_size = 7" if connection.vendor == "sqlite" else "SET search_path = nowhere"
    with connection.cursor() as cursor:
        cursor.execute(text)


def _change_thread() -> None:
    import decimal

    translation.activate("de")
    timezone.activate("Asia/Tokyo")
    decimal.getcontext().prec = 3


@job("tidy", retry=RetryPolicy(max_attempts=1))
def tidy(key: str) -> None:
    """Leave an effect that says in which surroundings it ran."""
    import decimal

    language, zone = translation.get_language(), timezone.get_current_timezone_name()
    leave(key, f"{language} {zone} {decimal.getcontext().prec}")


@job("aeffect", retry=QUICK)
async def aeffect(key: str, ctx: JobContext) -> None:
    """Leave an effect from async code."""
    await Effect.objects.using(configuration().database).acreate(key=key, note=str(ctx.attempt))
    ctx.set_output({"key": key})


@job("enqueues", retry=QUICK)
def enqueues(key: str) -> None:
    """Enqueue another job, in a transaction with an effect."""
    with transaction.atomic(using=configuration().database):
        leave(key, "parent")
        effect.enqueue(key=f"{key}-child")
