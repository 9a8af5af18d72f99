"""The named limits: defaults, published names, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from backwave_django.core.errors import InvalidOption
from backwave_django.core.limits import LIMIT_NAMES, Limits, limits_from

PUBLISHED = {
    "MaxPayloadBytes": 65_536,
    "MaxWireNameLength": 128,
    "MaxClaimBatch": 32,
    "MaxParentsPerJob": 16,
    "MaxMonitorPageSize": 200,
    "MaxFailureDetailBytes": 8_192,
    "MaxOutputBytes": 65_536,
}


def test_the_defaults_are_those_of_the_glossary() -> None:
    """Each published limit has its published default."""
    limits = Limits()
    defaults = {name: getattr(limits, attribute) for name, attribute in LIMIT_NAMES.items()}
    assert PUBLISHED.items() <= defaults.items()


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_limit_is_set_by_its_published_name(name: str) -> None:
    """One name changes one limit and leaves the others."""
    changed = limits_from({name: 7})
    assert getattr(changed, LIMIT_NAMES[name]) == 7
    others = set(LIMIT_NAMES.values()) - {LIMIT_NAMES[name]}
    assert all(getattr(changed, other) == getattr(Limits(), other) for other in others)


def test_no_names_are_the_defaults() -> None:
    """An empty setting changes nothing."""
    assert limits_from({}) == Limits()


@pytest.mark.parametrize("value", [0, -1, 1.0, "5", None, True, False])
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_wrong_value_is_refused_under_the_published_name(name: str, value: Any) -> None:
    """The message names the limit as the settings do, and the value."""
    with pytest.raises(InvalidOption) as refusal:
        limits_from({name: value})
    assert f"limit {name} must be a whole number of at least 1, not {value!r}" == str(refusal.value)
    assert refusal.value.facts == {"name": LIMIT_NAMES[name], "value": value}


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    """A misspelt limit is told, with all that there are."""
    with pytest.raises(InvalidOption) as refusal:
        limits_from({"MaxPayloadByte": 1})
    assert "unknown limit 'MaxPayloadByte'" in str(refusal.value)
    assert all(name in str(refusal.value) for name in PUBLISHED)


def test_the_name_of_the_attribute_is_not_a_published_name() -> None:
    """Settings use one spelling."""
    with pytest.raises(InvalidOption, match="unknown limit 'max_payload_bytes'"):
        limits_from({"max_payload_bytes": 1})


def test_names_of_several_types_are_refused_like_any_other() -> None:
    """A key that is no text is an unknown limit, also beside a misspelt one."""
    wrong: Any = {1: 5, "MaxPayloadByte": 1}
    with pytest.raises(InvalidOption, match="unknown limit"):
        limits_from(wrong)


def test_a_wire_name_may_be_no_longer_than_its_column() -> None:
    """A higher limit would be the database's to refuse, in its own words."""
    assert Limits(max_wire_name_length=512).max_wire_name_length == 512
    with pytest.raises(InvalidOption, match="at most 512"):
        Limits(max_wire_name_length=513)
