"""What observers have not had yet, and what it keeps from going (rule 9.5)."""

from __future__ import annotations

from datetime import datetime

from django.db.models import F, Min, Q, QuerySet

from ...core.retention import UNDELIVERED_KEPT
from ...models import Observer, Transition
from ..dialects.base import Dialect


def least_cursor(dialect: Dialect) -> int | None:
    """Give the cursor of the observer that is furthest behind; ``None`` without observers."""
    cursor: int | None = Observer.objects.using(dialect.alias).aggregate(Min("cursor"))[
        "cursor__min"
    ]
    return cursor


def kept(cursor: int, now: datetime) -> Q:
    """Say which transitions an observer at ``cursor`` keeps from going."""
    return Q(id__gt=cursor, at__gt=now - UNDELIVERED_KEPT)


def wanted_by(observer: Observer, rows: QuerySet[Transition]) -> QuerySet[Transition]:
    """Give the transitions that an observer wants and has not had."""
    rows = rows.filter(id__gt=observer.cursor, state__in=observer.states)
    if observer.wire_names:
        rows = rows.filter(job__wire_name__in=observer.wire_names)
    if observer.queues:
        rows = rows.filter(job__queue__in=observer.queues)
    return rows


def count_lost(dialect: Dialect, going: QuerySet[Transition]) -> None:
    """Count what is about to go against each observer that wanted it."""
    for observer in Observer.objects.using(dialect.alias).order_by("name"):
        lost = wanted_by(observer, going).count()
        if lost:
            rows = Observer.objects.using(dialect.alias).filter(name=observer.name)
            rows.update(lost=F("lost") + lost)


def trim_logs(dialect: Dialect, logs: QuerySet[Transition], now: datetime) -> None:
    """Let log entries age out, but for those that an observer keeps."""
    cursor = least_cursor(dialect)
    if cursor is None:
        logs.delete()
        return
    going = logs.exclude(kept(cursor, now))
    with dialect.store_atomic():
        count_lost(dialect, going)
        going.delete()
