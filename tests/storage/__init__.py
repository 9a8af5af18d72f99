"""The storage contract on every store, and what only a database can be asked."""

from __future__ import annotations
