"""The table of effects."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Effect",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("key", models.CharField(db_index=True, max_length=200)),
                ("note", models.TextField(blank=True, default="")),
                ("at", models.BigIntegerField(blank=True, null=True)),
            ],
        ),
    ]
