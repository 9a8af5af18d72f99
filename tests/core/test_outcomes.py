"""What an attempt came to, and the tags that it adds."""

from __future__ import annotations

import pytest

from backwave_django.core.outcomes import (
    Cancelled,
    Failed,
    Released,
    Result,
    Succeeded,
    Unroutable,
    tags_of,
)
from backwave_django.core.tags import Tag

VIP = (Tag(None, "vip"),)


@pytest.mark.parametrize(
    "result", [Succeeded(tags=VIP), Failed("boom", tags=VIP), Cancelled("asked", tags=VIP)]
)
def test_what_a_handler_reached_keeps_its_tags(result: Result) -> None:
    """Tags are kept whatever the handler came to, a throw too."""
    assert tags_of(result) == VIP


@pytest.mark.parametrize("result", [Unroutable("no handler"), Released(started=True)])
def test_what_no_handler_ended_adds_no_tags(result: Result) -> None:
    """An attempt without a handler's end has nothing to add."""
    assert tags_of(result) == ()
