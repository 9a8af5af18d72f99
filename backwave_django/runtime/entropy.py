"""The only maker of ids and chance."""

from __future__ import annotations

import os
import secrets
import threading
import time
import uuid

_NAMESPACE = uuid.UUID("6f6f2ad1-8f0e-5c2f-9a43-6c3a3a0b7d11")
"""The namespace of ids derived from idempotency keys; it must never change."""

_lock = threading.Lock()
_last_millis = 0
_counter = 0


def new_job_id() -> uuid.UUID:
    """Make a UUID version 7, growing within a process.

    Source: RFC 9562, section 5.7 (layout) and 6.2, method 1 (a counter of 12 bits in
    ``rand_a``, seeded anew each millisecond; when it runs over, the timestamp is moved
    ahead of the clock).
    """
    global _last_millis, _counter
    with _lock:
        millis = time.time_ns() // 1_000_000
        if millis > _last_millis:
            _last_millis = millis
            _counter = secrets.randbits(11)  # the top bit stays free, as headroom
        else:
            _counter += 1
            if _counter > 0xFFF:
                _last_millis += 1
                _counter = 0
        millis, counter = _last_millis, _counter
    tail = int.from_bytes(os.urandom(8)) & 0x3FFF_FFFF_FFFF_FFFF
    return uuid.UUID(int=millis << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | tail)


def _forget_after_fork() -> None:
    """Start a forked child with a lock of its own."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)


def job_id_for_key(wire_name: str, key: str) -> uuid.UUID:
    """Derive the job id that stands for an idempotency key of a wire name."""
    return uuid.uuid5(_NAMESPACE, f"{len(wire_name)}:{wire_name}:{key}")


def new_token() -> str:
    """Make a short random text that is not made twice."""
    return secrets.token_hex(4)
