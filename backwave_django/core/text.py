"""Text that comes from outside: names are checked, free text is made storable.

A *name* (queue, wire name, tag, actor, worker id) is compared by code point and is
refused when a database or a reader could mistake it. *Free text* (causes, failure
details) is never refused: what a database cannot hold is written as a visible escape,
and what is too long is cut on a character boundary.
"""

from __future__ import annotations

import re

from .errors import InvalidOption

QUEUE_NAME_MAX = 128
TAG_KEY_MAX = 64
TAG_VALUE_MAX = 256
ACTOR_MAX = 150
WORKER_ID_MAX = 128
SCHEDULE_ID_MAX = 128
CRON_MAX = 255
OBSERVER_NAME_MAX = 128
TIME_ZONE_MAX = 64
TERMINAL_CAUSE_MAX = 1_024
"""Lengths in code points."""

_ASCII_FOLD = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def check_name(kind: str, value: object, length_max: int | None) -> str:
    """Give ``value`` back if it can be a name.

    Args:
        kind: what the name is for, for the message: ``queue``, ``tag key``.
        value: the name; any object, since it comes from a caller.
        length_max: most code points allowed; ``None`` leaves the length to the caller.

    Raises:
        InvalidOption: not a string, empty, too long, white space at either end, or a
            NUL or lone surrogate in it.
    """
    if not isinstance(value, str):
        raise InvalidOption(f"{kind} must be a str, not {type(value).__name__}", value=value)
    if not value:
        raise InvalidOption(f"{kind} must not be empty", value=value)
    if length_max is not None and len(value) > length_max:
        raise InvalidOption(
            f"{kind} has {len(value)} characters, at most {length_max} are allowed: "
            f"{clipped(value, 40)!r}",
            value=value,
            limit=length_max,
        )
    if value[0].isspace() or value[-1].isspace():
        raise InvalidOption(
            f"{kind} {clipped(value, 40)!r} has white space at an end; strip it", value=value
        )
    if _UNSTORABLE.search(value):
        raise InvalidOption(
            f"{kind} {clipped(value, 40)!r} has a NUL or a lone surrogate in it; "
            "no database stores these",
            value=value,
        )
    return value


def visible(text: str) -> str:
    r"""Write NUL and lone surrogates as escapes (``\x00``, ``\ud800``); keep all else."""
    if not _UNSTORABLE.search(text):
        return text
    return _UNSTORABLE.sub(
        lambda match: "\\x00" if match[0] == "\x00" else f"\\u{ord(match[0]):04x}", text
    )


def ascii_folded(text: str) -> str:
    """Write A to Z small, and leave every other character as it is."""
    return text.translate(_ASCII_FOLD)


def clipped(text: str, length_max: int) -> str:
    """Cut ``text`` to ``length_max`` code points, the last one an ellipsis if it was cut."""
    return text if len(text) <= length_max else text[: length_max - 1] + "…"


def storable_cause(text: str) -> str:
    """Make a terminal cause storable: visible escapes, at most ``TERMINAL_CAUSE_MAX``."""
    return clipped(visible(text), TERMINAL_CAUSE_MAX)


def storable_detail(text: str, bytes_max: int) -> str:
    """Make a failure detail storable: visible escapes, at most ``bytes_max`` in UTF-8.

    The end of a traceback says most, so the middle is what goes: the first quarter and
    the last three quarters of the room are kept, never splitting a code point.
    """
    # Cut before escaping, so that ten megabytes are not scanned to keep eight kilobytes.
    if len(text) > 2 * bytes_max:
        text = text[:bytes_max] + text[-bytes_max:]
    text = visible(text)
    raw = text.encode()
    if len(raw) <= bytes_max:
        return text
    mark = "\n[... cut ...]\n"
    room = bytes_max - len(mark)
    if room < 8:
        return raw[:bytes_max].decode(errors="ignore")
    head, tail = room // 4, room - room // 4
    return raw[:head].decode(errors="ignore") + mark + raw[-tail:].decode(errors="ignore")
