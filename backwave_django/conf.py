"""The typed view of ``settings.BACKWAVE``.

Read lazily, parsed once, and parsed anew when the setting changes (as
``override_settings`` does).
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from .core.dispatch import Strict
from .core.errors import InvalidOption
from .core.limits import Limits, limits_from
from .core.options import WorkerGroupOptions
from .storage.values import HistoryPolicy

SETTING = "BACKWAVE"
SETTING_KEYS = ("DATABASE", "SCHEMA_NAME", "HISTORY", "LIMITS", "WORKER_GROUPS")
DEFAULT_SCHEMA_NAME = "backwave"
_SCHEMA_NAME = re.compile(r"[a-z][a-z0-9_]{0,11}")
_GROUP_OPTIONS = tuple(name for name in WorkerGroupOptions.__dataclass_fields__ if name != "name")


class ConfigurationError(ImproperlyConfigured):
    """A setting is wrong; the message names it and says what is allowed."""


@dataclass(frozen=True)
class Configuration:
    """What ``settings.BACKWAVE`` says, with defaults filled in."""

    database: str
    history: HistoryPolicy
    limits: Limits
    worker_groups: Mapping[str, WorkerGroupOptions]

    def group_of_queue(self, queue: str) -> WorkerGroupOptions | None:
        """Give the first group that serves ``queue``."""
        for group in self.worker_groups.values():
            if queue in group.policy.queues:
                return group
        return None


@functools.cache
def configuration() -> Configuration:
    """Give the parsed settings.

    Raises:
        ConfigurationError: the first thing that is wrong.
    """
    raw = _raw()
    problems = [*_unknown(raw, SETTING_KEYS, "setting BACKWAVE key")]
    if problems:
        raise ConfigurationError(problems[0])
    schema_name()
    try:
        limits = limits_from(_mapping(raw, "LIMITS"))
        groups = {name: _group(name, value) for name, value in _groups(raw).items()}
    except InvalidOption as error:
        raise ConfigurationError(f"settings.BACKWAVE: {error}") from error
    for group in groups.values():
        if group.max_claim_batch > limits.max_claim_batch:
            raise ConfigurationError(
                f"settings.BACKWAVE: worker group {group.name!r}: max_claim_batch "
                f"{group.max_claim_batch} is over the limit MaxClaimBatch "
                f"{limits.max_claim_batch}; raise LIMITS['MaxClaimBatch'] as well"
            )
    return Configuration(_database(raw), _history(raw), limits, groups)


def schema_name() -> str:
    """Give the prefix of every table; fixed for the life of the data."""
    name = _raw().get("SCHEMA_NAME", DEFAULT_SCHEMA_NAME)
    if not isinstance(name, str) or not _SCHEMA_NAME.fullmatch(name):
        raise ConfigurationError(
            f"settings.BACKWAVE['SCHEMA_NAME'] must match [a-z][a-z0-9_]{{0,11}}, not {name!r}"
        )
    return name


def table_prefix() -> str:
    """Give the schema name for the tables, also where the setting is wrong.

    Models are imported before anybody can be told of a wrong setting; a system check
    tells it, and ``configuration`` refuses it.
    """
    try:
        return schema_name()
    except ConfigurationError:
        return DEFAULT_SCHEMA_NAME


def app_label() -> str:
    """Give the app label: its own for each schema name, as migrations are kept by label."""
    name = table_prefix()
    return "backwave_django" if name == DEFAULT_SCHEMA_NAME else f"backwave_django_{name}"


def _raw() -> Mapping[str, Any]:
    raw = getattr(settings, SETTING, {})
    if not isinstance(raw, Mapping):
        raise ConfigurationError(f"settings.BACKWAVE must be a dict, not {raw!r}")
    return raw


def _unknown(raw: Mapping[str, Any], known: tuple[str, ...], what: str) -> list[str]:
    found = []
    for key in raw:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            found.append(f"unknown {what} {key!r}; {hint}")
    return found


def _mapping(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = raw.get(key, {})
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"settings.BACKWAVE[{key!r}] must be a dict, not {value!r}")
    return value


def _database(raw: Mapping[str, Any]) -> str:
    alias = raw.get("DATABASE", "default")
    if not isinstance(alias, str) or alias not in settings.DATABASES:
        raise ConfigurationError(
            f"settings.BACKWAVE['DATABASE'] names {alias!r}, which is not in DATABASES; "
            f"known: {', '.join(settings.DATABASES)}"
        )
    return str(alias)


def _history(raw: Mapping[str, Any]) -> HistoryPolicy:
    value = raw.get("HISTORY", HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL.value)
    try:
        return HistoryPolicy(value)
    except ValueError:
        known = ", ".join(repr(policy.value) for policy in HistoryPolicy)
        raise ConfigurationError(
            f"settings.BACKWAVE['HISTORY'] must be one of {known}, not {value!r}"
        ) from None


def _groups(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    groups = _mapping(raw, "WORKER_GROUPS") or {"default": {"policy": Strict("default")}}
    for name in groups:
        if not isinstance(name, str) or not name.isprintable() or not name.strip():
            raise ConfigurationError(
                f"settings.BACKWAVE['WORKER_GROUPS']: {name!r} cannot be the name of a group"
            )
    return groups


def _group(name: str, options: Any) -> WorkerGroupOptions:
    if not isinstance(options, Mapping):
        raise ConfigurationError(
            f"settings.BACKWAVE['WORKER_GROUPS'][{name!r}] must be a dict, not {options!r}"
        )
    unknown = _unknown(options, _GROUP_OPTIONS, f"option of worker group {name!r}:")
    if unknown:
        raise ConfigurationError(f"settings.BACKWAVE: {unknown[0]}")
    if "policy" not in options:
        raise ConfigurationError(
            f"settings.BACKWAVE: worker group {name!r} has no policy; "
            "write for example 'policy': Strict('default')"
        )
    return WorkerGroupOptions(name=name, **options)


def _forget(*, setting: str, **_: object) -> None:
    if setting in (SETTING, "DATABASES"):
        configuration.cache_clear()


setting_changed.connect(_forget, dispatch_uid="backwave_django.conf")
