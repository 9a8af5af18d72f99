"""Dispatch policies: fixed priority, and smooth shares by weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import cycle
from typing import Any

import pytest

from backwave_django.core.dispatch import Dispatcher, QueueShare, Strict, Weighted
from backwave_django.core.errors import InvalidOption

WEIGHTS = {"a": 5, "b": 3, "c": 1}
PLENTY = 10**9


def fill(dispatcher: Dispatcher, ready: dict[str, int], max_jobs: int) -> Counter[str]:
    """Claim as a store does: shares first, leftovers in their order; tell the dispatcher."""
    shares = dispatcher.plan(max_jobs)
    taken: Counter[str] = Counter()
    for most in ({s.queue: s.most for s in shares}, dict.fromkeys(ready, max_jobs)):
        for share in shares:
            room = min(ready.get(share.queue, 0), max_jobs - taken.total())
            count = min(most.get(share.queue, 0), room)
            taken[share.queue] += count
            ready[share.queue] = ready.get(share.queue, 0) - count
    taken = +taken
    dispatcher.charge(taken, shares, max_jobs)
    return taken


def served(
    dispatcher: Dispatcher, ready: dict[str, int], total: int, sizes: Iterator[int]
) -> Counter[str]:
    """Claim until ``total`` jobs have come."""
    taken: Counter[str] = Counter()
    while taken.total() < total:
        taken += fill(dispatcher, ready, next(sizes))
    return taken


def points_off(taken: Counter[str], weights: Mapping[str, int]) -> float:
    """Give the largest distance, in percentage points, from the shares by weight."""
    whole = sum(weights.values())
    return max(
        abs(100 * taken[queue] / taken.total() - 100 * weight / whole)
        for queue, weight in weights.items()
    )


# -- strict ---------------------------------------------------------------------


def test_strict_asks_every_queue_for_all_in_order() -> None:
    """A later queue is asked for what the earlier ones leave over."""
    dispatcher = Dispatcher(Strict("high", "low"))
    assert dispatcher.plan(4) == (QueueShare("high", 4), QueueShare("low", 4))
    assert fill(dispatcher, {"high": 3, "low": 9}, 4) == {"high": 3, "low": 1}
    assert fill(dispatcher, {"high": 0, "low": 9}, 4) == {"low": 4}
    assert fill(dispatcher, {"high": 9, "low": 9}, 4) == {"high": 4}
    assert fill(dispatcher, {"high": 9, "low": 9}, 1) == {"high": 1}


@pytest.mark.parametrize(
    ("queues", "complaint"),
    [
        ((), "Strict needs at least one queue"),
        (("a", "b", "a"), "named twice"),
        (("",), "queue must not be empty"),
        ((" a",), "white space"),
        ((5,), "queue must be a str, not int"),
        ((["a", "b"],), "queue must be a str, not list"),
        (("q" * 129,), "queue has 129 characters"),
    ],
)
def test_a_wrong_strict_policy_is_refused(queues: Any, complaint: str) -> None:
    """The message says what is wrong with it."""
    with pytest.raises(InvalidOption, match=complaint):
        Strict(*queues)


# -- weighted -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "complaint"),
    [
        ({}, "Weighted needs a mapping"),
        (None, "Weighted needs a mapping"),
        ("emails", "Weighted needs a mapping"),
        ([("a", 1)], "Weighted needs a mapping"),
        ({"a": 0}, "weight of queue 'a' must be a whole number of at least 1, not 0"),
        ({"a": -1}, "weight of queue 'a'"),
        ({"a": 1.5}, "weight of queue 'a'"),
        ({"a": "3"}, "weight of queue 'a'"),
        ({"a": True}, "weight of queue 'a'"),
        ({"a": None}, "weight of queue 'a'"),
        ({"": 1}, "queue must not be empty"),
        ({5: 1}, "queue must be a str"),
    ],
)
def test_a_wrong_weighted_policy_is_refused(weights: Any, complaint: str) -> None:
    """The message says what is wrong with it."""
    with pytest.raises(InvalidOption, match=complaint):
        Weighted(weights)


def test_the_order_is_smooth() -> None:
    """The heavy queue's turns are spread, not given in one run."""
    dispatcher = Dispatcher(Weighted({"a": 5, "b": 1, "c": 1}))
    ready = dict.fromkeys("abc", PLENTY)
    turns = "".join(next(iter(fill(dispatcher, ready, 1))) for _ in range(14))
    assert turns == "aabacaa" * 2


def test_a_plan_names_every_queue_and_shares_all() -> None:
    """Queues without a share stand at the end, so that leftovers may go to them."""
    plan = Dispatcher(Weighted(WEIGHTS)).plan(2)
    assert [share.queue for share in plan][:2] == ["a", "b"]
    assert {share.queue for share in plan} == set(WEIGHTS)
    assert sum(share.most for share in plan) == 2


def test_planning_alone_changes_nothing() -> None:
    """A claim that fails on its way costs no queue its turn."""
    dispatcher = Dispatcher(Weighted(WEIGHTS))
    assert dispatcher.plan(7) == dispatcher.plan(7)
    dispatcher.charge({}, dispatcher.plan(7), 7)
    assert dispatcher.plan(7) == Dispatcher(Weighted(WEIGHTS)).plan(7)


@pytest.mark.parametrize("sizes", [[1], [2], [4], [9], [32], [1, 7, 2, 32, 3]], ids=str)
def test_busy_queues_share_by_weight(sizes: list[int]) -> None:
    """5 : 3 : 1 over 9,000 jobs within two points, one at a time and in batches."""
    taken = served(
        Dispatcher(Weighted(WEIGHTS)), dict.fromkeys(WEIGHTS, PLENTY), 9_000, cycle(sizes)
    )
    assert points_off(taken, WEIGHTS) < 2


@pytest.mark.parametrize("size", [1, 4, 32])
@pytest.mark.parametrize("busy", ["a", "b", "c"])
def test_a_queue_that_is_alone_gets_everything(busy: str, size: int) -> None:
    """Work conserving: no slot waits for a queue that is empty."""
    dispatcher = Dispatcher(Weighted(WEIGHTS))
    for _ in range(50):
        assert fill(dispatcher, {busy: PLENTY}, size) == {busy: size}


@pytest.mark.parametrize("size", [1, 2, 4, 9, 32])
@pytest.mark.parametrize("idle", ["a", "b", "c"])
def test_the_others_share_by_weight_while_one_is_idle(idle: str, size: int) -> None:
    """An empty queue's part goes to the others by their own weights."""
    others = {queue: weight for queue, weight in WEIGHTS.items() if queue != idle}
    taken = served(
        Dispatcher(Weighted(WEIGHTS)), dict.fromkeys(others, PLENTY), 9_000, cycle([size])
    )
    assert points_off(taken, others) < 2


def test_equals_stay_equal_beside_an_idle_heavy_queue() -> None:
    """Two queues of one weight get the same, slot by slot, however heavy the idle third is."""
    dispatcher = Dispatcher(Weighted({"idle": 100, "x": 1, "y": 1}))
    taken = served(dispatcher, {"x": PLENTY, "y": PLENTY}, 1_000, cycle([1]))
    assert abs(taken["x"] - taken["y"]) <= 20


@pytest.mark.parametrize("size", [1, 4, 32])
@pytest.mark.parametrize("idle", ["a", "b", "c"])
def test_an_idle_queue_saves_up_no_turns(idle: str, size: int) -> None:
    """When it has work again it gets its share, not what it missed."""
    dispatcher = Dispatcher(Weighted(WEIGHTS))
    ready = {queue: PLENTY for queue in WEIGHTS if queue != idle}
    served(dispatcher, ready, 5_000, cycle([size]))
    ready[idle] = PLENTY
    taken = served(dispatcher, ready, 288, cycle([size]))
    fair = 288 * WEIGHTS[idle] / 9
    assert abs(taken[idle] - fair) <= 9


def test_a_trickle_is_served_and_the_rest_is_shared() -> None:
    """A light queue with a job now and then never waits behind the heavy ones for long."""
    dispatcher = Dispatcher(Weighted(WEIGHTS))
    ready = {"a": PLENTY, "b": PLENTY}
    for _ in range(300):
        ready["c"] = 1
        for _ in range(18):
            fill(dispatcher, ready, 1)
        assert ready["c"] == 0


# -- values ---------------------------------------------------------------------


def test_policies_are_values() -> None:
    """Equal policies are equal, unequal ones are not, and both show how they are written."""
    assert Strict("a", "b") == Strict("a", "b")
    assert Strict("a", "b") != Strict("b", "a")
    assert Weighted({"a": 2}) == Weighted({"a": 2})
    assert Weighted({"a": 2}) != Weighted({"a": 3})
    assert Strict("a") != Weighted({"a": 1})
    assert Weighted({"a": 1}) != Strict("a")
    assert repr(Strict("a", "b")) == "Strict('a', 'b')"
    assert repr(Weighted({"a": 2})) == "Weighted({'a': 2})"
    assert Weighted({"b": 1, "a": 2}).queues == ("b", "a")
    assert hash(Strict("a")) == hash(Strict("a"))
    assert hash(Weighted({"a": 2})) == hash(Weighted({"a": 2}))


def test_equal_policies_have_equal_hashes() -> None:
    """Whatever counts for equality counts for the hash, the order of the queues too."""
    one, other = Weighted({"a": 1, "b": 2}), Weighted({"b": 2, "a": 1})
    assert one != other or hash(one) == hash(other)


def test_a_policy_keeps_nothing_of_the_callers_dict() -> None:
    """Changing the dict afterwards changes no policy."""
    weights = {"a": 1}
    policy = Weighted(weights)
    weights["a"] = 9
    assert policy.weights == {"a": 1}
