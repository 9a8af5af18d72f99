"""Chapter 9, observers: cursors over the transition log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import pytest

from ...core.errors import InvalidOption
from ...core.outcomes import Failed, Released, Succeeded
from ...core.states import TERMINAL_STATES, JobState
from ...storage.contract import JobStore
from ...storage.errors import StoreMisused
from ...storage.values import (
    DeliveryVerdict,
    DropDelivery,
    ObserverClaim,
    ObserverDefinition,
    ObserverState,
    RetryDelivery,
)
from .names import BAD_NAMES
from .scenario import (
    LEASE,
    OTHER_WORKER,
    START,
    WORKER,
    after,
    at_once,
    claimed_job,
    end,
    needs_history,
    running,
    stored,
)

APPLIED, STALE = DeliveryVerdict.APPLIED, DeliveryVerdict.STALE
ENDS = frozenset(TERMINAL_STATES)


def _observed(
    store: JobStore, states: Iterable[JobState] = tuple(JobState), name: str = "audit"
) -> None:
    needs_history(store)
    store.register_observer(ObserverDefinition(name, frozenset(states)))


def _claim(
    store: JobStore,
    now: datetime = START,
    worker: str = WORKER,
    most: int = 100,
    name: str = "audit",
) -> ObserverClaim | None:
    return store.claim_deliveries(name, worker, most, LEASE, now)


def _some(store: JobStore, now: datetime = START, most: int = 100) -> ObserverClaim:
    found = _claim(store, now, most=most)
    assert found is not None
    return found


def _seen(claimed: ObserverClaim | None) -> list[tuple[UUID, JobState]]:
    return [] if claimed is None else [(d.job_id, d.state) for d in claimed.deliveries]


def _deliver_all(store: JobStore, now: datetime = START) -> list[tuple[UUID, JobState]]:
    """Deliver whatever there is, in small portions."""
    seen: list[tuple[UUID, JobState]] = []
    while (claimed := _claim(store, now, most=2)) is not None:
        seen += _seen(claimed)
        through = claimed.deliveries[-1].position
        assert store.report_deliveries(claimed.lease, through, None, now) is APPLIED
    return seen


def _state(store: JobStore, name: str = "audit") -> ObserverState:
    return next(o for o in store.list_observers() if o.definition.name == name)


def test_9_1_each_step_is_delivered_in_order(store: JobStore) -> None:
    """With what it was, whose it was, and when."""
    _observed(store)
    lease = running(store)
    end(store, lease, Failed("boom", retry_at=after(5)), after(2))
    found = _some(store)
    assert [(d.ordinal, d.state, d.attempt, d.claim_number, d.at) for d in found.deliveries] == [
        (1, JobState.SCHEDULED, 0, 0, START),
        (2, JobState.LEASED, 1, 1, START),
        (3, JobState.SCHEDULED, 1, 1, after(2)),
    ]
    assert {(d.job_id, d.wire_name, d.queue) for d in found.deliveries} == {
        (lease.job_id, "send_mail", "mail")
    }
    positions = [d.position for d in found.deliveries]
    assert positions == sorted(set(positions))
    assert found.tries == 0


def test_9_1_a_new_observer_starts_now(store: JobStore) -> None:
    """What was before is never delivered; one that is registered again goes on."""
    old = running(store)
    _observed(store)
    assert _claim(store) is None
    end(store, old)
    assert _deliver_all(store) == [(old.job_id, JobState.SUCCEEDED)]
    new = stored(store)
    definition = ObserverDefinition("audit", frozenset({JobState.SCHEDULED}))
    assert store.register_observer(definition) is True
    assert store.register_observer(definition) is False
    assert _deliver_all(store) == [(new, JobState.SCHEDULED)]


def test_9_1_only_what_matches_is_delivered(store: JobStore) -> None:
    """States, types and queues join with AND; what does not match blocks nothing."""
    _observed(store, ENDS)
    picky = ObserverDefinition("picky", ENDS, frozenset({"a", "b"}), frozenset({"mail", "other"}))
    store.register_observer(picky)
    wanted = running(store, wire_name="a")
    others = [running(store, wire_name="A"), running(store, wire_name="b", queue="Mail")]
    for lease in (*others, wanted):
        end(store, lease)
    for _ in range(5):
        stored(store, wire_name="a", queue="idle")
    last = running(store, wire_name="b", queue="other")
    end(store, last, Failed("boom"))
    claimed = _claim(store, name="picky")
    assert _seen(claimed) == [
        (wanted.job_id, JobState.SUCCEEDED),
        (last.job_id, JobState.DEAD_LETTERED),
    ]
    assert len(_deliver_all(store)) == 4


def test_9_1_portions_follow_on_one_another(store: JobStore) -> None:
    """At most as many as asked, no step twice, none left out."""
    _observed(store)
    jobs = [running(store).job_id for _ in range(5)]
    steps = [(job_id, state) for job_id in jobs for state in (JobState.SCHEDULED, JobState.LEASED)]
    assert len(_seen(_claim(store, most=3))) == 3
    assert sorted(_deliver_all(store, after(61))) == sorted(steps)
    assert _claim(store, after(61)) is None
    assert _claim(store, after(61), most=0) is None


def test_9_1_an_observer_is_one_workers_at_a_time(store: JobStore) -> None:
    """Until it reports or its lease lapses; then the same is delivered again."""
    _observed(store)
    stored(store)
    first = _some(store)
    assert _claim(store, after(59), OTHER_WORKER) is None
    second = _claim(store, START + LEASE, OTHER_WORKER)
    assert _seen(second) == _seen(first)
    through = first.deliveries[-1].position
    assert store.report_deliveries(first.lease, through, None, after(61)) is STALE
    assert second is not None
    assert store.report_deliveries(second.lease, through, None, after(61)) is APPLIED
    assert store.report_deliveries(second.lease, through, None, after(61)) is STALE
    assert _claim(store, after(61)) is None


def test_9_1_a_report_lets_the_observer_go(store: JobStore) -> None:
    """Also where nothing was delivered, or a part of it."""
    _observed(store)
    for _ in range(3):
        stored(store)
    claimed = _some(store)
    assert store.report_deliveries(claimed.lease, None, None, START) is APPLIED
    claimed = _some(store)
    store.report_deliveries(claimed.lease, claimed.deliveries[0].position, None, START)
    assert _seen(_some(store)) == _seen(claimed)[1:]


def test_9_1_a_failed_delivery_is_tried_again(store: JobStore) -> None:
    """Not before its time; the tries are counted, until it succeeds."""
    _observed(store)
    for _ in range(2):
        stored(store)
    claimed = _some(store)
    for number in range(1, 3):
        retry = RetryDelivery(after(10 * number))
        store.report_deliveries(claimed.lease, None, retry, after(10 * number - 9))
        assert _claim(store, after(10 * number - 1)) is None
        again = _some(store, after(10 * number))
        assert (_seen(again), again.tries) == (_seen(claimed), number)
        claimed = again
    first, second = claimed.deliveries
    store.report_deliveries(claimed.lease, first.position, RetryDelivery(after(30)), after(21))
    last = _some(store, after(30))
    assert (last.deliveries, last.tries) == ((second,), 1)
    store.report_deliveries(last.lease, second.position, None, after(30))
    assert _state(store).tries == 0


def test_9_1_a_delivery_that_is_given_up_is_recorded_and_passed(store: JobStore) -> None:
    """The others go on; what was given up can be read with its cause."""
    _observed(store)
    for _ in range(3):
        stored(store)
    first, second, third = _some(store).deliveries
    claimed = _some(store, after(60))
    drop = DropDelivery("no such host")
    store.report_deliveries(claimed.lease, first.position, drop, after(61))
    rest = _some(store, after(61))
    assert (rest.deliveries, rest.tries) == ((third,), 0)
    (dead,) = store.dead_deliveries("audit")
    assert (dead.delivery, dead.cause, dead.failed_at) == (second, "no such host", after(61))
    store.report_deliveries(rest.lease, None, DropDelivery("boom"), after(62))
    assert [d.delivery for d in store.dead_deliveries("audit", after=dead.number)] == [third]
    assert len(store.dead_deliveries("audit", limit=1)) == 1
    assert store.dead_deliveries("nobody's") == []
    assert _state(store).dead == 2


def test_9_1_observers_do_not_know_one_another(store: JobStore) -> None:
    """Each has a cursor, a lease and tries of its own; removing one leaves the other."""
    _observed(store)
    _observed(store, name="other")
    stored(store)
    claimed = _some(store)
    store.report_deliveries(claimed.lease, None, DropDelivery("boom"), START)
    assert len(_seen(_claim(store, name="other"))) == 1
    assert store.remove_observer("audit") is True
    assert store.remove_observer("audit") is False
    assert store.dead_deliveries("audit") == []
    assert [o.definition.name for o in store.list_observers()] == ["other"]
    assert _claim(store) is None


def test_9_1_what_cannot_be_an_observer_is_refused(store: JobStore) -> None:
    """Bad names, no states, and instants that are not aware UTC."""
    for bad in (*BAD_NAMES, "o" * 129):
        with pytest.raises(InvalidOption):
            store.register_observer(ObserverDefinition(bad, ENDS))
    for fields in ({"wire_names": frozenset({" a"})}, {"queues": frozenset({""})}):
        with pytest.raises(InvalidOption):
            store.register_observer(ObserverDefinition("o", ENDS, **fields))
    with pytest.raises(InvalidOption):
        store.register_observer(ObserverDefinition("o", frozenset()))
    with pytest.raises(StoreMisused):
        _claim(store, START.replace(tzinfo=None))
    assert store.list_observers() == []


def test_9_2_what_is_committed_at_once_is_delivered_once(store: JobStore) -> None:
    """Many write while one observes: every step comes, each job's in its order."""
    if not store.capabilities.settles_log:
        pytest.skip("the store declares that it cannot tell how far its log is settled")
    _observed(store)

    def run(number: int) -> UUID:
        lease = running(store, queue=f"q{number}")
        end(store, lease, Released(started=True))
        end(store, claimed_job(store, lease.job_id).lease, Succeeded())
        return lease.job_id

    seen: list[tuple[UUID, JobState]] = []

    def observe() -> None:
        for _ in range(5):
            seen.extend(_deliver_all(store))

    *jobs, _ = at_once(store, *[partial(run, n) for n in range(3)], observe)
    seen += _deliver_all(store)
    for job_id in jobs:
        steps = [entry.state for entry in store.job_history(job_id)]
        assert [state for seen_id, state in seen if seen_id == job_id] == steps
    assert len(seen) == 15


def test_9_3_without_a_log_there_is_nothing_to_observe(store: JobStore) -> None:
    """An observer is refused where the policy is off, and accepted where it is not."""
    definition = ObserverDefinition("audit", ENDS)
    if store.history.value == "off":
        with pytest.raises(StoreMisused, match="off"):
            store.register_observer(definition)
    else:
        assert store.register_observer(definition) is True
    assert len(store.list_observers()) == (store.history.value != "off")


def test_9_4_lag_is_what_matches_behind_the_cursor(store: JobStore) -> None:
    """It counts down as deliveries succeed; a lease and a failure are shown."""
    _observed(store, {JobState.SCHEDULED})
    assert _state(store).lag == 0
    for _ in range(3):
        running(store)
    assert _state(store).lag == 3
    claimed = _some(store)
    held = _state(store)
    assert (held.lag, held.lease_owner, held.lease_expires_at) == (3, WORKER, START + LEASE)
    through = claimed.deliveries[0].position
    store.report_deliveries(claimed.lease, through, RetryDelivery(after(9)), START)
    found = _state(store)
    assert (found.lag, found.cursor, found.tries, found.not_before) == (2, through, 1, after(9))
    assert (found.lease_owner, found.lease_expires_at) == (None, None)
    assert (found.dead, found.lost) == (0, 0)


def _week_later(seconds: int = 0) -> datetime:
    return START + timedelta(days=7, seconds=seconds)


def test_9_5_what_was_not_delivered_is_not_purged(store: JobStore) -> None:
    """For a week; then it goes, and is counted as lost."""
    _observed(store, ENDS)
    lease = running(store)
    end(store, lease)
    everything = dict.fromkeys(TERMINAL_STATES, _week_later(99))
    assert store.purge(everything, 10, _week_later(-1)) == 0
    assert store.purge(everything, 10, _week_later()) == 1
    assert store.get_job(lease.job_id) is None
    assert (_state(store).lost, _state(store).lag) == (1, 0)
    assert _claim(store) is None


def test_9_5_what_was_delivered_goes(store: JobStore) -> None:
    """At once; nothing is lost then."""
    _observed(store, ENDS)
    end(store, running(store))
    everything = dict.fromkeys(TERMINAL_STATES, after(99))
    _deliver_all(store)
    assert store.purge(everything, 10, after(99)) == 1
    assert _state(store).lost == 0


def test_9_5_what_was_not_delivered_does_not_age_out(store: JobStore) -> None:
    """However many steps a job takes; after a week it is lost, and counted."""
    _observed(store)
    lease = running(store)
    steps = store.limits.max_transitions_per_job
    for number in range(steps // 2 + 2):
        end(store, lease, Released(started=True), after(number))
        lease = claimed_job(store, lease.job_id, after(number)).lease
    assert len(store.job_history(lease.job_id)) == steps
    assert _state(store).lag == steps + 6
    later = _week_later(steps)
    end(store, lease, Released(started=True), later)
    state = _state(store)
    assert state.lost > 0
    assert state.lag + state.lost == steps + 7
    assert len(store.job_history(lease.job_id)) == steps
