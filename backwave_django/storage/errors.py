"""The two ways in which a database fails, and the refusals of the contract."""

from __future__ import annotations

from ..core.errors import BackwaveError


class StoreError(BackwaveError):
    """The database's side of a failure; ``__cause__`` holds the driver's own error."""


class StoreUnavailable(StoreError):
    """Transient: lost connection, deadlock, lock time-out. The same call may succeed later."""


class StoreRejected(StoreError):
    """Permanent: missing table, missing permission, broken constraint. Retrying is no help."""


class StoreMisused(StoreError, ValueError):
    """The caller broke a rule of the contract, such as a naive ``now``; nothing was done."""
