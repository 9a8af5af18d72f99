"""The states of a job and the table of its legal moves.

Theory. A job is always in exactly one state. It changes state only by a *move*, and a
move is legal only if ``MOVES`` holds it for the state that the job is in; a look-up
that misses *is* the error, and changes nothing. Three live states, four terminal ones.
``SUCCEEDED`` and ``CANCELLED`` are left by nothing; ``DEAD_LETTERED`` and
``QUARANTINED`` only by an operator's requeue.

Everything that says which move is legal stands in this file: the in-memory store walks
the table, the conformance suite compares every other store with it, and the diagram in
the docs is drawn from it.

The numbers are what is stored. They never change meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from types import MappingProxyType

from .errors import IllegalTransition


class JobState(IntEnum):
    """The state of a job; ``label`` is the spelling that people read."""

    SCHEDULED = 1
    AWAITING_PARENT = 2
    LEASED = 3
    SUCCEEDED = 4
    CANCELLED = 5
    DEAD_LETTERED = 6
    QUARANTINED = 7

    @property
    def label(self) -> str:
        """The canonical spelling for screens, such as ``Dead-Lettered``."""
        return _LABELS[self]

    @property
    def is_terminal(self) -> bool:
        """Whether no automatic path leaves this state."""
        return self >= JobState.SUCCEEDED


_LABELS = {
    JobState.SCHEDULED: "Scheduled",
    JobState.AWAITING_PARENT: "Awaiting Parent",
    JobState.LEASED: "Leased",
    JobState.SUCCEEDED: "Succeeded",
    JobState.CANCELLED: "Cancelled",
    JobState.DEAD_LETTERED: "Dead-Lettered",
    JobState.QUARANTINED: "Quarantined",
}

TERMINAL_STATES = tuple(state for state in JobState if state.is_terminal)
LIVE_STATES = tuple(state for state in JobState if not state.is_terminal)


class Move(Enum):
    """What can happen to a job; each names one row of the table."""

    ENQUEUE = "enqueue"
    ENQUEUE_WAITING = "enqueue waiting"
    ENQUEUE_CANCELLED = "enqueue cancelled"
    RELEASE = "release"
    CLAIM = "claim"
    SUCCEED = "succeed"
    RETRY = "retry"
    HAND_BACK = "hand back"
    DEAD_LETTER = "dead-letter"
    QUARANTINE = "quarantine"
    CANCEL = "cancel"
    REQUEUE = "requeue"


MOVES: Mapping[JobState | None, Mapping[Move, JobState]] = MappingProxyType(
    {
        None: {
            Move.ENQUEUE: JobState.SCHEDULED,
            Move.ENQUEUE_WAITING: JobState.AWAITING_PARENT,
            Move.ENQUEUE_CANCELLED: JobState.CANCELLED,
        },
        JobState.SCHEDULED: {
            Move.CLAIM: JobState.LEASED,
            Move.CANCEL: JobState.CANCELLED,
        },
        JobState.AWAITING_PARENT: {
            Move.RELEASE: JobState.SCHEDULED,
            Move.CANCEL: JobState.CANCELLED,
        },
        JobState.LEASED: {
            Move.SUCCEED: JobState.SUCCEEDED,
            Move.RETRY: JobState.SCHEDULED,
            Move.HAND_BACK: JobState.SCHEDULED,
            Move.DEAD_LETTER: JobState.DEAD_LETTERED,
            Move.QUARANTINE: JobState.QUARANTINED,
            Move.CANCEL: JobState.CANCELLED,
        },
        JobState.SUCCEEDED: {},
        JobState.CANCELLED: {},
        JobState.DEAD_LETTERED: {Move.REQUEUE: JobState.SCHEDULED},
        JobState.QUARANTINED: {Move.REQUEUE: JobState.SCHEDULED},
    }
)

REQUEUEABLE_STATES = tuple(s for s in JobState if Move.REQUEUE in MOVES[s])

LEGAL_STEPS = frozenset(
    (origin, target) for origin, moves in MOVES.items() for target in moves.values()
)
"""Every legal pair (state before, state after); ``None`` before means: not there yet."""


def moved(state: JobState | None, move: Move) -> JobState:
    """Give the state after ``move``.

    Raises:
        IllegalTransition: the table does not have this move for this state.
    """
    try:
        return MOVES[state][move]
    except KeyError:
        before = "a job that does not exist" if state is None else f"a {state.label} job"
        raise IllegalTransition(
            f"illegal move: {move.value} on {before}", state=state, move=move
        ) from None
