"""What helps to test: the storage contract as a test suite for any store."""

from __future__ import annotations
