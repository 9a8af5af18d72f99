"""The settings and URLs of the example shop."""

from __future__ import annotations
