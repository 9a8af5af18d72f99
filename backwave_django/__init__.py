"""BackWave for Django: background jobs out of the database that you already have.

The public names are imported when they are first used, so that importing this package
needs no settings and loads no model.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import monitor as monitor
    from . import operations as operations
    from .client import OnAnyTerminal as OnAnyTerminal
    from .client import OnSuccess as OnSuccess
    from .client import aenqueue as aenqueue
    from .client import enqueue as enqueue
    from .client import enqueue_dependency as enqueue_dependency
    from .client import enqueue_many as enqueue_many
    from .core.dispatch import Strict as Strict
    from .core.dispatch import Weighted as Weighted
    from .core.retry import RetryPolicy as RetryPolicy
    from .core.states import JobState as JobState
    from .exceptions import BackwaveError as BackwaveError
    from .exceptions import ConfigurationError as ConfigurationError
    from .exceptions import DuplicateJob as DuplicateJob
    from .exceptions import EnqueueError as EnqueueError
    from .exceptions import InvalidOption as InvalidOption
    from .exceptions import InvalidPayload as InvalidPayload
    from .exceptions import OutputTooLarge as OutputTooLarge
    from .exceptions import PayloadTooLarge as PayloadTooLarge
    from .exceptions import StoreUnavailable as StoreUnavailable
    from .exceptions import TooManyParents as TooManyParents
    from .exceptions import UnknownParent as UnknownParent
    from .exceptions import WireNameTooLong as WireNameTooLong
    from .handlers.context import GiveUp as GiveUp
    from .handlers.context import JobCancelled as JobCancelled
    from .handlers.context import JobContext as JobContext
    from .handlers.context import RetryAfter as RetryAfter
    from .handlers.declare import handles as handles
    from .handlers.declare import job as job

_HOMES = {
    "client": ("OnAnyTerminal", "OnSuccess", "aenqueue", "enqueue", "enqueue_dependency",
               "enqueue_many"),
    "core.dispatch": ("Strict", "Weighted"),
    "core.retry": ("RetryPolicy",),
    "core.states": ("JobState",),
    "exceptions": ("BackwaveError", "ConfigurationError", "DuplicateJob", "EnqueueError",
                   "InvalidOption", "InvalidPayload", "OutputTooLarge", "PayloadTooLarge",
                   "StoreUnavailable", "TooManyParents", "UnknownParent", "WireNameTooLong"),
    "handlers.context": ("GiveUp", "JobCancelled", "JobContext", "RetryAfter"),
    "handlers.declare": ("handles", "job"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("monitor", "operations")

__all__ = sorted([*_HOME_OF, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME_OF:
        value = getattr(importlib.import_module(f".{_HOME_OF[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
