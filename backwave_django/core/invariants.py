"""Checks that stay on in production.

``assert`` vanishes under ``python -O``; these do not.
"""

from __future__ import annotations

from .errors import InvariantViolated


def require(condition: bool, message: str, **facts: object) -> None:
    """Raise ``InvariantViolated`` with ``facts`` in its text unless ``condition`` holds."""
    if not condition:
        listed = ", ".join(f"{name}={value!r}" for name, value in sorted(facts.items()))
        raise InvariantViolated(f"invariant violated: {message} ({listed})", **facts)
