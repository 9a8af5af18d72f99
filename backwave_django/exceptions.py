"""Every public error, in one place to import from.

Who must act, and can the same call succeed later: an ``EnqueueError`` and an
``InvalidPayload`` are the caller's to mend, a ``StoreUnavailable`` may be tried again,
a ``StoreRejected`` and a ``ConfigurationError`` need an operator.
"""

from __future__ import annotations

from uuid import UUID

from .conf import ConfigurationError
from .core.errors import BackwaveError, IllegalTransition, InvalidOption, InvariantViolated
from .handlers.errors import DeclarationError, InvalidPayload, OutputTooLarge, UnroutableJob
from .storage.errors import StoreError, StoreMisused, StoreRejected, StoreUnavailable

__all__ = [
    "BackwaveError",
    "ConfigurationError",
    "DeclarationError",
    "DuplicateJob",
    "EnqueueError",
    "IllegalTransition",
    "InvalidOption",
    "InvalidPayload",
    "InvariantViolated",
    "OutputTooLarge",
    "PayloadTooLarge",
    "StoreError",
    "StoreMisused",
    "StoreRejected",
    "StoreUnavailable",
    "TooManyParents",
    "UnknownParent",
    "UnroutableJob",
    "WireNameTooLong",
]


class EnqueueError(BackwaveError):
    """The store refused a job; nothing of it was stored. ``facts`` holds value and limit."""


class DuplicateJob(EnqueueError):
    """A job of this id exists already, by its ``job_id`` or its idempotency key."""

    def __init__(self, message: str, *, job_id: UUID, **facts: object) -> None:
        super().__init__(message, job_id=job_id, **facts)
        self.job_id = job_id


class PayloadTooLarge(EnqueueError):
    """The encoded payload is over the limit ``MaxPayloadBytes``."""


class WireNameTooLong(EnqueueError):
    """The wire name is over the limit ``MaxWireNameLength``."""


class UnknownParent(EnqueueError):
    """A parent that the job is to wait for does not exist."""


class TooManyParents(EnqueueError):
    """The job has more parents than the limit ``MaxParentsPerJob``."""
