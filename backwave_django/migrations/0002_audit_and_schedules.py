"""What operators did, and recurring schedules."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import backwave_django.fields
from backwave_django.conf import app_label, table_prefix
from backwave_django.upgrading import OrderedMigration

LABEL = app_label()
PREFIX = table_prefix()


class Migration(OrderedMigration):
    dependencies = [(LABEL, "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="AuditRecord",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", backwave_django.fields.InstantField(verbose_name="at")),
                (
                    "actor",
                    backwave_django.fields.NameField(
                        max_length=150, null=True, verbose_name="actor"
                    ),
                ),
                ("action", models.CharField(max_length=32, verbose_name="action")),
                ("target", backwave_django.fields.NameField(max_length=128, verbose_name="target")),
                ("detail", models.CharField(default="", max_length=255, verbose_name="detail")),
            ],
            options={
                "verbose_name": "audit record",
                "verbose_name_plural": "audit records",
                "db_table": f"{PREFIX}_auditrecord",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["target", "id"], name=f"{PREFIX}_audit_find"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "schedule_id",
                    backwave_django.fields.NameField(
                        max_length=128,
                        primary_key=True,
                        serialize=False,
                        verbose_name="schedule id",
                    ),
                ),
                ("cron", models.CharField(max_length=255, verbose_name="cron expression")),
                ("time_zone", models.CharField(max_length=64, null=True, verbose_name="time zone")),
                (
                    "wire_name",
                    backwave_django.fields.NameField(max_length=512, verbose_name="wire name"),
                ),
                ("payload", models.BinaryField(verbose_name="payload")),
                ("queue", backwave_django.fields.NameField(max_length=128, verbose_name="queue")),
                ("tags", models.JSONField(default=list, verbose_name="tags")),
                ("catch_up", models.PositiveSmallIntegerField(verbose_name="catch-up policy")),
                ("no_overlap", models.BooleanField(verbose_name="no overlap")),
                ("enabled", models.BooleanField(verbose_name="enabled")),
                ("cursor", backwave_django.fields.InstantField(verbose_name="cursor")),
                ("defined_at", backwave_django.fields.InstantField(verbose_name="defined at")),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "db_table": f"{PREFIX}_schedule",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="SkippedTick",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("tick", backwave_django.fields.InstantField(verbose_name="tick")),
                ("reason", models.PositiveSmallIntegerField(verbose_name="reason")),
                ("at", backwave_django.fields.InstantField(verbose_name="at")),
                (
                    "schedule",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="skipped",
                        to=f"{LABEL}.schedule",
                    ),
                ),
            ],
            options={
                "verbose_name": "skipped tick",
                "verbose_name_plural": "skipped ticks",
                "db_table": f"{PREFIX}_skippedtick",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["schedule", "tick"], name=f"{PREFIX}_skipped_find"),
                ],
            },
        ),
    ]
