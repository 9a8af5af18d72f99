"""The storage contract over Django models."""

from __future__ import annotations
