"""Plugins of pytest that must be loaded before Django's settings."""

from __future__ import annotations
