"""What the hand-written SQL of the dialects shares: names of tables, numbers of states.

States stand in the SQL as literals, so that the partial indexes apply whatever the
planner knows of a parameter. Nothing that a user wrote is ever put into SQL text.
"""

from __future__ import annotations

from ...core.states import JobState
from ...models import Dependency, Job, JobContent, JobTag, Queue, QueueGate, Transition

NAMES = {
    "job": Job._meta.db_table,
    "content": JobContent._meta.db_table,
    "tag": JobTag._meta.db_table,
    "transition": Transition._meta.db_table,
    "dependency": Dependency._meta.db_table,
    "queue": Queue._meta.db_table,
    "gate": QueueGate._meta.db_table,
    "SCHEDULED": JobState.SCHEDULED.value,
    "LEASED": JobState.LEASED.value,
    "CANCELLED": JobState.CANCELLED.value,
    "FIRST_TERMINAL": JobState.SUCCEEDED.value,
}


def sql(text: str) -> str:
    """Fill the names of tables and states into ``text``, written as ``{job}``."""
    return text.format_map(NAMES)
