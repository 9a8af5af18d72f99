"""``settings.BACKWAVE``: defaults, and what is said to each wrong value."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from backwave_django import ConfigurationError, RetryPolicy, Strict, Weighted
from backwave_django.conf import app_label, configuration, schema_name, table_prefix
from backwave_django.core.limits import Limits
from backwave_django.deployment import clock, store
from backwave_django.storage.values import HistoryPolicy


def test_without_a_setting_everything_has_a_default(settings: Any) -> None:
    """An empty dictionary and no dictionary mean the same."""
    for backwave in ({}, None):
        if backwave is None:
            del settings.BACKWAVE
        else:
            settings.BACKWAVE = backwave
        current = configuration()
        assert current.database == "default"
        assert current.history is HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL
        assert current.limits == Limits()
        [group] = current.worker_groups.values()
        assert (group.name, group.policy) == ("default", Strict("default"))
        assert (schema_name(), app_label()) == ("backwave", "backwave_django")


def test_every_key_is_read(settings: Any) -> None:
    """Durations as timedelta or seconds."""
    settings.BACKWAVE = {
        "DATABASE": "postgres",
        "HISTORY": "off",
        "LIMITS": {"MaxPayloadBytes": 10, "MaxClaimBatch": 100},
        "WORKER_GROUPS": {
            "default": {"policy": Strict("urgent", "default")},
            "mail": {
                "policy": Weighted({"emails": 3, "reports": 1}),
                "pool_size": 50,
                "pumps": 2,
                "max_claim_batch": 100,
                "lease_duration": 90,
                "poll_interval": timedelta(milliseconds=10),
                "retry_policy": RetryPolicy(max_attempts=2),
            },
        },
    }
    current = configuration()
    assert (current.database, current.history) == ("postgres", HistoryPolicy.OFF)
    assert (current.limits.max_payload_bytes, current.limits.max_output_bytes) == (10, 65_536)
    mail = current.worker_groups["mail"]
    assert (mail.pool_size, mail.pumps, mail.lease) == (50, 2, timedelta(seconds=90))
    assert mail.heartbeat == timedelta(seconds=30)
    assert list(current.worker_groups) == ["default", "mail"]
    assert current.group_of_queue("reports") is mail
    assert current.group_of_queue("nobody's") is None
    assert (store().alias, store().history, store().limits) == (
        "postgres", HistoryPolicy.OFF, current.limits,
    )  # fmt: skip


def group(**options: Any) -> dict[str, Any]:
    """Make the setting of one worker group."""
    return {"WORKER_GROUPS": {"g": {"policy": Strict("q"), **options}}}


WRONG: list[tuple[Any, str]] = [
    (3, "settings.BACKWAVE must be a dict, not 3"),
    (None, "settings.BACKWAVE must be a dict, not None"),
    ([], r"settings.BACKWAVE must be a dict, not \[\]"),
    ({"DATABSE": "x"}, "unknown setting BACKWAVE key 'DATABSE'; did you mean 'DATABASE'"),
    ({"database": "x"}, "unknown setting BACKWAVE key 'database'; .*DATABASE"),
    ({3: 4}, "unknown setting BACKWAVE key 3; known: DATABASE, SCHEMA_NAME"),
    ({"DATABASE": "nope"}, r"\['DATABASE'\] names 'nope', .* known: default, postgres"),
    ({"DATABASE": None}, r"\['DATABASE'\] names None"),
    ({"DATABASE": 3}, r"\['DATABASE'\] names 3"),
    ({"DATABASE": ["default"]}, r"\['DATABASE'\]"),
    ({"SCHEMA_NAME": "A"}, r"\['SCHEMA_NAME'\] must match \[a-z\]\[a-z0-9_\]\{0,11\}, not 'A'"),
    ({"SCHEMA_NAME": "1a"}, "SCHEMA_NAME"),
    ({"SCHEMA_NAME": ""}, "SCHEMA_NAME"),
    ({"SCHEMA_NAME": "thirteen_long"}, "SCHEMA_NAME"),
    ({"SCHEMA_NAME": "a; DROP"}, "SCHEMA_NAME"),
    ({"SCHEMA_NAME": "name\n"}, "SCHEMA_NAME"),
    ({"SCHEMA_NAME": "ä"}, "SCHEMA_NAME"),
    ({"SCHEMA_NAME": None}, "SCHEMA_NAME"),
    ({"HISTORY": "on"}, r"\['HISTORY'\] must be one of 'off', 'transitions', .* not 'on'"),
    ({"HISTORY": None}, r"\['HISTORY'\] must be one of .* not None"),
    ({"HISTORY": True}, r"\['HISTORY'\] must be one of .* not True"),
    ({"HISTORY": []}, r"\['HISTORY'\] must be one of"),
    ({"LIMITS": None}, r"\['LIMITS'\] must be a dict, not None"),
    ({"LIMITS": {"max_payload_bytes": 1}}, "unknown limit 'max_payload_bytes'; known: MaxPayload"),
    ({"LIMITS": {3: 1}}, "unknown limit 3"),
    ({"LIMITS": {"MaxPayloadBytes": 0}}, "MaxPayloadBytes must be a whole number of at least 1"),
    ({"LIMITS": {"MaxPayloadBytes": -1}}, "MaxPayloadBytes .* not -1"),
    ({"LIMITS": {"MaxPayloadBytes": True}}, "MaxPayloadBytes .* not True"),
    ({"LIMITS": {"MaxPayloadBytes": 1.5}}, "MaxPayloadBytes .* not 1.5"),
    ({"LIMITS": {"MaxPayloadBytes": "64"}}, "MaxPayloadBytes .* not '64'"),
    ({"LIMITS": {"MaxPayloadBytes": None}}, "MaxPayloadBytes .* not None"),
    ({"WORKER_GROUPS": []}, r"\['WORKER_GROUPS'\] must be a dict, not \[\]"),
    ({"WORKER_GROUPS": {"": {}}}, "'' cannot be the name of a group"),
    ({"WORKER_GROUPS": {"  ": {}}}, "cannot be the name of a group"),
    ({"WORKER_GROUPS": {"a\nb": {}}}, r"'a\\nb' cannot be the name of a group"),
    ({"WORKER_GROUPS": {3: {}}}, "3 cannot be the name of a group"),
    ({"WORKER_GROUPS": {"g": None}}, r"\['WORKER_GROUPS'\]\['g'\] must be a dict, not None"),
    ({"WORKER_GROUPS": {"g": Strict("q")}}, r"\['g'\] must be a dict, not Strict"),
    ({"WORKER_GROUPS": {"g": {}}}, "group 'g' has no policy; .*Strict\\('default'\\)"),
    ({"WORKER_GROUPS": {"g": {"policy": "q"}}}, "group 'g': policy must be Strict"),
    (group(pool=3), "unknown option of worker group 'g': 'pool'; did you mean 'pool_size'"),
    (group(name="other"), "unknown option of worker group 'g': 'name'"),
    (group(pool_size=0), "group 'g': pool_size must be a whole number of at least 1, not 0"),
    (group(pool_size=True), "group 'g': pool_size .* not True"),
    (group(pumps=1.0), "group 'g': pumps .* not 1.0"),
    (group(max_claim_batch=None), "group 'g': max_claim_batch .* not None"),
    (group(max_outcome_batch=0), "group 'g': max_outcome_batch .* not 0"),
    (group(poll_interval=0), "group 'g': poll_interval must be a positive timedelta"),
    (group(poll_interval=timedelta(-1)), "group 'g': poll_interval must be a positive"),
    (group(lease_duration="60"), "group 'g': lease_duration must be a positive .* not '60'"),
    (group(lease_duration=float("nan")), "group 'g': lease_duration must be a positive"),
    (group(lease_duration=1e300), "group 'g': lease_duration .* at most a year"),
    (group(maintenance_interval=True), "group 'g': maintenance_interval must be a positive"),
    (group(max_poll_interval=0.5), "group 'g': max_poll_interval must be zero .* or at least"),
    (group(heartbeat_interval=31, lease_duration=90), "heartbeat_interval must be at most a third"),
    (group(retry_policy=5), "group 'g': retry_policy must be a RetryPolicy, not 5"),
    (group(max_claim_batch=33), "max_claim_batch 33 is over the limit MaxClaimBatch 32; raise"),
]


@pytest.mark.parametrize(("value", "message"), WRONG, ids=lambda value: repr(value)[:60])
def test_a_wrong_value_is_named(settings: Any, value: Any, message: str) -> None:
    """Key, value and what is allowed; as Django's own kind of error."""
    settings.BACKWAVE = value
    with pytest.raises(ConfigurationError, match=message) as caught:
        configuration()
    assert isinstance(caught.value, ImproperlyConfigured)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a", "backwave", "a_b_c_1_2_3_", "twelve_chars"])
def test_a_schema_name_makes_prefix_and_label(settings: Any, name: str) -> None:
    """The default one gives the plain label."""
    settings.BACKWAVE = {"SCHEMA_NAME": name}
    assert schema_name() == table_prefix() == name
    expected = "backwave_django" if name == "backwave" else f"backwave_django_{name}"
    assert app_label() == expected


def test_models_can_be_imported_under_a_wrong_name(settings: Any) -> None:
    """So that the system check can tell of it."""
    for wrong in ({"SCHEMA_NAME": "A"}, 3):
        settings.BACKWAVE = wrong
        assert (table_prefix(), app_label()) == ("backwave", "backwave_django")


def test_overriding_the_setting_takes_effect_at_once_and_ends() -> None:
    """Store and clock are made anew, as ``override_settings`` expects."""
    before, before_clock = store(), clock()
    assert store() is before
    with override_settings(BACKWAVE={"DATABASE": "postgres", "HISTORY": "off"}):
        assert configuration().database == store().alias == "postgres"
        assert store() is not before
        assert clock() is not before_clock
        with override_settings(BACKWAVE={"HISTORY": "nope"}), pytest.raises(ConfigurationError):
            configuration()
        assert configuration().history is HistoryPolicy.OFF
    assert configuration().database == store().alias == before.alias


def test_the_setting_is_parsed_once(settings: Any) -> None:
    """It is read on every enqueue."""
    settings.BACKWAVE = {}
    assert configuration() is configuration()
    assert store() is store()


def test_the_settings_are_not_changed_by_reading_them(settings: Any) -> None:
    """They are the project's."""
    mine = {"WORKER_GROUPS": {"g": {"policy": Strict("q"), "lease_duration": 60}}}
    settings.BACKWAVE = mine
    configuration()
    assert mine == {"WORKER_GROUPS": {"g": {"policy": Strict("q"), "lease_duration": 60}}}
