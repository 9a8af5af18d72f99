"""Checks that stay on: what holds is silent, what does not is told with its facts."""

from __future__ import annotations

import pytest

from backwave_django.core.errors import InvariantViolated
from backwave_django.core.invariants import require


def test_what_holds_is_silent() -> None:
    """A condition that holds raises nothing."""
    require(True, "one is one", one=1)


def test_what_does_not_hold_is_told_with_its_facts() -> None:
    """The text names the rule and every fact, in the order of their names."""
    with pytest.raises(InvariantViolated) as violation:
        require(False, "one is two", two="2", one=1)
    assert str(violation.value) == "invariant violated: one is two (one=1, two='2')"
    assert violation.value.facts == {"one": 1, "two": "2"}
