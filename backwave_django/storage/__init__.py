"""The storage contract and its implementations."""

from __future__ import annotations
