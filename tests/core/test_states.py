"""The table of legal moves: every state by every move, compared with rule 1.2."""

from __future__ import annotations

import pytest

from backwave_django.core.errors import IllegalTransition
from backwave_django.core.states import (
    LEGAL_STEPS,
    MOVES,
    TERMINAL_STATES,
    JobState,
    Move,
    moved,
)

S = JobState

# Rule 1.2, written out by hand.
LEGAL = {
    (None, Move.ENQUEUE): S.SCHEDULED,
    (None, Move.ENQUEUE_WAITING): S.AWAITING_PARENT,
    (None, Move.ENQUEUE_CANCELLED): S.CANCELLED,
    (S.AWAITING_PARENT, Move.RELEASE): S.SCHEDULED,
    (S.AWAITING_PARENT, Move.CANCEL): S.CANCELLED,
    (S.SCHEDULED, Move.CLAIM): S.LEASED,
    (S.SCHEDULED, Move.CANCEL): S.CANCELLED,
    (S.LEASED, Move.SUCCEED): S.SUCCEEDED,
    (S.LEASED, Move.RETRY): S.SCHEDULED,
    (S.LEASED, Move.HAND_BACK): S.SCHEDULED,
    (S.LEASED, Move.DEAD_LETTER): S.DEAD_LETTERED,
    (S.LEASED, Move.QUARANTINE): S.QUARANTINED,
    (S.LEASED, Move.CANCEL): S.CANCELLED,
    (S.DEAD_LETTERED, Move.REQUEUE): S.SCHEDULED,
    (S.QUARANTINED, Move.REQUEUE): S.SCHEDULED,
}
STEPS = {
    (None, S.SCHEDULED), (None, S.AWAITING_PARENT), (None, S.CANCELLED),
    (S.AWAITING_PARENT, S.SCHEDULED), (S.AWAITING_PARENT, S.CANCELLED),
    (S.SCHEDULED, S.LEASED), (S.SCHEDULED, S.CANCELLED),
    (S.LEASED, S.SUCCEEDED), (S.LEASED, S.SCHEDULED), (S.LEASED, S.DEAD_LETTERED),
    (S.LEASED, S.QUARANTINED), (S.LEASED, S.CANCELLED),
    (S.DEAD_LETTERED, S.SCHEDULED), (S.QUARANTINED, S.SCHEDULED),
}  # fmt: skip
EVERY = [(state, move) for state in (None, *JobState) for move in Move]


@pytest.mark.parametrize(("state", "move"), EVERY)
def test_every_state_takes_just_the_moves_of_the_rule(state: JobState | None, move: Move) -> None:
    """Each of the 96 pairs leads where the rule says, or is refused with both named."""
    if (state, move) in LEGAL:
        assert moved(state, move) is LEGAL[state, move]
        return
    with pytest.raises(IllegalTransition) as refusal:
        moved(state, move)
    assert refusal.value.facts == {"state": state, "move": move}
    before = "a job that does not exist" if state is None else f"a {state.label} job"
    assert str(refusal.value) == f"illegal move: {move.value} on {before}"


def test_the_steps_are_those_of_the_rule_and_no_others() -> None:
    """The pairs (state before, state after) are rule 1.2."""
    assert LEGAL_STEPS == STEPS


def test_the_table_has_a_row_for_every_state() -> None:
    """A state without moves stands in the table too, with an empty row."""
    assert set(MOVES) == {None, *JobState}
    assert not MOVES[S.SUCCEEDED]
    assert not MOVES[S.CANCELLED]


def test_every_move_is_used_and_leads_to_one_state() -> None:
    """A move means the same wherever it is legal."""
    for move in Move:
        assert len({target for (_, m), target in LEGAL.items() if m is move}) == 1
        assert any(move in moves for moves in MOVES.values())


def test_the_terminal_states_are_four() -> None:
    """Succeeded, Cancelled, Dead-Lettered and Quarantined are terminal, the rest live."""
    terminal = (S.SUCCEEDED, S.CANCELLED, S.DEAD_LETTERED, S.QUARANTINED)
    assert terminal == TERMINAL_STATES
    assert [state for state in S if not state.is_terminal] == [
        S.SCHEDULED, S.AWAITING_PARENT, S.LEASED,
    ]  # fmt: skip


def test_the_labels_are_the_canonical_spellings() -> None:
    """People read the spellings of the glossary."""
    assert [state.label for state in S] == [
        "Scheduled", "Awaiting Parent", "Leased", "Succeeded", "Cancelled", "Dead-Lettered",
        "Quarantined",
    ]  # fmt: skip


def test_the_stored_numbers_never_change() -> None:
    """The numbers are what databases hold."""
    assert {state.name: state.value for state in S} == {
        "SCHEDULED": 1, "AWAITING_PARENT": 2, "LEASED": 3, "SUCCEEDED": 4, "CANCELLED": 5,
        "DEAD_LETTERED": 6, "QUARANTINED": 7,
    }  # fmt: skip


def test_the_table_cannot_be_changed() -> None:
    """Nobody adds a row to the table by accident."""
    with pytest.raises(TypeError):
        MOVES[None] = {}  # type: ignore[index]
