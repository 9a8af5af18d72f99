"""Instants as whole microseconds since 1970 UTC, and back, without loss."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_micros(instant: datetime) -> int:
    """Give the microseconds from 1970 to an aware instant; negative before it."""
    delta = instant - EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def from_micros(micros: int) -> datetime:
    """Give the aware UTC instant that lies ``micros`` after 1970."""
    return EPOCH + timedelta(microseconds=micros)
