"""Dispatch: what every plan keeps, and shares by weight whatever the weights."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from backwave_django.core.dispatch import Dispatcher, QueueShare, Strict, Weighted

NAMES = ("a", "b", "c", "d", "e")
weights_of_queues = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 50), min_size=1)
policies = st.one_of(
    st.builds(lambda names: Strict(*names), st.permutations(NAMES)),
    st.builds(Weighted, weights_of_queues),
)


def fill(shares: tuple[QueueShare, ...], ready: dict[str, int], max_jobs: int) -> Counter[str]:
    """Take jobs as a store does: the shares first, what is left over in the same order."""
    taken: Counter[str] = Counter()
    for share in shares:
        room = max_jobs - taken.total()
        taken[share.queue] += min(share.most, ready.get(share.queue, 0), room)
    for share in shares:
        rest = ready.get(share.queue, 0) - taken[share.queue]
        taken[share.queue] += min(rest, max_jobs - taken.total())
    for queue, count in taken.items():
        ready[queue] = ready.get(queue, 0) - count
    return +taken


@given(
    policy=policies,
    claims=st.lists(
        st.tuples(st.integers(1, 40), st.dictionaries(st.sampled_from(NAMES), st.integers(0, 40))),
        max_size=30,
    ),
)
def test_a_plan_names_each_queue_once_and_no_slot_stays_free(
    policy: Strict | Weighted, claims: list[tuple[int, dict[str, int]]]
) -> None:
    """Whatever came before: every queue is named, all slots are given out, none twice."""
    dispatcher = Dispatcher(policy)
    ready: dict[str, int] = {}
    for max_jobs, arrivals in claims:
        for queue, count in arrivals.items():
            ready[queue] = ready.get(queue, 0) + count
        served = {queue: ready.get(queue, 0) for queue in policy.queues}
        shares = dispatcher.plan(max_jobs)
        assert sorted(share.queue for share in shares) == sorted(policy.queues)
        assert all(0 <= share.most <= max_jobs for share in shares)
        assert sum(share.most for share in shares) >= max_jobs
        offered = sum(served.values())
        taken = fill(shares, served, max_jobs)
        assert taken.total() == min(max_jobs, offered)
        for queue, count in taken.items():
            ready[queue] -= count
        dispatcher.charge(taken, shares, max_jobs)


@settings(max_examples=40)
@given(weights=weights_of_queues, sizes=st.lists(st.integers(1, 32), min_size=1, max_size=5))
def test_busy_queues_get_their_shares_to_within_a_turn_each(
    weights: dict[str, int], sizes: list[int]
) -> None:
    """After any number of jobs no queue is further from its share than the batch allows."""
    dispatcher = Dispatcher(Weighted(weights))
    taken: Counter[str] = Counter()
    whole = sum(weights.values())
    for turn in range(200):
        max_jobs = sizes[turn % len(sizes)]
        shares = dispatcher.plan(max_jobs)
        ready = dict.fromkeys(weights, 10**6)
        came = fill(shares, ready, max_jobs)
        dispatcher.charge(came, shares, max_jobs)
        taken += came
        for queue, weight in weights.items():
            assert abs(taken[queue] - taken.total() * weight / whole) <= len(weights)


@settings(max_examples=40)
@given(weights=weights_of_queues, size=st.integers(1, 32), idle_claims=st.integers(1, 300))
def test_a_queue_that_wakes_has_saved_up_nothing(
    weights: dict[str, int], size: int, idle_claims: int
) -> None:
    """Its first turns are no more than its share of them, a batch more or less."""
    awake = dict.fromkeys(weights, 10**6)
    sleeper = max(weights)
    dispatcher = Dispatcher(Weighted(weights))
    for _ in range(idle_claims):
        shares = dispatcher.plan(size)
        came = fill(shares, {**awake, sleeper: 0}, size)
        dispatcher.charge(came, shares, size)
    taken: Counter[str] = Counter()
    for _ in range(20):
        shares = dispatcher.plan(size)
        came = fill(shares, dict(awake), size)
        dispatcher.charge(came, shares, size)
        taken += came
    share = taken.total() * weights[sleeper] / sum(weights.values())
    assert taken[sleeper] <= share + size + len(weights)


@given(policy=policies, max_jobs=st.integers(1, 40))
def test_planning_is_repeatable(policy: Strict | Weighted, max_jobs: int) -> None:
    """Two dispatchers that saw the same plan the same; a plan alone changes nothing."""
    dispatcher = Dispatcher(policy)
    assert dispatcher.plan(max_jobs) == dispatcher.plan(max_jobs)
    assert dispatcher.plan(max_jobs) == Dispatcher(policy).plan(max_jobs)
