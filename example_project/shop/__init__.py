"""A small shop whose orders are charged, and acknowledged by e-mail, in the background."""

from __future__ import annotations
