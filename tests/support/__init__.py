"""What several tests need: child processes, waiting."""

from __future__ import annotations
