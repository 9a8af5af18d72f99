"""What goes wrong between a caller's values and the bytes of a payload or output."""

from __future__ import annotations

from ..core.errors import BackwaveError


class InvalidPayload(BackwaveError, ValueError):
    """A value cannot travel in a payload or output; the message says where and why."""


class OutputTooLarge(BackwaveError, ValueError):
    """An output is over the limit ``MaxOutputBytes``; the message gives both sizes."""


class UnroutableJob(BackwaveError):
    """No handler knows the wire name, or the payload does not decode: quarantined."""


class DeclarationError(BackwaveError, TypeError):
    """A ``@job`` or ``@handles`` that cannot work; the message shows the right form."""
