"""A driver against a tiny store, through hundreds of steps that chance chooses.

Whatever happens in whatever order (jobs that end well or ill, leases that are taken
away, rows that are locked, a store that fails before or after its work, a stop at any
instant), the watcher's rules hold after each step, and in the end every job that was
received has been announced exactly once.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from .pump_play import Play


def played(seed: int, steps: int, after_stop: int, after_grace: int | None) -> Counter[str]:
    """Play one story to its end, and account for every job in it."""
    play = Play(seed)
    try:
        play.go_on(steps)
        play.stop()
        play.go_on(after_stop)
        if after_grace is not None:
            play.end_grace()
            play.go_on(after_grace)
        play.finish()
    except Exception as error:
        error.add_note(f"{play.options}\nthen: {', '.join(play.told)}")
        raise
    watcher = play.watcher
    assert sorted(watcher.announced) == sorted(watcher.received)
    assert len(set(watcher.executed)) == len(watcher.executed)
    return play.seen


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32),
    steps=st.integers(0, 400),
    after_stop=st.integers(0, 40),
    after_grace=st.none() | st.integers(0, 40),
)
def test_a_pump_keeps_its_rules_whatever_happens(
    seed: int, steps: int, after_stop: int, after_grace: int | None
) -> None:
    """Every rule of the watcher holds after every step; see the module docstring."""
    played(seed, steps, after_stop, after_grace)


def test_the_plays_are_worth_watching() -> None:
    """Each thing that the rules are about happens at least twenty times in 300 plays."""
    seen: Counter[str] = Counter()
    for seed in range(300):
        seen += played(seed, 300, after_stop=seed % 3, after_grace=seed % 8 or None)
    wanted = [
        "applied", "stale", "busy", "output too large", "claims", "claims after a stop",
        "claims after the grace", "jobs that came back beside their old attempt",
        "heartbeat: renewed", "heartbeat: lost", "heartbeat: busy",
        "heartbeat: renewed, cancellation requested", "failures of the store",
        "work done and its answer lost", "attempts that ended without their lease",
    ]  # fmt: skip
    assert {what: seen[what] for what in wanted if seen[what] < 20} == {}
