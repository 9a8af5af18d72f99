"""How the contract lets go of what has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from ...core.states import JobState


class RetainingStore(Protocol):
    """Keep, then purge."""

    def purge(
        self,
        before: Mapping[JobState, datetime],
        max_jobs: int,
        now: datetime,
        *,
        queues: Sequence[str] | None = None,
        but_queues: Sequence[str] = (),
    ) -> int:
        """Delete ended jobs, with all that hangs on them (8.3).

        Args:
            before: for each terminal state, the instant before which a job must have
                ended; jobs in a state that is left out stay.
            max_jobs: at most so many, clamped to ``MaxPurgeBatch``. A workflow goes as
                a whole, so the last one may exceed this.
            now: the instant; transitions that an observer has not had keep their job from
                going until they are a week old (9.5).
            queues: only jobs of these; ``None`` means all.
            but_queues: not jobs of these, for what no group serves any more.

        Returns:
            How many jobs are gone. Fewer than ``max_jobs`` does not mean that nothing
            is left: rows that others hold are passed by.

        Guarantees:
            A parent that a live job waits for stays (6.4). Sweeps at once share the
            work.
        """
        ...
