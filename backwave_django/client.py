"""Enqueueing: from a payload to a job in the store, in the caller's transaction.

``enqueue`` inside ``transaction.atomic()`` on the store's alias is transactional: the
job exists if and only if the block commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.transaction import TransactionManagementError

from .core.errors import InvalidOption
from .core.tags import TagLike, tag_set
from .core.text import check_name
from .deployment import clock, store
from .exceptions import (
    DuplicateJob,
    EnqueueError,
    PayloadTooLarge,
    TooManyParents,
    UnknownParent,
    WireNameTooLong,
)
from .handlers import port
from .handlers.declare import BoundPayload, FunctionJob, job_type_of
from .handlers.errors import DeclarationError
from .handlers.port import EnqueueOptions
from .handlers.registry import JobType
from .runtime.entropy import job_id_for_key, new_job_id
from .storage.values import DependencyMode, EnqueueResult, EnqueueStatus, NewJob

OnSuccess = DependencyMode.ON_SUCCESS
"""Released when every parent has succeeded; cancelled when one ends otherwise."""

OnAnyTerminal = DependencyMode.ON_ANY_TERMINAL
"""Released when every parent has ended, however."""

IDEMPOTENCY_KEY_MAX = 512


def enqueue(
    payload: Any,
    *,
    due: datetime | timedelta | None = None,
    queue: str | None = None,
    tags: Sequence[TagLike] = (),
    job_id: UUID | None = None,
    idempotency_key: str | None = None,
    on_duplicate: Literal["raise", "return"] = "raise",
    after: Sequence[UUID] = (),
    mode: DependencyMode = OnSuccess,
) -> UUID:
    """Enqueue one job, in the transaction that is open on the store's alias, if one is.

    Args:
        payload: an instance of a class that ``@job`` stands on, or what
            ``some_job.payload(...)`` gives.
        due: an aware ``datetime``, or a ``timedelta`` from now; by default, and where it
            lies in the past, due now.
        queue: instead of the queue that the type declares.
        tags: labels (``"vip"``) and keyed tags (``("tenant", "acme")``), added to the
            type's labels.
        job_id: the job's id; by default a new UUID, version 7.
        idempotency_key: derives the id from wire name and key, so that a second enqueue
            of both is a duplicate, for as long as the first job is kept.
        on_duplicate: ``"return"`` gives back the id of the job that is there.
        after: the jobs that must end first, at most ``MaxParentsPerJob``.
        mode: how it reacts to their ends.

    Returns:
        The job's id.

    Raises:
        InvalidPayload: a value that cannot travel; nothing was sent to the database.
        InvalidOption: an option that cannot be, such as a naive due time.
        EnqueueError: ``DuplicateJob``, ``PayloadTooLarge``, ``WireNameTooLong``,
            ``UnknownParent`` or ``TooManyParents``; nothing was stored.
        StoreUnavailable: outside a transaction, the database was away; in one, the
            database's own error comes unchanged.
    """
    job_type, value = _typed(payload)
    options = EnqueueOptions(due, queue, tags, job_id, idempotency_key, on_duplicate, after, mode)
    return _Client().enqueue_typed(job_type, value, options)


async def aenqueue(payload: Any, **options: Any) -> UUID:
    """Enqueue from async code; takes what ``enqueue`` takes.

    Django has no async transactions: to enqueue together with other writes, put the
    whole ``atomic()`` block into one function and call it by ``sync_to_async``.
    """
    return await sync_to_async(enqueue, thread_sensitive=True)(payload, **options)


def enqueue_many(
    payloads: Iterable[Any],
    *,
    due: datetime | timedelta | None = None,
    queue: str | None = None,
    tags: Sequence[TagLike] = (),
    on_duplicate: Literal["raise", "return"] = "raise",
) -> list[UUID]:
    """Enqueue jobs of one or several types in a few statements; all of them, or none.

    Args:
        payloads: what ``enqueue`` takes, in the order in which they are to be due.
        due: for each of them, as for ``enqueue``.
        queue: for each of them.
        tags: for each of them.
        on_duplicate: ``"return"`` leaves jobs alone whose id is there.

    Returns:
        The ids, in the order of the payloads.

    Raises:
        EnqueueError: the first refusal; none of the jobs was stored.
    """
    options = EnqueueOptions(due, queue, tags, on_duplicate=on_duplicate)
    now = clock().now()
    jobs = [_new_job(*_typed(payload), options, now) for payload in payloads]
    if not jobs:
        return []
    for job in jobs:
        _raise_early(job)
    current = store()
    with current.dialect.atomic():
        for job, result in zip(jobs, current.enqueue_many(jobs, now), strict=True):
            _raise_refusal(job, result, options)
    return [job.job_id for job in jobs]


def enqueue_dependency(
    payload: Any,
    parents: Sequence[UUID],
    mode: DependencyMode = OnSuccess,
    **options: Any,
) -> UUID:
    """Enqueue a job that waits for other jobs to end.

    Args:
        payload: as for ``enqueue``.
        parents: the jobs to wait for; at least one.
        mode: ``OnSuccess`` or ``OnAnyTerminal``.
        options: as for ``enqueue``.
    """
    if not parents:
        raise InvalidOption("enqueue_dependency needs at least one parent")
    return enqueue(payload, after=parents, mode=mode, **options)


class _Client:
    """The client as declared jobs reach it."""

    def enqueue_typed(self, job_type: JobType, payload: Any, options: EnqueueOptions) -> UUID:
        """Enqueue one job of a type."""
        now = clock().now()
        job = _new_job(job_type, payload, options, now)
        current = store()
        _raise_refusal(job, current.enqueue(job, now), options)
        if job.parents:
            _recheck_after_commit(job.job_id)
        return job.job_id

    async def aenqueue_typed(
        self, job_type: JobType, payload: Any, options: EnqueueOptions
    ) -> UUID:
        """Do the same from async code."""
        enqueue_typed = sync_to_async(self.enqueue_typed, thread_sensitive=True)
        return await enqueue_typed(job_type, payload, options)


def bind_declared_jobs() -> None:
    """Let declared jobs reach the client; called when the app is ready."""
    port.bind(_Client())


def _recheck_after_commit(job_id: UUID) -> None:
    """Look once more after the commit: a parent may have ended in between, unseen.

    Where that is not to be had, the workers' maintenance does it.
    """
    current = store()

    def recheck() -> None:
        current.release_waiting(current.limits.max_parents_per_job, clock().now(), [job_id])

    try:
        transaction.on_commit(recheck, using=current.alias, robust=True)
    except TransactionManagementError:
        return  # autocommit is off, so there is no commit to follow


def _typed(payload: Any) -> tuple[JobType, Any]:
    if isinstance(payload, BoundPayload):
        return payload.job_type, payload.value
    if isinstance(payload, FunctionJob):
        raise DeclarationError(
            f"enqueue takes a payload: write {payload.__name__}.enqueue(...), or "
            f"enqueue({payload.__name__}.payload(...))"
        )
    job_type = job_type_of(type(payload))
    if job_type is None:
        raise DeclarationError(
            f"{type(payload).__qualname__} is no job payload: put @job('wire-name') on the class, "
            "or call .enqueue() on a function that @job stands on"
        )
    return job_type, payload


def _new_job(job_type: JobType, payload: Any, options: EnqueueOptions, now: datetime) -> NewJob:
    if options.on_duplicate not in ("raise", "return"):
        raise InvalidOption(f"on_duplicate is 'raise' or 'return', not {options.on_duplicate!r}")
    return NewJob(
        job_id=_job_id(job_type.wire_name, options),
        wire_name=job_type.wire_name,
        queue=job_type.queue if options.queue is None else options.queue,
        payload=job_type.codec.encode(payload),
        due_time=_due_time(options.due, now),
        tags=tag_set(job_type.labels, options.tags),
        parents=_parents(options.after),
        mode=_mode(options.mode),
    )


def _mode(mode: int | None) -> DependencyMode:
    try:
        return OnSuccess if mode is None else DependencyMode(mode)
    except ValueError:
        raise InvalidOption(f"mode is OnSuccess or OnAnyTerminal, not {mode!r}") from None


def _parents(after: Sequence[UUID]) -> tuple[UUID, ...]:
    parents = (after,) if isinstance(after, UUID) else tuple(after)
    for parent in parents:
        if not isinstance(parent, UUID):
            raise InvalidOption(f"a parent is the UUID that an enqueue gave, not {parent!r}")
    return parents


def _job_id(wire_name: str, options: EnqueueOptions) -> UUID:
    key = options.idempotency_key
    if key is None:
        if options.job_id is None:
            return new_job_id()
        if not isinstance(options.job_id, UUID):
            raise InvalidOption(f"job_id must be a UUID, not {options.job_id!r}")
        return options.job_id
    if options.job_id is not None:
        raise InvalidOption("give job_id or idempotency_key, not both: the key derives the id")
    return job_id_for_key(wire_name, check_name("idempotency key", key, IDEMPOTENCY_KEY_MAX))


def _due_time(due: datetime | timedelta | None, now: datetime) -> datetime:
    if due is None:
        return now
    if isinstance(due, timedelta):
        return _sum(now, due)
    if not isinstance(due, datetime):
        raise InvalidOption(f"due must be an aware datetime or a timedelta, not {due!r}")
    if due.utcoffset() is None:
        raise InvalidOption(
            f"due {due!r} is naive, so it could be any of two dozen instants; pass an aware "
            "datetime, such as django.utils.timezone.make_aware(due), or a timedelta"
        )
    # By the distance: an instant near an end of the calendar has no form in another zone.
    return _sum(now, due - now)


def _sum(now: datetime, wait: timedelta) -> datetime:
    if wait <= timedelta(0):
        return now
    try:
        return now + wait
    except OverflowError:
        raise InvalidOption(f"due in {wait!r} is past the end of the calendar") from None


def _raise_early(job: NewJob) -> None:
    limits = store().limits
    if len(job.payload) > limits.max_payload_bytes:
        raise _payload_too_large(job)


def _payload_too_large(job: NewJob) -> PayloadTooLarge:
    limit = store().limits.max_payload_bytes
    return PayloadTooLarge(
        f"payload of job {job.wire_name!r} is {len(job.payload)} bytes, over the limit "
        f"MaxPayloadBytes of {limit}; store the data and pass a reference to it",
        size=len(job.payload),
        limit=limit,
    )


def _raise_refusal(job: NewJob, result: EnqueueResult, options: EnqueueOptions) -> None:
    """Raise the error that an answer stands for; ``OK`` is none."""
    limits, name = store().limits, job.wire_name
    error: EnqueueError
    match result.status:
        case EnqueueStatus.OK:
            return
        case EnqueueStatus.DUPLICATE:
            if options.on_duplicate == "return":
                return
            key = options.idempotency_key
            by = f" (idempotency key {key!r})" if key else ""
            error = DuplicateJob(
                f"job {job.job_id} of {name!r} exists already{by}; on_duplicate='return' gives "
                "its id instead",
                job_id=job.job_id,
            )
        case EnqueueStatus.PAYLOAD_TOO_LARGE:
            error = _payload_too_large(job)
        case EnqueueStatus.WIRE_NAME_TOO_LONG:
            limit = limits.max_wire_name_length
            error = WireNameTooLong(
                f"wire name {name!r} has {len(name)} characters, over the limit "
                f"MaxWireNameLength of {limit}",
                length=len(name),
                limit=limit,
            )
        case EnqueueStatus.UNKNOWN_PARENT:
            error = UnknownParent(
                f"parent {result.parent_id} of a job of {name!r} does not exist; enqueue it "
                "first, in the same transaction or a committed one",
                parent_id=result.parent_id,
            )
        case EnqueueStatus.TOO_MANY_PARENTS:
            count, limit = len(set(job.parents)), limits.max_parents_per_job
            error = TooManyParents(
                f"a job of {name!r} has {count} parents, over the limit MaxParentsPerJob of "
                f"{limit}; put a job in between",
                count=count,
                limit=limit,
            )
    raise error
