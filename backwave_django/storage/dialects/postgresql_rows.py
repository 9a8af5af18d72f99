"""What goes to PostgreSQL as JSON, and what comes back as rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import msgspec

from ...core.events import Renewal, Reported, Verdict
from ...core.instants import from_micros, to_micros
from ...core.outcomes import ClaimedJob, Lease
from ...core.states import JobState
from ..orm.rows import Settling, tag_from_row


class Asked(msgspec.Struct, omit_defaults=True, gc=False):
    """A lease, by its place in what was asked; with an outcome, what that writes.

    What has its default is left out: it is most of what would be sent.
    """

    ord: int
    job_id: UUID
    worker_id: str
    attempt: int
    claim_number: int
    state: int | None = None
    due_time: int | None = None
    cause: str | None = None
    detail: str | None = None
    gives_back: int = 0
    yields: bool = False


def leases_json(leases: Iterable[tuple[int, Lease]]) -> str:
    """Write leases with their places."""
    return _json(Asked(place, *lease) for place, lease in leases)


def outcomes_json(batch: Iterable[Settling], *, wants_detail: bool) -> str:
    """Write what outcomes mean, in their order."""
    return _json(
        _asked_outcome(place, item, wants_detail=wants_detail)
        for place, item in enumerate(batch, start=1)
    )


def _asked_outcome(place: int, item: Settling, *, wants_detail: bool) -> Asked:
    settlement = item.settlement
    due_time = settlement.due_time
    return Asked(
        place,
        *item.lease,
        state=settlement.state.value,
        due_time=None if due_time is None else to_micros(due_time),
        cause=settlement.cause,
        detail=settlement.detail if wants_detail else None,
        gives_back=int(settlement.gives_attempt_back),
        yields=settlement.yields_to_cancel,
    )


def _json(asked: Iterable[Asked]) -> str:
    return msgspec.json.encode(list(asked)).decode()


RENEWALS = {
    0: Renewal.LOST,
    1: Renewal.BUSY,
    2: Renewal.RENEWED,
    3: Renewal.CANCEL_REQUESTED,
}

APPLIED = {state.value: Reported(Verdict.APPLIED, state) for state in JobState}


def claimed_job(row: tuple[Any, ...], worker_id: str) -> ClaimedJob:
    """Read a row of a claim, from its job id on."""
    job_id, wire_name, queue, attempt, claim, _, payload, tags, schedule, tick, trace = row
    return ClaimedJob(
        Lease(job_id, worker_id, attempt, claim),
        wire_name,
        queue,
        bytes(payload),
        tuple(map(tag_from_row, msgspec.json.decode(tags))) if tags else (),
        schedule,
        None if tick is None else from_micros(tick),
        trace,
    )
