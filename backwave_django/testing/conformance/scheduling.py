"""Chapter 7, recurring schedules: definitions, minting, skipped ticks, triggers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from ...core.errors import InvalidOption
from ...core.schedules import CatchUp, SkipReason
from ...core.states import JobState
from ...core.tags import Tag
from ...storage.contract import JobStore
from ...storage.errors import StoreMisused
from ...storage.values import (
    AuditAction,
    JobFilter,
    Mint,
    MintDecision,
    Minted,
    Schedule,
    ScheduleDefinition,
    SkippedTick,
    TriggerResult,
    UpsertResult,
)
from .names import BAD_NAMES
from .scenario import (
    START,
    after,
    at_once,
    claim,
    claimed_job,
    end,
    ids_of,
    new_id,
    new_job,
    snapshot,
    stored,
    view,
)

CREATED, CHANGED, UNCHANGED = (
    UpsertResult.CREATED,
    UpsertResult.CHANGED,
    UpsertResult.UNCHANGED,
)


def _definition(**changes: Any) -> ScheduleDefinition:
    fields: dict[str, Any] = {
        "schedule_id": "nightly",
        "cron": "0 30 2 * * *",
        "wire_name": "close_books",
        "payload": b'{"kind": "daily"}',
        "queue": "reports",
    }
    return ScheduleDefinition(**(fields | changes))


def _defined(store: JobStore, now: datetime = START, **changes: Any) -> str:
    definition = _definition(**changes)
    store.upsert_schedule(definition, now)
    return definition.schedule_id


def _one(store: JobStore, schedule_id: str = "nightly") -> Schedule:
    return next(s for s in store.list_schedules() if s.definition.schedule_id == schedule_id)


def _decision(
    *ticks: int, since: datetime = START, until: int = 0, missed: Sequence[int] = (), of: str = ""
) -> MintDecision:
    """Decide to mint ticks that lie so many seconds after the start."""
    return MintDecision(
        of or "nightly",
        since,
        after(until or max([*ticks, *missed])),
        tuple(Mint(after(tick), new_id()) for tick in ticks),
        tuple(after(tick) for tick in missed),
    )


def _mint(store: JobStore, decision: MintDecision, now: datetime | None = None) -> Minted:
    (answer,) = store.mint_due([decision], now or decision.new_cursor)
    return answer


def _jobs_of(store: JobStore, schedule_id: str = "nightly") -> list[UUID]:
    return [job.job_id for job in store.list_jobs(JobFilter(schedule_id=schedule_id))]


def test_7_1_a_definition_is_kept_as_it_is(store: JobStore) -> None:
    """Every field of it, any text and any bytes; its cursor is the instant of the call."""
    definition = _definition(
        schedule_id="Nächtlich é",
        time_zone="Europe/Berlin",
        payload=bytes(range(256)),
        tags=(Tag(None, "a:b"), Tag("tenant", "ácme"), Tag("tenant", "b")),
        catch_up=CatchUp.COALESCE,
        no_overlap=True,
        enabled=False,
    )
    assert store.upsert_schedule(definition, after(1)) is CREATED
    assert store.list_schedules() == [Schedule(definition, after(1), after(1))]
    plain = _definition()
    assert store.upsert_schedule(plain, after(2)) is CREATED
    assert _one(store) == Schedule(plain, after(2), after(2))


def test_7_1_redefining_keeps_the_cursor(store: JobStore) -> None:
    """Whatever changes but the expression and the zone; an equal definition is no change."""
    _defined(store)
    assert store.upsert_schedule(_definition(), after(1)) is UNCHANGED
    assert _one(store).defined_at == START
    changes: list[dict[str, Any]] = [
        {"wire_name": "other"},
        {"payload": b"{}"},
        {"queue": "other"},
        {"tags": (Tag(None, "t"),)},
        {"catch_up": CatchUp.COALESCE},
        {"no_overlap": True},
        {"enabled": False},
    ]
    for second, change in enumerate(changes, start=2):
        assert store.upsert_schedule(_definition(**change), after(second)) is CHANGED
        expected = Schedule(_definition(**change), START, after(second))
        assert _one(store) == expected


def test_7_1_other_ticks_begin_now(store: JobStore) -> None:
    """A new expression, a new zone, and a schedule that is switched on again."""
    _defined(store)
    _defined(store, after(10), cron="0 0 3 * * *")
    assert _one(store).cursor == after(10)
    _defined(store, after(20), cron="0 0 3 * * *", time_zone="Asia/Tokyo")
    assert _one(store).cursor == after(20)
    _defined(store, after(30), cron="0 0 3 * * *", time_zone="Asia/Tokyo", enabled=False)
    assert _one(store).cursor == after(20)
    _defined(store, after(40), cron="0 0 3 * * *", time_zone="Asia/Tokyo")
    assert _one(store).cursor == after(40)


def test_7_1_removing_leaves_its_jobs_alone(store: JobStore) -> None:
    """They go on; what it skipped goes with it, and it is new when it is defined again."""
    _defined(store)
    (job_id,) = _mint(store, _decision(10, missed=(5,))).job_ids
    before = view(store, job_id)
    assert store.remove_schedule("nightly") is True
    assert store.remove_schedule("nightly") is False
    assert store.list_schedules() == []
    assert view(store, job_id) == before
    _defined(store, after(60))
    assert _one(store).cursor == after(60)
    assert store.skipped_ticks("nightly") == []


def test_7_1_schedules_are_listed_by_id_in_pages(store: JobStore) -> None:
    """In code-point order; ids that differ in case or accent alone are two."""
    ids = ["a", "B", "á", "b", "A", "é", "aa"]
    for schedule_id in ids:
        assert store.upsert_schedule(_definition(schedule_id=schedule_id), START) is CREATED
    walk: list[str] = []
    while page := store.list_schedules(after=walk[-1] if walk else None, limit=3):
        assert len(page) <= 3
        walk += [schedule.definition.schedule_id for schedule in page]
    assert walk == sorted(ids)
    assert store.list_schedules(limit=-1) == []


def test_7_1_what_cannot_be_stored_is_refused(store: JobStore) -> None:
    """Bad names raise, over-limit payloads and wire names are answered; nothing is kept."""
    for bad in (*BAD_NAMES, "s" * 129):
        for field in ("schedule_id", "queue"):
            with pytest.raises(InvalidOption):
                store.upsert_schedule(_definition(**{field: bad}), START)
        with pytest.raises(InvalidOption):
            store.remove_schedule(bad)
    for changes in ({"cron": ""}, {"cron": "x" * 256}, {"time_zone": ""}, {"wire_name": " a"}):
        with pytest.raises(InvalidOption):
            store.upsert_schedule(_definition(**changes), START)
    with pytest.raises(InvalidOption):
        store.upsert_schedule(_definition(tags=(Tag(None, "t"), Tag(None, "t"))), START)
    large = _definition(payload=b"x" * (store.limits.max_payload_bytes + 1))
    assert store.upsert_schedule(large, START) is UpsertResult.PAYLOAD_TOO_LARGE
    long = _definition(wire_name="w" * (store.limits.max_wire_name_length + 1))
    assert store.upsert_schedule(long, START) is UpsertResult.WIRE_NAME_TOO_LONG
    with pytest.raises(StoreMisused):
        store.upsert_schedule(_definition(), START.replace(tzinfo=None))
    assert store.list_schedules() == []


def test_7_1_one_definition_at_once_wins(store: JobStore) -> None:
    """Whoever comes first creates it; no caller meets an error."""
    calls = [partial(store.upsert_schedule, _definition(queue=f"q{n}"), START) for n in range(3)]
    answers = at_once(store, *calls)
    assert sorted(answer.name for answer in answers) == ["CHANGED", "CHANGED", "CREATED"]
    assert len(store.list_schedules()) == 1


def test_7_2_a_tick_mints_a_job(store: JobStore) -> None:
    """Of the template, due at its tick, with both; the cursor moves on."""
    _defined(store, tags=(Tag("kind", "daily"),))
    decision = _decision(10, 20, until=25)
    assert _mint(store, decision, after(30)) == Minted(
        True, tuple(m.job_id for m in decision.mints)
    )
    assert _one(store).cursor == after(25)
    for tick, job_id in decision.mints:
        found = snapshot(store, job_id)
        assert (found.wire_name, found.queue, found.state) == (
            "close_books",
            "reports",
            JobState.SCHEDULED,
        )
        assert (found.schedule_id, found.tick, found.due_time) == ("nightly", tick, tick)
        assert (found.attempt, found.enqueued_at) == (0, after(30))
        assert store.job_payload(job_id) == b'{"kind": "daily"}'
        assert store.job_tags(job_id) == [Tag("kind", "daily")]
    job = claimed_job(store, decision.mints[0].job_id, after(30))
    assert (job.schedule_id, job.tick) == ("nightly", after(10))


def test_7_2_a_decision_from_an_old_cursor_is_skipped_whole(store: JobStore) -> None:
    """It mints nothing, records nothing, and moves nothing."""
    _defined(store)
    _mint(store, _decision(10))
    before = _one(store)
    for late in (_decision(10), _decision(20, missed=(5,)), _decision(20, since=after(9))):
        assert _mint(store, late) == Minted(False)
    assert _one(store) == before
    assert len(_jobs_of(store)) == 1
    assert store.skipped_ticks("nightly") == []
    assert _mint(store, _decision(20, since=after(10))).applied


def test_7_2_many_nodes_mint_a_tick_once(store: JobStore) -> None:
    """All decide the same at once; one of them is heard."""
    _defined(store)
    since = START
    for tick in (10, 20, 30):
        calls = [
            partial(store.mint_due, [_decision(tick, since=since)], after(tick)) for _ in range(3)
        ]
        answers = [answer for (answer,) in at_once(store, *calls)]
        assert sum(answer.applied for answer in answers) == 1
        since = after(tick)
    assert len(_jobs_of(store)) == 3


def test_7_2_a_schedule_that_is_gone_or_disabled_mints_nothing(store: JobStore) -> None:
    """And holds up none of the others of the batch."""
    _defined(store)
    _defined(store, schedule_id="off", enabled=False)
    decisions = [_decision(10, of="gone"), _decision(10, of="off"), _decision(10)]
    answers = store.mint_due(decisions, after(10))
    assert [answer.applied for answer in answers] == [False, False, True]
    assert len(store.list_jobs(JobFilter())) == 1
    assert _one(store, "off").cursor == START
    assert list(store.mint_due([], START)) == []


def test_7_2_the_template_of_the_moment_is_minted(store: JobStore) -> None:
    """A redefinition between decision and minting holds."""
    _defined(store)
    decision = _decision(10)
    _defined(store, after(5), queue="other")
    (job_id,) = _mint(store, decision).job_ids
    assert snapshot(store, job_id).queue == "other"


def test_7_2_an_id_that_is_taken_mints_nothing(store: JobStore) -> None:
    """The job that has it stays as it is."""
    _defined(store)
    decision = _decision(10, 20)
    taken = decision.mints[0].job_id
    store.enqueue(new_job(job_id=taken), START)
    before = view(store, taken)
    assert _mint(store, decision) == Minted(True, (decision.mints[1].job_id,))
    assert view(store, taken) == before


def test_7_2_a_decision_must_be_about_its_own_time(store: JobStore) -> None:
    """Forwards, with ticks between the cursors, all of them aware UTC."""
    _defined(store)
    naive = after(5).replace(tzinfo=None)
    for bad in (
        MintDecision("nightly", START, START),
        MintDecision("nightly", after(5), START),
        _decision(10, until=5),
        _decision(0, until=5),
        _decision(missed=(10,), until=5),
        MintDecision("nightly", START, naive),
        MintDecision("nightly", START, after(9), (Mint(naive, new_id()),)),
    ):
        with pytest.raises(StoreMisused):
            store.mint_due([bad], after(10))
    assert _one(store).cursor == START


def test_7_2_with_no_overlap_one_job_lives_at_a_time(store: JobStore) -> None:
    """Scheduled, leased or waiting for a retry, it keeps the next tick from minting."""
    _defined(store, no_overlap=True)
    first = _decision(10, 20)
    assert _mint(store, first) == Minted(True, (first.mints[0].job_id,))
    lease = claimed_job(store, first.mints[0].job_id, after(20)).lease
    assert _mint(store, _decision(30, since=after(20))) == Minted(True)
    end(store, lease, now=after(31))
    fourth = _decision(40, since=after(30))
    assert _mint(store, fourth) == Minted(True, (fourth.mints[0].job_id,))
    overlaps = [(skipped.tick, skipped.reason) for skipped in store.skipped_ticks("nightly")]
    assert overlaps == [(after(30), SkipReason.OVERLAP), (after(20), SkipReason.OVERLAP)]


def test_7_2_overlap_is_a_matter_of_one_schedule(store: JobStore) -> None:
    """Jobs of others, and of none, are in nobody's way."""
    _defined(store, no_overlap=True)
    _defined(store, schedule_id="other")
    _mint(store, _decision(10, of="other"))
    stored(store, wire_name="close_books", queue="reports")
    assert len(_mint(store, _decision(10)).job_ids) == 1


def test_7_3_a_skipped_tick_is_recorded_with_its_reason(store: JobStore) -> None:
    """The newest first, with the instant of the decision."""
    _defined(store, no_overlap=True)
    _mint(store, _decision(30, 40, missed=(10, 20)), after(50))
    assert store.skipped_ticks("nightly") == [
        SkippedTick(after(40), SkipReason.OVERLAP, after(50)),
        SkippedTick(after(20), SkipReason.MISSED, after(50)),
        SkippedTick(after(10), SkipReason.MISSED, after(50)),
    ]
    assert store.skipped_ticks("nobody's") == store.skipped_ticks("a\x00") == []


def test_7_3_the_newest_are_kept(store: JobStore) -> None:
    """Over many decisions, and from one that has too many; of this schedule alone."""
    most = store.limits.max_recorded_skipped_ticks
    _defined(store)
    _defined(store, schedule_id="other")
    _mint(store, _decision(missed=(1,), of="other"))
    _mint(store, _decision(missed=range(1, most + 6)))
    newest = most + 5
    for tick in range(newest + 1, newest + 4):
        _mint(store, _decision(missed=(tick,), since=after(tick - 1)))
    ticks = [skipped.tick for skipped in store.skipped_ticks("nightly")]
    assert ticks == [after(tick) for tick in range(newest + 3, newest + 3 - most, -1)]
    assert len(store.skipped_ticks("other")) == 1


def test_7_4_a_trigger_mints_one_job_now(store: JobStore) -> None:
    """Without a tick; it moves no cursor, and is audited."""
    _defined(store)
    job_id = new_id()
    answer = store.trigger_schedule_now("nightly", job_id, "anna", after(7))
    assert answer is TriggerResult.TRIGGERED
    found = snapshot(store, job_id)
    assert (found.schedule_id, found.tick, found.due_time) == ("nightly", None, after(7))
    assert ids_of(claim(store, "reports", now=after(7))) == [job_id]
    assert _one(store).cursor == START
    (record,) = store.list_audit(target="nightly")
    assert record[1:] == (after(7), "anna", AuditAction.TRIGGER_SCHEDULE, "nightly", str(job_id))


def test_7_4_nothing_keeps_a_trigger_from_minting(store: JobStore) -> None:
    """Neither no-overlap nor a disabled schedule; its job counts as one of the schedule."""
    _defined(store, no_overlap=True)
    for _ in range(2):
        answer = store.trigger_schedule_now("nightly", new_id(), None, START)
        assert answer is TriggerResult.TRIGGERED
    assert _mint(store, _decision(10)) == Minted(True)
    _defined(store, enabled=False)
    answer = store.trigger_schedule_now("nightly", new_id(), None, START)
    assert answer is TriggerResult.TRIGGERED
    assert len(_jobs_of(store)) == 3


def test_7_4_what_cannot_be_triggered_leaves_no_trace(store: JobStore) -> None:
    """An unknown schedule, an id that is taken, an actor that is no name."""
    _defined(store)
    taken = stored(store)
    for name in ("gone", "a\x00"):
        answer = store.trigger_schedule_now(name, new_id(), None, START)
        assert answer is TriggerResult.NOT_FOUND
    answer = store.trigger_schedule_now("nightly", taken, None, START)
    assert answer is TriggerResult.DUPLICATE
    with pytest.raises(InvalidOption):
        store.trigger_schedule_now("nightly", new_id(), " anna", START)
    assert _jobs_of(store) == []
    assert store.list_audit() == []
