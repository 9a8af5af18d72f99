"""The store and the clock that the settings describe; one of each per process."""

from __future__ import annotations

import functools

from django.core.signals import setting_changed

from .conf import SETTING, configuration
from .runtime.clock import ClusterClock
from .storage.orm.store import DjangoStore


@functools.cache
def store() -> DjangoStore:
    """Give the store of the settings."""
    settings = configuration()
    return DjangoStore(settings.database, settings.limits, settings.history)


@functools.cache
def clock() -> ClusterClock:
    """Give the client's cluster clock: at most one statement in the life of the process."""
    return cluster_clock(store())


def cluster_clock(of: DjangoStore) -> ClusterClock:
    """Make a cluster clock over a store."""
    return ClusterClock(of.current_time if of.capabilities.cluster_clock else None)


def _forget(*, setting: str, **_: object) -> None:
    if setting in (SETTING, "DATABASES"):
        store.cache_clear()
        clock.cache_clear()


setting_changed.connect(_forget, dispatch_uid="backwave_django.deployment")
