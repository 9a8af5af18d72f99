"""How long things are kept."""

from __future__ import annotations

from datetime import timedelta

UNDELIVERED_KEPT = timedelta(days=7)
"""How long a transition is kept for an observer that has not had it (rule 9.5)."""
