"""The tables: fields, indexes, constraints, permissions; no behaviour.

The job table is hot, so it stays narrow: payload and output lie in ``JobContent``, and
its indexes for claiming and sweeping are partial, so that finished jobs cost a claim
nothing. The rows that hang on a job (content, tags, transitions, dependencies) are
written with it and refer to it without a database constraint: checking one would take a
lock on the job row for each of them.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from .conf import table_prefix
from .core.limits import WIRE_NAME_LENGTH_MAX
from .core.states import JobState
from .core.text import (
    ACTOR_MAX,
    CRON_MAX,
    OBSERVER_NAME_MAX,
    QUEUE_NAME_MAX,
    SCHEDULE_ID_MAX,
    TAG_KEY_MAX,
    TAG_VALUE_MAX,
    TIME_ZONE_MAX,
    WORKER_ID_MAX,
)
from .fields import InstantField, NameField

PREFIX = table_prefix()

STATE_CHOICES = [(state.value, pgettext_lazy("job state", state.label)) for state in JobState]


class Job(models.Model):
    """One job: what is due, who holds it, and how it ended."""

    sequence = models.BigAutoField(primary_key=True)
    job_id = models.UUIDField(_("job id"), unique=True, editable=False)
    wire_name = NameField(_("wire name"), max_length=WIRE_NAME_LENGTH_MAX)
    queue = NameField(_("queue"), max_length=QUEUE_NAME_MAX)
    state = models.PositiveSmallIntegerField(_("state"), choices=STATE_CHOICES)
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    claim_number = models.PositiveIntegerField(_("claim number"), default=0)
    ordinal = models.PositiveIntegerField(_("transitions so far"), default=1)
    due_time = InstantField(_("due time"))
    enqueued_at = InstantField(_("enqueued at"))
    lease_owner = NameField(_("lease owner"), max_length=WORKER_ID_MAX, null=True)
    lease_expires_at = InstantField(_("lease expires at"), null=True)
    cancel_cause = models.TextField(_("cancellation requested"), null=True)
    terminal_at = InstantField(_("ended at"), null=True)
    terminal_cause = models.TextField(_("terminal cause"), null=True)
    mode = models.PositiveSmallIntegerField(_("dependency mode"), default=1)
    latch = models.PositiveIntegerField(_("parents awaited"), default=0)
    schedule_id = NameField(_("schedule"), max_length=SCHEDULE_ID_MAX, null=True)
    tick = InstantField(_("tick"), null=True)
    workflow_id = models.UUIDField(_("workflow"), null=True)
    trace_context = models.TextField(_("trace context"), null=True)

    class Meta:
        db_table = f"{PREFIX}_job"
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        default_permissions = ("view",)
        indexes = [
            models.Index(
                fields=["queue", "due_time", "sequence"],
                condition=Q(state=JobState.SCHEDULED.value),
                name=f"{PREFIX}_ready",
            ),
            # Without the lease's end: a heartbeat then changes no indexed column, and
            # PostgreSQL can update the row in place (heap-only tuples).
            models.Index(
                fields=["queue", "sequence"],
                condition=Q(state=JobState.LEASED.value),
                name=f"{PREFIX}_leased",
            ),
            models.Index(
                fields=["sequence"],
                condition=Q(state=JobState.AWAITING_PARENT.value),
                name=f"{PREFIX}_waiting",
            ),
            # For purge, and for counts and lists of what has ended.
            models.Index(
                fields=["queue", "state", "terminal_at"],
                condition=Q(state__gte=JobState.SUCCEEDED.value),
                name=f"{PREFIX}_ended",
            ),
            models.Index(
                fields=["workflow_id", "sequence"],
                condition=Q(workflow_id__isnull=False),
                name=f"{PREFIX}_workflow",
            ),
            models.Index(
                fields=["schedule_id", "state", "sequence"],
                condition=Q(schedule_id__isnull=False),
                name=f"{PREFIX}_minted",
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__gte=1, state__lte=7), name=f"{PREFIX}_state"),
            models.CheckConstraint(
                condition=(
                    Q(state=3, lease_owner__isnull=False, lease_expires_at__isnull=False)
                    | Q(
                        ~Q(state=3),
                        lease_owner__isnull=True,
                        lease_expires_at__isnull=True,
                        cancel_cause__isnull=True,
                    )
                ),
                name=f"{PREFIX}_lease",
            ),
            models.CheckConstraint(
                condition=(
                    Q(state__lt=4, terminal_at__isnull=True, terminal_cause__isnull=True)
                    | Q(state=4, terminal_at__isnull=False, terminal_cause__isnull=True)
                    | Q(state__gt=4, terminal_at__isnull=False, terminal_cause__isnull=False)
                ),
                name=f"{PREFIX}_terminal",
            ),
            models.CheckConstraint(
                condition=Q(state=2, latch__gt=0) | Q(~Q(state=2), latch=0),
                name=f"{PREFIX}_latch",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.wire_name} {self.job_id}"


class JobContent(models.Model):
    """The opaque bytes of a job: what it was given and what it left."""

    job = models.OneToOneField(
        Job, models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="content"
    )
    payload = models.BinaryField(_("payload"))
    output = models.BinaryField(_("output"), null=True)

    class Meta:
        db_table = f"{PREFIX}_jobcontent"
        verbose_name = _("job content")
        verbose_name_plural = _("job contents")
        default_permissions = ()


class JobTag(models.Model):
    """One tag of a job; ids grow in first-seen order. A label has an empty key."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(
        Job, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="tag_rows"
    )
    key = NameField(_("key"), max_length=TAG_KEY_MAX, default="")
    value = NameField(_("value"), max_length=TAG_VALUE_MAX)

    class Meta:
        db_table = f"{PREFIX}_jobtag"
        verbose_name = _("tag")
        verbose_name_plural = _("tags")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["job", "key", "value"], name=f"{PREFIX}_tag_once")
        ]
        indexes = [models.Index(fields=["key", "value", "job"], name=f"{PREFIX}_tag_find")]


class Transition(models.Model):
    """One state change of a job; the rows of a job form its transition log."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(
        Job, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="transitions"
    )
    ordinal = models.PositiveIntegerField(_("ordinal"))
    at = InstantField(_("at"))
    state = models.PositiveSmallIntegerField(_("state"), choices=STATE_CHOICES)
    attempt = models.PositiveIntegerField(_("attempt"))
    claim_number = models.PositiveIntegerField(_("claim number"))
    worker_id = NameField(_("worker"), max_length=WORKER_ID_MAX, null=True)
    failure_detail = models.TextField(_("failure detail"), null=True)

    class Meta:
        db_table = f"{PREFIX}_transition"
        verbose_name = _("transition")
        verbose_name_plural = _("transitions")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["job", "ordinal"], name=f"{PREFIX}_transition_once")
        ]


class Dependency(models.Model):
    """An edge from a job to a parent; ``open`` while the parent still gates it."""

    id = models.BigAutoField(primary_key=True)
    parent = models.ForeignKey(
        Job, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="child_edges"
    )
    child = models.ForeignKey(
        Job, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="parent_edges"
    )
    open = models.BooleanField(_("open"))

    class Meta:
        db_table = f"{PREFIX}_dependency"
        verbose_name = _("dependency")
        verbose_name_plural = _("dependencies")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["child", "parent"], name=f"{PREFIX}_edge_once")
        ]
        indexes = [
            models.Index(fields=["parent"], condition=Q(open=True), name=f"{PREFIX}_edge_open"),
            models.Index(fields=["parent", "child"], name=f"{PREFIX}_edge_down"),
        ]


class Queue(models.Model):
    """What operators have set for a queue; a queue without a row is as it comes."""

    name = NameField(_("name"), max_length=QUEUE_NAME_MAX, primary_key=True)
    paused = models.BooleanField(_("paused"), default=False)
    concurrency_limit = models.PositiveIntegerField(_("concurrency limit"), null=True)

    class Meta:
        db_table = f"{PREFIX}_queue"
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        default_permissions = ("view",)


class QueueGate(models.Model):
    """The row by which claims on a limited queue take turns.

    It stands apart from ``Queue``, so that an operator's open transaction, which locks
    the row that it changes, keeps no claim waiting (rule 0.7).
    """

    name = NameField(_("name"), max_length=QUEUE_NAME_MAX, primary_key=True)

    class Meta:
        db_table = f"{PREFIX}_queuegate"
        verbose_name = _("queue gate")
        verbose_name_plural = _("queue gates")
        default_permissions = ()


class Schedule(models.Model):
    """A recurring schedule: what it mints, when, and how far its ticks are dealt with."""

    schedule_id = NameField(_("schedule id"), max_length=SCHEDULE_ID_MAX, primary_key=True)
    cron = models.CharField(_("cron expression"), max_length=CRON_MAX)
    time_zone = models.CharField(_("time zone"), max_length=TIME_ZONE_MAX, null=True)
    wire_name = NameField(_("wire name"), max_length=WIRE_NAME_LENGTH_MAX)
    payload = models.BinaryField(_("payload"))
    queue = NameField(_("queue"), max_length=QUEUE_NAME_MAX)
    tags = models.JSONField(_("tags"), default=list)
    catch_up = models.PositiveSmallIntegerField(_("catch-up policy"))
    no_overlap = models.BooleanField(_("no overlap"))
    enabled = models.BooleanField(_("enabled"))
    cursor = InstantField(_("cursor"))
    defined_at = InstantField(_("defined at"))

    class Meta:
        db_table = f"{PREFIX}_schedule"
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.schedule_id)


class SkippedTick(models.Model):
    """A tick that minted no job."""

    id = models.BigAutoField(primary_key=True)
    schedule = models.ForeignKey(
        Schedule, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="skipped"
    )
    tick = InstantField(_("tick"))
    reason = models.PositiveSmallIntegerField(_("reason"))
    at = InstantField(_("at"))

    class Meta:
        db_table = f"{PREFIX}_skippedtick"
        verbose_name = _("skipped tick")
        verbose_name_plural = _("skipped ticks")
        default_permissions = ()
        indexes = [models.Index(fields=["schedule", "tick"], name=f"{PREFIX}_skipped_find")]


class AuditRecord(models.Model):
    """One thing that an operator did."""

    id = models.BigAutoField(primary_key=True)
    at = InstantField(_("at"))
    actor = NameField(_("actor"), max_length=ACTOR_MAX, null=True)
    action = models.CharField(_("action"), max_length=32)
    target = NameField(_("target"), max_length=QUEUE_NAME_MAX)
    detail = models.CharField(_("detail"), max_length=255, default="")

    class Meta:
        db_table = f"{PREFIX}_auditrecord"
        verbose_name = _("audit record")
        verbose_name_plural = _("audit records")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["target", "id"], name=f"{PREFIX}_audit_find")]


class Observer(models.Model):
    """A cursor over the transition log, and who is about to move it."""

    name = NameField(_("name"), max_length=OBSERVER_NAME_MAX, primary_key=True)
    states = models.JSONField(_("states"))
    wire_names = models.JSONField(_("wire names"))
    queues = models.JSONField(_("queues"))
    cursor = models.BigIntegerField(_("cursor"))
    mark_position = models.BigIntegerField(_("end of the log when last looked at"), null=True)
    mark_id = models.BigIntegerField(_("transaction that looked"), null=True)
    claim_number = models.PositiveBigIntegerField(_("claim number"), default=0)
    lease_owner = NameField(_("lease owner"), max_length=WORKER_ID_MAX, null=True)
    lease_expires_at = InstantField(_("lease expires at"), null=True)
    tries = models.PositiveIntegerField(_("failed tries of the next delivery"), default=0)
    not_before = InstantField(_("next try not before"), null=True)
    lost = models.PositiveBigIntegerField(_("lost transitions"), default=0)

    class Meta:
        db_table = f"{PREFIX}_observer"
        verbose_name = _("observer")
        verbose_name_plural = _("observers")
        default_permissions = ("view",)


class DeadDelivery(models.Model):
    """A transition whose delivery to an observer was given up."""

    id = models.BigAutoField(primary_key=True)
    observer = NameField(_("observer"), max_length=OBSERVER_NAME_MAX)
    position = models.BigIntegerField(_("position in the log"))
    job_id = models.UUIDField(_("job id"))
    wire_name = NameField(_("wire name"), max_length=WIRE_NAME_LENGTH_MAX)
    queue = NameField(_("queue"), max_length=QUEUE_NAME_MAX)
    ordinal = models.PositiveIntegerField(_("ordinal"))
    at = InstantField(_("at"))
    state = models.PositiveSmallIntegerField(_("state"), choices=STATE_CHOICES)
    attempt = models.PositiveIntegerField(_("attempt"))
    claim_number = models.PositiveIntegerField(_("claim number"))
    cause = models.TextField(_("cause"))
    failed_at = InstantField(_("failed at"))

    class Meta:
        db_table = f"{PREFIX}_deaddelivery"
        verbose_name = _("dead delivery")
        verbose_name_plural = _("dead deliveries")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["observer", "id"], name=f"{PREFIX}_dead_find")]
