"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig


class ShopConfig(AppConfig):
    """The shop; its ``jobs.py`` is found without being named anywhere."""

    name = "shop"
