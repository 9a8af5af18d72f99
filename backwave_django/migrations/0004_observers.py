"""Observers of the transition log."""

from __future__ import annotations

from django.db import migrations, models

import backwave_django.fields
from backwave_django.conf import app_label, table_prefix
from backwave_django.core.states import JobState
from backwave_django.upgrading import OrderedMigration

PREFIX = table_prefix()


class Migration(OrderedMigration):
    dependencies = [(app_label(), "0003_indexes_of_what_ended")]

    operations = [
        migrations.CreateModel(
            name="Observer",
            fields=[
                (
                    "name",
                    backwave_django.fields.NameField(
                        max_length=128, primary_key=True, serialize=False, verbose_name="name"
                    ),
                ),
                ("states", models.JSONField(verbose_name="states")),
                ("wire_names", models.JSONField(verbose_name="wire names")),
                ("queues", models.JSONField(verbose_name="queues")),
                ("cursor", models.BigIntegerField(verbose_name="cursor")),
                (
                    "mark_position",
                    models.BigIntegerField(
                        null=True, verbose_name="end of the log when last looked at"
                    ),
                ),
                (
                    "mark_id",
                    models.BigIntegerField(null=True, verbose_name="transaction that looked"),
                ),
                (
                    "claim_number",
                    models.PositiveBigIntegerField(default=0, verbose_name="claim number"),
                ),
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
                    "tries",
                    models.PositiveIntegerField(
                        default=0, verbose_name="failed tries of the next delivery"
                    ),
                ),
                (
                    "not_before",
                    backwave_django.fields.InstantField(
                        null=True, verbose_name="next try not before"
                    ),
                ),
                (
                    "lost",
                    models.PositiveBigIntegerField(default=0, verbose_name="lost transitions"),
                ),
            ],
            options={
                "verbose_name": "observer",
                "verbose_name_plural": "observers",
                "db_table": f"{PREFIX}_observer",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="DeadDelivery",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "observer",
                    backwave_django.fields.NameField(max_length=128, verbose_name="observer"),
                ),
                ("position", models.BigIntegerField(verbose_name="position in the log")),
                ("job_id", models.UUIDField(verbose_name="job id")),
                (
                    "wire_name",
                    backwave_django.fields.NameField(max_length=512, verbose_name="wire name"),
                ),
                ("queue", backwave_django.fields.NameField(max_length=128, verbose_name="queue")),
                ("ordinal", models.PositiveIntegerField(verbose_name="ordinal")),
                ("at", backwave_django.fields.InstantField(verbose_name="at")),
                (
                    "state",
                    models.PositiveSmallIntegerField(
                        choices=[(state.value, state.label) for state in JobState],
                        verbose_name="state",
                    ),
                ),
                ("attempt", models.PositiveIntegerField(verbose_name="attempt")),
                ("claim_number", models.PositiveIntegerField(verbose_name="claim number")),
                ("cause", models.TextField(verbose_name="cause")),
                ("failed_at", backwave_django.fields.InstantField(verbose_name="failed at")),
            ],
            options={
                "verbose_name": "dead delivery",
                "verbose_name_plural": "dead deliveries",
                "db_table": f"{PREFIX}_deaddelivery",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["observer", "id"], name=f"{PREFIX}_dead_find"),
                ],
            },
        ),
    ]
