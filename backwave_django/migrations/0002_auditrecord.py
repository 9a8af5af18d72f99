"""What operators did."""

from __future__ import annotations

from django.db import migrations, models

import backwave_django.fields
from backwave_django.conf import app_label, table_prefix

PREFIX = table_prefix()


class Migration(migrations.Migration):
    dependencies = [(app_label(), "0001_initial")]

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
    ]
