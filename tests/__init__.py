"""The test suite; its layout mirrors the package."""

from __future__ import annotations
