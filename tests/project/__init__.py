"""The rules of the house, as tests."""

from __future__ import annotations
