"""The port through which a declared job reaches the client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol
from uuid import UUID

from ..core.errors import BackwaveError
from ..core.tags import TagLike
from .registry import JobType


@dataclass(frozen=True, slots=True)
class EnqueueOptions:
    """What an enqueue may say beside the payload; see ``backwave_django.enqueue``."""

    due: datetime | timedelta | None = None
    queue: str | None = None
    tags: Sequence[TagLike] = ()
    job_id: UUID | None = None
    idempotency_key: str | None = None
    on_duplicate: Literal["raise", "return"] = "raise"
    after: Sequence[UUID] = ()
    mode: int | None = None


class ClientPort(Protocol):
    """What a declared job asks of the client."""

    def enqueue_typed(self, job_type: JobType, payload: Any, options: EnqueueOptions) -> UUID:
        """Enqueue one job of a type, with its payload as the codec takes it."""
        ...

    async def aenqueue_typed(
        self, job_type: JobType, payload: Any, options: EnqueueOptions
    ) -> UUID:
        """Do the same from async code."""
        ...


class _Unbound:
    client: ClientPort | None = None


def bind(client: ClientPort) -> None:
    """Connect the client; done once, when the app is ready."""
    _Unbound.client = client


def client() -> ClientPort:
    """Give the client.

    Raises:
        BackwaveError: Django is not set up, or the app is not installed.
    """
    if _Unbound.client is None:
        raise BackwaveError(
            "backwave_django is not ready: add 'backwave_django' to INSTALLED_APPS, and call "
            "django.setup() before enqueueing outside of manage.py"
        )
    return _Unbound.client
