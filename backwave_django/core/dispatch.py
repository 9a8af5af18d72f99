"""Dispatch: which queues a claim asks for, in which order, and how many of each.

Both policies are work-conserving: what one queue does not fill, the others may. The
policy says the shares of one claim; the store fills them first and gives what is left
in the order of the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .errors import InvalidOption
from .text import QUEUE_NAME_MAX, check_name


class QueueShare(NamedTuple):
    """One queue in a claim, and the most that the first pass takes from it."""

    queue: str
    most: int


class Strict:
    """Fixed priority: a queue is asked only for what those before it left over."""

    __slots__ = ("queues",)

    def __init__(self, *queues: str) -> None:
        if not queues:
            raise InvalidOption("Strict needs at least one queue, such as Strict('default')")
        self.queues = _distinct(queues)

    def __repr__(self) -> str:
        return f"Strict({', '.join(map(repr, self.queues))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Strict) and other.queues == self.queues

    def __hash__(self) -> int:
        return hash(self.queues)


class Weighted:
    """Smooth weighted round-robin: queues share by weight while all have work."""

    __slots__ = ("weights",)

    def __init__(self, weights: Mapping[str, int]) -> None:
        if not isinstance(weights, Mapping) or not weights:
            raise InvalidOption("Weighted needs a mapping such as Weighted({'emails': 3})")
        _distinct(tuple(weights))
        for queue, weight in weights.items():
            if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
                raise InvalidOption(
                    f"the weight of queue {queue!r} must be a whole number of at least 1, "
                    f"not {weight!r}",
                    queue=queue,
                )
        self.weights = dict(weights)

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues, in the order in which they were written."""
        return tuple(self.weights)

    def __repr__(self) -> str:
        return f"Weighted({self.weights!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weighted) and other.weights == self.weights

    def __hash__(self) -> int:
        return hash(frozenset(self.weights.items()))


DispatchPolicy = Strict | Weighted


def _distinct(queues: tuple[str, ...]) -> tuple[str, ...]:
    for queue in queues:
        check_name("queue", queue, QUEUE_NAME_MAX)
    if len(set(queues)) < len(queues):
        raise InvalidOption(f"a queue is named twice in {queues!r}", queues=queues)
    return queues


class Dispatcher:
    """One pump's place in its policy: plans each claim and learns what it brought.

    A queue that was found empty is *idle*: it takes no part in the sharing, and saves up
    no turns, but each claim asks it first, so that it is back with its first job.
    """

    def __init__(self, policy: DispatchPolicy) -> None:
        self.policy = policy
        self._credit = dict.fromkeys(policy.queues, 0)
        self._idle: set[str] = set()

    def plan(self, max_jobs: int) -> tuple[QueueShare, ...]:
        """Give the shares of a claim of ``max_jobs``, in the order to fill them."""
        if isinstance(self.policy, Strict):
            return tuple(QueueShare(queue, max_jobs) for queue in self.policy.queues)
        weights = self.policy.weights
        whole = self._quotas(max_jobs, weights)
        probes = [
            QueueShare(queue, max(1, whole.get(queue, 0)))
            for queue in weights
            if queue in self._idle
        ]
        busy = {queue: weight for queue, weight in weights.items() if queue not in self._idle}
        quotas = self._quotas(max_jobs, busy)
        rest = [queue for queue in busy if queue not in quotas]
        return (
            *probes,
            *(QueueShare(queue, most) for queue, most in quotas.items()),
            *(QueueShare(queue, 0) for queue in rest),
        )

    def _quotas(self, count: int, weights: Mapping[str, int]) -> dict[str, int]:
        """Share ``count`` turns, going on from the credit of each queue."""
        credit = {queue: self._credit[queue] for queue in weights}
        quotas: dict[str, int] = {}
        for _ in range(count if weights else 0):
            queue = _picked(credit, weights)
            quotas[queue] = quotas.get(queue, 0) + 1
        return quotas

    def charge(
        self, taken: Mapping[str, int], shares: tuple[QueueShare, ...], max_jobs: int
    ) -> None:
        """Learn what a claim brought: who is idle, and who has had which turns."""
        if isinstance(self.policy, Strict):
            return
        weights = self.policy.weights
        room = max_jobs
        for queue, most in shares:
            asked = min(most, room)
            found = taken.get(queue, 0)
            if found < asked or (found == 0 and sum(taken.values()) < max_jobs):
                self._idle.add(queue)
            elif found:
                self._idle.discard(queue)
            room -= min(asked, found)
        sharing = [queue for queue in weights if queue not in self._idle]
        turn = sum(weights[queue] for queue in sharing)
        turns = sum(taken.get(queue, 0) for queue in sharing)
        bound = sum(weights.values())
        for queue in sharing:
            # What smooth weighted round-robin gives and takes over that many turns.
            credit = self._credit[queue] + turns * weights[queue] - taken.get(queue, 0) * turn
            self._credit[queue] = max(-bound, min(bound, credit))


def _picked(credit: dict[str, int], weights: Mapping[str, int]) -> str:
    """Take one turn of smooth weighted round-robin, changing ``credit``."""
    for queue, weight in weights.items():
        credit[queue] += weight
    chosen = max(weights, key=lambda queue: credit[queue])  # the first of equals
    credit[chosen] -= sum(weights.values())
    return chosen
