"""What a worker says of itself: one function per event, one log line each.

Lines are ``event key=value``; what came from a payload, a tag or an exception is
written by ``repr``, so that it cannot forge a line. The same facts travel in ``extra``,
as ``backwave_<key>``. No payload is ever logged.

========================  ========  =====================================================
event                     level     when
========================  ========  =====================================================
worker started, stopped   INFO      a worker process begins and ends
pump stopping             INFO      a pump claims nothing more
store unavailable         WARNING   the database is away; once per outage
store back                INFO      it answers again
pump halted               CRITICAL  a fault that retrying cannot mend; the pump ends
job succeeded             DEBUG     recorded
job retrying              WARNING   a failed attempt, recorded; with ``exc_info``
job dead-lettered         ERROR     the last failed attempt, recorded; with ``exc_info``
job quarantined           ERROR     recorded
job cancelled             INFO      recorded
job handed back           INFO      recorded
job displaced             WARNING   the outcome was refused: its lease had gone
lease expired             WARNING   a lost worker's job was swept and will be retried
lease expired             ERROR     the same, at its last attempt: a dead letter
connection left dirty     WARNING   a handler left a transaction open, or the like
========================  ========  =====================================================
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ..core.commands import Announce
from ..core.outcomes import Failed, LapsedLease
from ..core.states import JobState
from ..core.text import storable_cause, storable_detail
from .described import detail_of

if TYPE_CHECKING:
    from .attempt import Ended

TRACEBACK_BYTES_MAX = 16_384
"""A longer traceback is cut in its middle before it is logged."""

logger = logging.getLogger("backwave_django.worker")

_EVENTS = {
    JobState.SUCCEEDED: ("job succeeded", logging.DEBUG),
    JobState.SCHEDULED: ("job handed back", logging.INFO),
    JobState.CANCELLED: ("job cancelled", logging.INFO),
    JobState.DEAD_LETTERED: ("job dead-lettered", logging.ERROR),
    JobState.QUARANTINED: ("job quarantined", logging.ERROR),
}


def worker_started(worker: str, groups: list[str], database: str) -> None:
    """Say that a worker process begins."""
    say(logging.INFO, "worker started", worker=worker, groups=groups, database=database)


def worker_stopped(worker: str, exit_code: int) -> None:
    """Say that a worker process ends."""
    say(logging.INFO, "worker stopped", worker=worker, exit_code=exit_code)


def pump_stopping(worker_id: str, running: int) -> None:
    """Say that a pump claims nothing more."""
    say(logging.INFO, "pump stopping", worker_id=worker_id, running=running)


def store_unavailable(worker_id: str, error: Exception) -> None:
    """Say that the database is away."""
    say(logging.WARNING, "store unavailable", worker_id=worker_id, error=str(error))


def store_back(worker_id: str) -> None:
    """Say that the database answers again."""
    say(logging.INFO, "store back", worker_id=worker_id)


def pump_halted(worker_id: str, error: BaseException) -> None:
    """Say that a pump ends for a fault that retrying cannot mend."""
    say(logging.CRITICAL, "pump halted", exc_info=error, worker_id=worker_id, error=str(error))


def connection_left_dirty(alias: str, what: str, wire_name: str) -> None:
    """Say that a handler left its connection in a state that no other job may meet."""
    say(logging.WARNING, "connection left dirty", wire_name=wire_name, alias=alias, what=what)


def outcome_announced(announce: Announce, ended: Ended | None) -> None:
    """Say what became of an attempt, once it is recorded."""
    lease = announce.job.lease
    name, level = _event_of(announce)
    if not logger.isEnabledFor(level):
        return
    facts: dict[str, Any] = {
        "wire_name": announce.job.wire_name,
        "job_id": str(lease.job_id),
        "queue": announce.job.queue,
        "attempt": lease.attempt,
    }
    if ended is not None:
        facts["duration"] = round(ended.duration, 6)
    if isinstance(announce.result, Failed):
        facts["cause"] = storable_cause(announce.result.cause)
        if announce.state is JobState.SCHEDULED and announce.result.retry_at is not None:
            facts["retry_at"] = announce.result.retry_at.isoformat()
    elif announce.state is JobState.QUARANTINED:
        facts["cause"] = getattr(announce.result, "cause", "")
    raised = ended.raised if ended is not None and level >= logging.WARNING else None
    say(level, name, exc_info=raised, **facts)


def lease_expired(lapsed: LapsedLease, failed: Failed) -> None:
    """Say that a lost worker's job was swept."""
    facts: dict[str, Any] = {
        "wire_name": lapsed.wire_name,
        "job_id": str(lapsed.lease.job_id),
        "queue": lapsed.queue,
        "attempt": lapsed.lease.attempt,
        "worker_id": lapsed.lease.worker_id,
    }
    if failed.retry_at is None:
        say(logging.ERROR, "lease expired", **facts, cause=failed.cause)
    else:
        say(logging.WARNING, "lease expired", **facts, retry_at=failed.retry_at.isoformat())


def _event_of(announce: Announce) -> tuple[str, int]:
    if announce.state is None:
        return "job displaced", logging.WARNING
    if announce.state is JobState.SCHEDULED and isinstance(announce.result, Failed):
        return "job retrying", logging.WARNING
    return _EVENTS[announce.state]


def say(level: int, event: str, *, exc_info: BaseException | None = None, **facts: Any) -> None:
    """Write one line: the event, then its facts."""
    if not logger.isEnabledFor(level):
        return
    text = " ".join(f"{key}={value!r}" for key, value in facts.items())
    raised = None if exc_info is None else (type(exc_info), exc_info, exc_info.__traceback__)
    # Names like ``name`` are taken by the record itself, hence the prefix.
    extra = {"event": event, **{f"backwave_{key}": value for key, value in facts.items()}}
    record = logger.makeRecord(
        logger.name, level, __file__, 0, "%s %s", (event, text), raised, "say", extra
    )
    if exc_info is not None:
        # An error's text is hostile: ten megabytes, or what no stream can encode.
        record.exc_text = storable_detail(detail_of(exc_info), TRACEBACK_BYTES_MAX)
    logger.handle(record)
