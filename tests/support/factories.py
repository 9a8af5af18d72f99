"""Jobs in any state, as rows, with all that the state entails."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import factory

from backwave_django.core.instants import EPOCH
from backwave_django.core.states import JobState
from backwave_django.models import Job
from backwave_django.runtime.entropy import new_job_id

ENDED_AT = EPOCH + timedelta(days=20_001)
DUE_TIME = EPOCH + timedelta(days=20_000)


class JobFactory(factory.django.DjangoModelFactory[Job]):
    """A job of ``nothing``; ``state`` decides what else is set (rule 1.3)."""

    class Meta:
        model = Job

    job_id = factory.LazyFunction(new_job_id)
    wire_name = "nothing"
    queue = "default"
    state = JobState.SCHEDULED
    due_time = DUE_TIME
    enqueued_at = DUE_TIME
    attempt = factory.LazyAttribute(lambda job: int(_was_claimed(job)))
    claim_number = factory.LazyAttribute(lambda job: int(_was_claimed(job)))
    latch = factory.LazyAttribute(lambda job: int(job.state == JobState.AWAITING_PARENT))
    lease_owner = factory.LazyAttribute(lambda job: "worker" if _is_leased(job) else None)
    lease_expires_at = factory.LazyAttribute(lambda job: ENDED_AT if _is_leased(job) else None)
    terminal_at = factory.LazyAttribute(lambda job: ENDED_AT if _has_ended(job) else None)
    terminal_cause = factory.LazyAttribute(
        lambda job: "made so" if _has_ended(job) and job.state != JobState.SUCCEEDED else None
    )


def _is_leased(job: Any) -> bool:
    return bool(job.state == JobState.LEASED)


def _has_ended(job: Any) -> bool:
    return JobState(job.state).is_terminal


def _was_claimed(job: Any) -> bool:
    return _is_leased(job) or (_has_ended(job) and job.state != JobState.CANCELLED)
