"""The options of a worker group: defaults, durations, and each wrong value."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from backwave_django.core.dispatch import Strict, Weighted
from backwave_django.core.errors import InvalidOption
from backwave_django.core.options import WorkerGroupOptions
from backwave_django.core.retry import RetryPolicy

from .stories import seconds

COUNTS = ("pool_size", "pumps", "max_claim_batch", "max_outcome_batch")
DURATIONS = (
    "poll_interval", "maintenance_interval", "lease_duration", "heartbeat_interval",
    "max_poll_interval",
)  # fmt: skip
WRONG_COUNTS = [0, -1, 1.5, "4", True, False, []]
WRONG_DURATIONS = [-1, seconds(-1), "5s", math.nan, math.inf, -math.inf, [], timedelta.min, 1e300]


def group(**options: Any) -> WorkerGroupOptions:
    """Make the options of a group called mail."""
    said: dict[str, Any] = {"name": "mail", "policy": Strict("emails")} | options
    return WorkerGroupOptions(**said)


def refusal_of(**options: Any) -> InvalidOption:
    """Give the error that these options raise."""
    with pytest.raises(InvalidOption) as refusal:
        group(**options)
    return refusal.value


def test_the_defaults_are_those_of_the_glossary() -> None:
    """What is not said has its published default."""
    options = group()
    assert (options.pool_size, options.pumps) == (20, 1)
    assert (options.max_claim_batch, options.outcome_batch) == (32, 32)
    assert options.poll_floor == seconds(1)
    assert options.poll_ceiling == seconds(0)
    assert options.maintenance == seconds(5)
    assert options.lease == seconds(60)
    assert options.heartbeat == seconds(20)
    assert options.retry_policy == RetryPolicy()


def test_defaults_follow_what_they_hang_on() -> None:
    """The heartbeat follows the lease, the outcome batch the claim batch."""
    options = group(lease_duration=9, max_claim_batch=5)
    assert options.heartbeat == seconds(3)
    assert options.heartbeat_interval == seconds(3)
    assert options.outcome_batch == options.max_outcome_batch == 5


def test_seconds_and_timedeltas_are_the_same() -> None:
    """Durations are kept as ``timedelta`` however they were written."""
    written = group(
        poll_interval=0.5, max_poll_interval=8, maintenance_interval=2, lease_duration=30,
        heartbeat_interval=10,
    )  # fmt: skip
    assert written == group(
        poll_interval=seconds(0.5), max_poll_interval=seconds(8), maintenance_interval=seconds(2),
        lease_duration=seconds(30), heartbeat_interval=seconds(10),
    )  # fmt: skip
    assert all(isinstance(getattr(written, name), timedelta) for name in DURATIONS)


def test_everything_can_be_said() -> None:
    """A group that says all keeps all."""
    policy = Weighted({"emails": 3, "reports": 1})
    retry = RetryPolicy(max_attempts=2)
    options = group(policy=policy, pool_size=1, pumps=2, max_outcome_batch=7, retry_policy=retry)
    assert (options.policy, options.pool_size, options.pumps) == (policy, 1, 2)
    assert (options.outcome_batch, options.retry_policy) == (7, retry)


@pytest.mark.parametrize("value", WRONG_COUNTS)
@pytest.mark.parametrize("name", COUNTS)
def test_a_wrong_count_is_refused(name: str, value: Any) -> None:
    """The message names the group, the option, the rule and the value."""
    error = refusal_of(**{name: value})
    assert str(error) == (
        f"worker group 'mail': {name} must be a whole number of at least 1, not {value!r}"
    )
    assert error.facts == {"group": "mail", "option": name}


@pytest.mark.parametrize("value", WRONG_DURATIONS)
@pytest.mark.parametrize("name", DURATIONS)
def test_a_wrong_duration_is_refused(name: str, value: Any) -> None:
    """The message names the group, the option, the rule and the value."""
    error = refusal_of(**{name: value})
    assert str(error).startswith(f"worker group 'mail': {name} must be ")
    assert "timedelta or number of seconds" in str(error)
    assert str(error).endswith(f", not {value!r}")
    assert error.facts == {"group": "mail", "option": name}


@pytest.mark.parametrize("value", [0, seconds(0)])
@pytest.mark.parametrize("name", DURATIONS[:-1])
def test_only_the_idle_ceiling_may_be_zero(name: str, value: Any) -> None:
    """No cadence is zero; zero as ``max_poll_interval`` means off."""
    assert refusal_of(**{name: value}).facts["option"] == name
    assert group(max_poll_interval=value).poll_ceiling == seconds(0)


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("name", DURATIONS)
def test_a_truth_value_is_no_duration(name: str, value: bool) -> None:
    """``poll_interval=True`` is a mistake, as ``pool_size=True`` is, not one second."""
    assert refusal_of(**{name: value}).facts["option"] == name


@pytest.mark.parametrize("name", DURATIONS[:3])
def test_a_duration_past_the_calendar_is_refused_at_once(name: str) -> None:
    """``timedelta.max`` as in "never" must not become an overflow in a running pump."""
    assert refusal_of(**{name: timedelta.max}).facts["option"] == name


@pytest.mark.parametrize("name", ["poll_interval", "maintenance_interval", "lease_duration"])
def test_a_duration_without_a_default_cannot_be_none(name: str) -> None:
    """``None`` has a meaning for the heartbeat alone."""
    assert refusal_of(**{name: None}).facts["option"] == name


def test_a_heartbeat_is_at_most_a_third_of_the_lease() -> None:
    """One lost heartbeat must not lose the lease."""
    assert group(lease_duration=30, heartbeat_interval=10).heartbeat == seconds(10)
    error = refusal_of(lease_duration=30, heartbeat_interval=10.001)
    assert error.facts["option"] == "heartbeat_interval"
    assert "at most a third of lease_duration (0:00:10)" in str(error)


def test_the_idle_ceiling_is_off_or_at_least_the_floor() -> None:
    """A ceiling below the floor says two things at once."""
    assert group(poll_interval=2, max_poll_interval=2).poll_ceiling == seconds(2)
    error = refusal_of(poll_interval=2, max_poll_interval=1)
    assert error.facts["option"] == "max_poll_interval"


@pytest.mark.parametrize("policy", [None, "emails", ["emails"], {"emails": 3}, Strict])
def test_a_policy_is_strict_or_weighted(policy: Any) -> None:
    """A list of queues is not a policy; the message shows what is."""
    error = refusal_of(policy=policy)
    assert error.facts["option"] == "policy"
    assert "Strict(...) or Weighted({...})" in str(error)


@pytest.mark.parametrize("policy", [None, 5, {"max_attempts": 3}, RetryPolicy])
def test_a_retry_policy_is_one(policy: Any) -> None:
    """A dict of options is not a policy."""
    assert refusal_of(retry_policy=policy).facts["option"] == "retry_policy"


def test_options_cannot_be_changed() -> None:
    """A running pump's options never move under it."""
    with pytest.raises(AttributeError):
        group().pool_size = 5  # type: ignore[misc]
