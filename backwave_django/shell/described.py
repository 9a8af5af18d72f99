"""Errors as text, whatever they do when they are asked for it."""

from __future__ import annotations

import traceback
from types import TracebackType

_CALLERS = (f"{__package__}.attempt", "backwave_django.handlers.signature",
            "backwave_django.handlers.declare")  # fmt: skip
"""The modules between an attempt and the handler's own code."""


def described(error: BaseException) -> str:
    """Give ``Type: message``, whatever the error's ``str`` does."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 — user code, run to describe a failure
        return f"{name}: <its str() failed>"
    return f"{name}: {text}" if text else name


def detail_of(error: BaseException) -> str:
    """Give the traceback as text, whatever the error does when it is formatted.

    It begins with the handler: how this package came to call it helps nobody.
    """
    try:
        raised_at = error.__traceback__
        while raised_at is not None and _is_ours(raised_at):
            raised_at = raised_at.tb_next
        trace = raised_at or error.__traceback__
        return "".join(traceback.format_exception(type(error), error, trace))
    except BaseException:  # noqa: BLE001 — user code, run to describe a failure
        return described(error)


def _is_ours(trace: TracebackType) -> bool:
    return trace.tb_frame.f_globals.get("__name__") in _CALLERS
