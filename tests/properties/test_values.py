"""Instants, texts, tags, retries: what holds for every value there is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from backwave_django.core.errors import InvalidOption
from backwave_django.core.instants import from_micros, to_micros
from backwave_django.core.retry import LONGEST_DELAY, RetryPolicy, default_backoff
from backwave_django.core.tags import Tag, TagLike, tag_set
from backwave_django.core.text import (
    TERMINAL_CAUSE_MAX,
    check_name,
    storable_cause,
    storable_detail,
    visible,
)

MARK = "\n[... cut ...]\n"
any_text = st.text(st.characters(exclude_categories=()))
long_text = st.builds(lambda text, times: text * times, any_text, st.integers(1, 60))
offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
tags = st.sampled_from(["a", "b", "a:b", ("a", "b"), ("a", "c"), Tag(None, "a"), Tag("a", "b")])


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_instant_survives_the_way_to_microseconds_and_back(instant: datetime) -> None:
    """Nothing is rounded, from the first instant of the calendar to the last."""
    assert from_micros(to_micros(instant)) == instant


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=offsets),  # noqa: DTZ001
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=offsets),  # noqa: DTZ001
)
def test_microseconds_stand_in_the_order_of_their_instants(one: datetime, other: datetime) -> None:
    """Whatever the zones, and equal where the instants are."""
    assert (to_micros(one) < to_micros(other)) == (one < other)
    assert (to_micros(one) == to_micros(other)) == (one == other)


@given(long_text, st.integers(1, 400))
def test_a_detail_never_exceeds_its_bytes_and_never_splits_a_code_point(
    text: str, bytes_max: int
) -> None:
    """What is stored is valid text of at most so many bytes, made of the two ends."""
    detail = storable_detail(text, bytes_max)
    assert len(detail.encode()) <= bytes_max
    assert "\x00" not in detail
    shown = visible(text)
    if len(shown.encode()) <= bytes_max:
        assert detail == shown
        return
    head, mark, tail = detail.partition(MARK)
    if bytes_max >= len(MARK) + 8 and MARK not in shown:
        assert mark
        assert shown.startswith(head)
        assert shown.endswith(tail)
        assert len(detail.encode()) >= bytes_max - 6
    elif MARK not in shown:
        assert shown.startswith(detail)


@given(long_text)
def test_a_cause_never_exceeds_its_code_points(text: str) -> None:
    """And it can be encoded, whatever the text held."""
    cause = storable_cause(text)
    assert len(cause) <= TERMINAL_CAUSE_MAX
    assert cause.encode().decode() == cause
    assert cause == visible(text) or cause.endswith("…")


@given(any_text)
def test_a_name_is_taken_as_it_is_or_refused(text: str) -> None:
    """Never changed; what is taken can be stored and has no white space at an end."""
    try:
        name = check_name("queue", text, 20)
    except InvalidOption as refusal:
        complaint = str(refusal).encode().decode()
    else:
        complaint = ""
        assert name == text
    sound = 1 <= len(text) <= 20 and text == text.strip() and text == visible(text)
    assert sound == (not complaint)


@given(st.lists(st.lists(tags)))
def test_tags_are_a_set_in_first_seen_order(groups: list[list[TagLike]]) -> None:
    """Each tag once, at the place where it was first seen; joining again changes nothing."""
    joined = tag_set(*groups)
    flat = [tag for group in groups for tag in group]
    as_tags = [tag if isinstance(tag, tuple) else (None, tag) for tag in flat]
    assert list(joined) == [tag for n, tag in enumerate(as_tags) if tag not in as_tags[:n]]
    assert tag_set(joined, *groups) == joined
    assert tag_set(joined) == joined


@given(st.integers(1, 10**6))
def test_the_default_backoff_grows_up_to_its_cap(attempt: int) -> None:
    """Never shorter than the one before, never over 300 seconds."""
    wait = default_backoff(attempt)
    assert timedelta(seconds=2) <= wait <= timedelta(seconds=300)
    assert default_backoff(attempt + 1) >= wait


@given(
    st.one_of(
        st.floats(), st.integers(), st.timedeltas(), st.none(), st.text(), st.booleans(),
        st.decimals(), st.complex_numbers(),
    )
)  # fmt: skip
def test_whatever_a_backoff_gives_the_wait_is_sound(given_wait: object) -> None:
    """Never negative, never past the longest one, never an error."""
    policy = RetryPolicy(backoff=lambda attempt: given_wait)  # type: ignore[arg-type, return-value]
    assert timedelta(0) <= policy.delay(1) <= LONGEST_DELAY
