"""Time and chance: the only modules that read a clock or make an id."""

from __future__ import annotations
