"""The app of the test suite."""

from __future__ import annotations

from django.apps import AppConfig


class TestAppConfig(AppConfig):
    """Holds the jobs that tests enqueue and the effects that these leave behind."""

    name = "tests.testapp"
    label = "testapp"
    default_auto_field = "django.db.models.BigAutoField"
