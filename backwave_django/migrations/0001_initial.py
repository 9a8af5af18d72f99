"""The tables of the engine.

Names carry the schema name of the settings, so that two installations can share a
database; see ``docs/decisions/0005-the-schema-name-is-a-prefix.md``.
"""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import backwave_django.fields
from backwave_django.conf import app_label, table_prefix
from backwave_django.upgrading import OrderedMigration

LABEL = app_label()
PREFIX = table_prefix()


class Migration(OrderedMigration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Dependency",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("open", models.BooleanField(verbose_name="open")),
            ],
            options={
                "verbose_name": "dependency",
                "verbose_name_plural": "dependencies",
                "db_table": f"{PREFIX}_dependency",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("sequence", models.BigAutoField(primary_key=True, serialize=False)),
                ("job_id", models.UUIDField(editable=False, unique=True, verbose_name="job id")),
                (
                    "wire_name",
                    backwave_django.fields.NameField(max_length=512, verbose_name="wire name"),
                ),
                ("queue", backwave_django.fields.NameField(max_length=128, verbose_name="queue")),
                (
                    "state",
                    models.PositiveSmallIntegerField(
                        choices=[
                            (1, "Scheduled"),
                            (2, "Awaiting Parent"),
                            (3, "Leased"),
                            (4, "Succeeded"),
                            (5, "Cancelled"),
                            (6, "Dead-Lettered"),
                            (7, "Quarantined"),
                        ],
                        verbose_name="state",
                    ),
                ),
                ("attempt", models.PositiveIntegerField(default=0, verbose_name="attempt")),
                (
                    "claim_number",
                    models.PositiveIntegerField(default=0, verbose_name="claim number"),
                ),
                (
                    "ordinal",
                    models.PositiveIntegerField(default=1, verbose_name="transitions so far"),
                ),
                ("due_time", backwave_django.fields.InstantField(verbose_name="due time")),
                ("enqueued_at", backwave_django.fields.InstantField(verbose_name="enqueued at")),
                (
                    "lease_owner",
                    backwave_django.fields.NameField(
                        max_length=128, null=True, verbose_name="lease owner"
                    ),
                ),
                (
                    "lease_expires_at",
                    backwave_django.fields.InstantField(null=True, verbose_name="lease expires at"),
                ),
                (
                    "cancel_cause",
                    models.TextField(null=True, verbose_name="cancellation requested"),
                ),
                (
                    "terminal_at",
                    backwave_django.fields.InstantField(null=True, verbose_name="ended at"),
                ),
                ("terminal_cause", models.TextField(null=True, verbose_name="terminal cause")),
                (
                    "mode",
                    models.PositiveSmallIntegerField(default=1, verbose_name="dependency mode"),
                ),
                ("latch", models.PositiveIntegerField(default=0, verbose_name="parents awaited")),
                (
                    "schedule_id",
                    backwave_django.fields.NameField(
                        max_length=128, null=True, verbose_name="schedule"
                    ),
                ),
                ("tick", backwave_django.fields.InstantField(null=True, verbose_name="tick")),
                ("workflow_id", models.UUIDField(null=True, verbose_name="workflow")),
                ("trace_context", models.TextField(null=True, verbose_name="trace context")),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "db_table": f"{PREFIX}_job",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="JobTag",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "key",
                    backwave_django.fields.NameField(default="", max_length=64, verbose_name="key"),
                ),
                ("value", backwave_django.fields.NameField(max_length=256, verbose_name="value")),
            ],
            options={
                "verbose_name": "tag",
                "verbose_name_plural": "tags",
                "db_table": f"{PREFIX}_jobtag",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                (
                    "name",
                    backwave_django.fields.NameField(
                        max_length=128, primary_key=True, serialize=False, verbose_name="name"
                    ),
                ),
                ("paused", models.BooleanField(default=False, verbose_name="paused")),
                (
                    "concurrency_limit",
                    models.PositiveIntegerField(null=True, verbose_name="concurrency limit"),
                ),
            ],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "db_table": f"{PREFIX}_queue",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="QueueGate",
            fields=[
                (
                    "name",
                    backwave_django.fields.NameField(
                        max_length=128, primary_key=True, serialize=False, verbose_name="name"
                    ),
                ),
            ],
            options={
                "verbose_name": "queue gate",
                "verbose_name_plural": "queue gates",
                "db_table": f"{PREFIX}_queuegate",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Transition",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("ordinal", models.PositiveIntegerField(verbose_name="ordinal")),
                ("at", backwave_django.fields.InstantField(verbose_name="at")),
                (
                    "state",
                    models.PositiveSmallIntegerField(
                        choices=[
                            (1, "Scheduled"),
                            (2, "Awaiting Parent"),
                            (3, "Leased"),
                            (4, "Succeeded"),
                            (5, "Cancelled"),
                            (6, "Dead-Lettered"),
                            (7, "Quarantined"),
                        ],
                        verbose_name="state",
                    ),
                ),
                ("attempt", models.PositiveIntegerField(verbose_name="attempt")),
                ("claim_number", models.PositiveIntegerField(verbose_name="claim number")),
                (
                    "worker_id",
                    backwave_django.fields.NameField(
                        max_length=128, null=True, verbose_name="worker"
                    ),
                ),
                ("failure_detail", models.TextField(null=True, verbose_name="failure detail")),
            ],
            options={
                "verbose_name": "transition",
                "verbose_name_plural": "transitions",
                "db_table": f"{PREFIX}_transition",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="JobContent",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="content",
                        serialize=False,
                        to=f"{LABEL}.job",
                    ),
                ),
                ("payload", models.BinaryField(verbose_name="payload")),
                ("output", models.BinaryField(null=True, verbose_name="output")),
            ],
            options={
                "verbose_name": "job content",
                "verbose_name_plural": "job contents",
                "db_table": f"{PREFIX}_jobcontent",
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state", 1)),
                fields=["queue", "due_time", "sequence"],
                name=f"{PREFIX}_ready",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state", 3)),
                fields=["queue", "sequence"],
                name=f"{PREFIX}_leased",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state", 2)), fields=["sequence"], name=f"{PREFIX}_waiting"
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__gte", 1), ("state__lte", 7)), name=f"{PREFIX}_state"
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("lease_expires_at__isnull", False),
                        ("lease_owner__isnull", False),
                        ("state", 3),
                    ),
                    models.Q(
                        models.Q(("state", 3), _negated=True),
                        ("cancel_cause__isnull", True),
                        ("lease_expires_at__isnull", True),
                        ("lease_owner__isnull", True),
                    ),
                    _connector="OR",
                ),
                name=f"{PREFIX}_lease",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("state__lt", 4),
                        ("terminal_at__isnull", True),
                        ("terminal_cause__isnull", True),
                    ),
                    models.Q(
                        ("state", 4),
                        ("terminal_at__isnull", False),
                        ("terminal_cause__isnull", True),
                    ),
                    models.Q(
                        ("state__gt", 4),
                        ("terminal_at__isnull", False),
                        ("terminal_cause__isnull", False),
                    ),
                    _connector="OR",
                ),
                name=f"{PREFIX}_terminal",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("latch__gt", 0), ("state", 2)),
                    models.Q(models.Q(("state", 2), _negated=True), ("latch", 0)),
                    _connector="OR",
                ),
                name=f"{PREFIX}_latch",
            ),
        ),
        migrations.AddField(
            model_name="dependency",
            name="child",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="parent_edges",
                to=f"{LABEL}.job",
            ),
        ),
        migrations.AddField(
            model_name="dependency",
            name="parent",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="child_edges",
                to=f"{LABEL}.job",
            ),
        ),
        migrations.AddField(
            model_name="jobtag",
            name="job",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="tag_rows",
                to=f"{LABEL}.job",
            ),
        ),
        migrations.AddField(
            model_name="transition",
            name="job",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="transitions",
                to=f"{LABEL}.job",
            ),
        ),
        migrations.AddIndex(
            model_name="dependency",
            index=models.Index(
                condition=models.Q(("open", True)), fields=["parent"], name=f"{PREFIX}_edge_open"
            ),
        ),
        migrations.AddConstraint(
            model_name="dependency",
            constraint=models.UniqueConstraint(
                fields=("child", "parent"), name=f"{PREFIX}_edge_once"
            ),
        ),
        migrations.AddIndex(
            model_name="jobtag",
            index=models.Index(fields=["key", "value", "job"], name=f"{PREFIX}_tag_find"),
        ),
        migrations.AddConstraint(
            model_name="jobtag",
            constraint=models.UniqueConstraint(
                fields=("job", "key", "value"), name=f"{PREFIX}_tag_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.UniqueConstraint(
                fields=("job", "ordinal"), name=f"{PREFIX}_transition_once"
            ),
        ),
    ]
