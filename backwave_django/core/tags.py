"""Tags: labels and keyed tags, and the ordered set of them that a job carries.

The Core never reads a tag. A label and a keyed tag are two kinds, told apart by
structure: a colon inside a label is data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .errors import InvalidOption
from .text import TAG_KEY_MAX, TAG_VALUE_MAX, check_name


class Tag(NamedTuple):
    """One tag; ``key`` is ``None`` for a label."""

    key: str | None
    value: str


TagLike = str | tuple[str, str] | Tag
"""What a caller may write for a tag: ``"vip"`` or ``("tenant", "acme")``."""


def tag_from(value: TagLike) -> Tag:
    """Make a ``Tag`` of what a caller wrote.

    Raises:
        InvalidOption: neither a label nor a pair, or a text that cannot be a name.
    """
    if isinstance(value, str):
        return Tag(None, check_name("label", value, TAG_VALUE_MAX))
    if isinstance(value, tuple) and len(value) == 2:
        key, text = value
        if key is None:
            return Tag(None, check_name("label", text, TAG_VALUE_MAX))
        return Tag(
            check_name("tag key", key, TAG_KEY_MAX), check_name("tag value", text, TAG_VALUE_MAX)
        )
    raise InvalidOption(
        f"a tag is a label such as 'vip' or a pair such as ('tenant', 'acme'), not {value!r}",
        value=value,
    )


def tag_set(*groups: Iterable[TagLike]) -> tuple[Tag, ...]:
    """Join groups of tags into one set, in the order in which each was first seen."""
    seen: dict[Tag, None] = {}
    for group in groups:
        if isinstance(group, str | Tag | Mapping):
            kind = "text" if isinstance(group, str) else type(group).__name__
            raise InvalidOption(
                f"tags must be a list of tags, not the {kind} {group!r}", value=group
            )
        for value in group:
            seen[tag_from(value)] = None
    return tuple(seen)
