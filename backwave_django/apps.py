"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _

from .conf import app_label


class BackwaveConfig(AppConfig):
    """Registers checks and discovers the ``jobs.py`` of every installed app."""

    name = "backwave_django"
    label = app_label()
    verbose_name = _("BackWave")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Wire the app up; no query, no thread, no clock."""
        from . import checks  # noqa: F401 — importing registers them
        from .client import bind_declared_jobs

        bind_declared_jobs()
        autodiscover_modules("jobs")
