"""The jobs that these tests enqueue beside those of the test app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from uuid import UUID

from backwave_django import handles, job
from backwave_django.handlers.registry import registry

T = TypeVar("T")


def unlisted(declare: Callable[[Any], T]) -> Callable[[Any], T]:
    """Declare a job, and take it out of the registry again: it is only ever enqueued."""

    def apply(target: Any) -> T:
        declared = declare(target)
        job_type: Any = getattr(declared, "job_type", None) or target.__backwave_job_type__
        registry.remove(job_type.wire_name)
        return declared

    return apply


@unlisted(cast("Any", job("labelled", queue="mail", labels=["a", "b"])))
def labelled(x: int, note: str = "") -> None:
    """Carry labels."""


@unlisted(cast("Any", job("charged")))
@dataclass(frozen=True)
class Charged:
    """A payload class."""

    order: UUID


@handles(Charged)
class ChargedHandler:
    """Its handler."""

    def handle(self, job: Charged, ctx: Any) -> None:
        """Do nothing."""
