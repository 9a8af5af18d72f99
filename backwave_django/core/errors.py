"""The errors of the Core, and the root of every error of this package.

Two questions decide the class of an error: who must act, and can the same call
succeed later. Each class keeps its facts as data in ``facts``; the text is made from
them.
"""

from __future__ import annotations


class BackwaveError(Exception):
    """Root of every error that this package raises on purpose."""

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.facts = facts


class InvalidOption(BackwaveError, ValueError):
    """A value breaks a documented rule; the message names it and the rule."""


class IllegalTransition(BackwaveError):
    """A move that the table of legal moves does not have; the state is unchanged."""


class InvariantViolated(BackwaveError):
    """A fault of this package, never of its user: the pump that meets it stops."""
