"""The errors of the Core: their roots, their facts, and that they travel."""

from __future__ import annotations

import pickle

import pytest

from backwave_django.core.errors import (
    BackwaveError,
    IllegalTransition,
    InvalidOption,
    InvariantViolated,
)


@pytest.mark.parametrize("kind", [IllegalTransition, InvalidOption, InvariantViolated])
def test_every_error_has_one_root_and_keeps_its_facts(kind: type[BackwaveError]) -> None:
    """An error carries a text for people and facts for programs."""
    error = kind("what happened", limit=3)
    assert isinstance(error, BackwaveError)
    assert str(error) == "what happened"
    assert error.facts == {"limit": 3}


def test_an_invalid_option_is_a_value_error() -> None:
    """Code that knows nothing of this package can catch it."""
    assert issubclass(InvalidOption, ValueError)


def test_an_error_survives_pickling() -> None:
    """Test runners send errors from one process to another."""
    copy = pickle.loads(pickle.dumps(InvalidOption("too long", limit=3)))
    assert str(copy) == "too long"
    assert copy.facts == {"limit": 3}
