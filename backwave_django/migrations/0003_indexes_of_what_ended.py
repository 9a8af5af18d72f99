"""Indexes for purge, for reads of what has ended, and for the graph."""

from __future__ import annotations

from django.db import models

from backwave_django.conf import app_label, table_prefix
from backwave_django.upgrading import AddIndexQuietly, OrderedMigration

PREFIX = table_prefix()


class Migration(OrderedMigration):
    atomic = False  # for AddIndexQuietly

    dependencies = [(app_label(), "0002_audit_and_schedules")]

    operations = [
        AddIndexQuietly(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state__gte", 4)),
                fields=["queue", "state", "terminal_at"],
                name=f"{PREFIX}_ended",
            ),
        ),
        AddIndexQuietly(
            model_name="job",
            index=models.Index(
                condition=models.Q(("workflow_id__isnull", False)),
                fields=["workflow_id", "sequence"],
                name=f"{PREFIX}_workflow",
            ),
        ),
        AddIndexQuietly(
            model_name="job",
            index=models.Index(
                condition=models.Q(("schedule_id__isnull", False)),
                fields=["schedule_id", "state", "sequence"],
                name=f"{PREFIX}_minted",
            ),
        ),
        AddIndexQuietly(
            model_name="dependency",
            index=models.Index(fields=["parent", "child"], name=f"{PREFIX}_edge_down"),
        ),
    ]
