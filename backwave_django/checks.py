"""System checks: what is wrong before anything runs. Each id is documented, and stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import connections, router

from .conf import Configuration, ConfigurationError, configuration
from .handlers.errors import InvalidPayload
from .handlers.registry import registry

TAG = "backwave"


@register(TAG)
def check_settings(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """E001: ``settings.BACKWAVE`` has an unknown key or a wrong value."""
    try:
        configuration()
    except ConfigurationError as error:
        return [
            Error(
                str(error),
                hint="The settings reference lists every key with its type and default.",
                id="backwave_django.E001",
            )
        ]
    return []


@register(TAG)
def check_jobs(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """E002 to E004, W001: wire names that clash, missing handlers, payload types, queues."""
    found: list[CheckMessage] = [
        Error(
            f"wire name {conflict.wire_name!r} is declared twice: by {conflict.first} and by "
            f"{conflict.second}",
            hint="Give each job a wire name of its own.",
            id="backwave_django.E002",
        )
        for conflict in registry.conflicts
    ]
    served = _served_queues()
    for job_type in registry.all():
        if job_type.invoke is None:
            found.append(
                Error(
                    f"job {job_type.wire_name!r} ({job_type.declared_at}) has no handler",
                    hint="Declare one with @handles in a jobs.py of an installed app.",
                    id="backwave_django.E003",
                )
            )
        try:
            job_type.codec  # noqa: B018 — made at its first use
        except InvalidPayload as error:
            found.append(
                Error(
                    str(error),
                    hint="Use types that msgspec can encode and decode.",
                    obj=job_type.declared_at,
                    id="backwave_django.E004",
                )
            )
        if served is not None and job_type.queue not in served:
            found.append(
                Warning(
                    f"job {job_type.wire_name!r} goes to queue {job_type.queue!r}, which no "
                    "worker group of the settings serves",
                    hint="Add the queue to the policy of a group in BACKWAVE['WORKER_GROUPS'], "
                    "or silence this check where other settings serve it.",
                    id="backwave_django.W001",
                )
            )
    return found


def _served_queues() -> set[str] | None:
    try:
        groups = configuration().worker_groups.values()
    except ConfigurationError:
        return None
    return {queue for group in groups for queue in group.policy.queues}


@register(TAG)
def check_database(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """E005, W002 to W006: the alias, its routing, and the options that it needs."""
    try:
        current = configuration()
    except ConfigurationError:
        return []
    return [
        *_check_routing(current),
        *_check_dedicated(current),
        *_check_sqlite(current),
        *_check_pool(current),
    ]


def _check_routing(current: Configuration) -> list[CheckMessage]:
    from .models import Job

    routed = {router.db_for_write(Job), router.db_for_read(Job)}
    if routed == {current.database}:
        return []
    return [
        Error(
            f"BACKWAVE['DATABASE'] is {current.database!r}, but the database routers send the "
            f"models of backwave_django to {', '.join(sorted(map(repr, routed)))}",
            hint="Put 'backwave_django.routers.BackwaveRouter' first in DATABASE_ROUTERS.",
            id="backwave_django.E005",
        )
    ]


def _check_dedicated(current: Configuration) -> list[CheckMessage]:
    if current.database == "default":
        return []
    return [
        Warning(
            f"BACKWAVE['DATABASE'] is {current.database!r}: an enqueue does not take part in "
            "transactions on 'default', so a job can exist without its data, or be lost with it",
            hint="Enqueue inside transaction.atomic(using=...) of that alias, or silence this "
            "check if that is understood.",
            id="backwave_django.W002",
        )
    ]


def _check_sqlite(current: Configuration) -> list[CheckMessage]:
    connection = connections[current.database]
    if connection.vendor != "sqlite":
        return []
    options = settings.DATABASES[current.database].get("OPTIONS", {})
    wanted: list[CheckMessage] = []
    if str(options.get("transaction_mode", "")).upper() != "IMMEDIATE":
        wanted.append(
            Warning(
                f"SQLite alias {current.database!r} does not start transactions with BEGIN "
                "IMMEDIATE: a transaction that reads first and then writes can fail with "
                "'database is locked' at once",
                hint="Set 'OPTIONS': {'transaction_mode': 'IMMEDIATE'}.",
                id="backwave_django.W003",
            )
        )
    if "journal_mode" not in str(options.get("init_command", "")).lower():
        wanted.append(
            Warning(
                f"SQLite alias {current.database!r} is not said to use the write-ahead log: "
                "readers and the one writer keep each other waiting",
                hint="Set 'OPTIONS': {'init_command': 'PRAGMA journal_mode=WAL'}.",
                id="backwave_django.W004",
            )
        )
    timeout = options.get("timeout", 5)
    if isinstance(timeout, int | float) and timeout < 5:
        wanted.append(
            Warning(
                f"SQLite alias {current.database!r} waits {timeout} seconds for a "
                "lock; a worker and a web process need more patience with each other",
                hint="Set 'OPTIONS': {'timeout': 20}.",
                id="backwave_django.W005",
            )
        )
    return wanted


def _check_pool(current: Configuration) -> list[CheckMessage]:
    """A pump and each of its slots hold a connection; one that waits for another is stuck."""
    pool = settings.DATABASES[current.database].get("OPTIONS", {}).get("pool")
    if not pool:
        return []
    options = pool if isinstance(pool, dict) else {}
    # Source: https://www.psycopg.org/psycopg3/docs/api/pool.html, max_size and min_size.
    size = options.get("max_size") or options.get("min_size", 4)
    wanted = sum(group.pumps * (1 + group.pool_size) for group in current.worker_groups.values())
    if size >= wanted:
        return []
    return [
        Warning(
            f"the connection pool of alias {current.database!r} holds {size} connections, fewer "
            f"than the {wanted} that a worker of all groups can use at once",
            hint="Raise OPTIONS['pool']['max_size'], or lower pool_size of the groups.",
            id="backwave_django.W006",
        )
    ]
