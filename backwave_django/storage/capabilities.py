"""What a store declares about itself; the conformance suite reads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a store can do.

    Attributes:
        durable: what it holds outlives the process.
        transactional_enqueue: an enqueue joins the caller's open transaction.
        skips_locked_rows: an open transaction elsewhere makes nothing wait (rule 0.7).
            False where the database has one writer at a time.
        settles_log: it can tell which part of the transition log no open transaction can
            still add to (rule 9.2).
        cluster_clock: it can tell the time that all its clients share.
    """

    durable: bool
    transactional_enqueue: bool
    skips_locked_rows: bool
    cluster_clock: bool
    settles_log: bool
