"""What the handlers of the test suite leave behind."""

from __future__ import annotations

from django.db import models


class Effect(models.Model):
    """One trace of one run of a handler; written twice where the handler ran twice."""

    key = models.CharField(max_length=200, db_index=True)
    note = models.TextField(blank=True, default="")
    at = models.BigIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.key}: {self.note}"
