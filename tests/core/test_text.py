"""Names are checked, free text is made storable."""

from __future__ import annotations

from typing import Any

import pytest

from backwave_django.core.errors import InvalidOption
from backwave_django.core.text import (
    TERMINAL_CAUSE_MAX,
    check_name,
    clipped,
    storable_cause,
    storable_detail,
    visible,
)

MARK = "\n[... cut ...]\n"


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "Emails",
        "emails.slow",
        "with space",
        "żółć",
        "e\u0301",
        "日本",
        "😀",
        "a\u200d",
        "x" * 8,
    ],
)
def test_a_name_is_given_back_as_it_was(name: str) -> None:
    """Any Unicode is a name, up to and at the length allowed."""
    assert check_name("queue", name, 12) is name


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (None, "queue must be a str, not NoneType"),
        (5, "queue must be a str, not int"),
        (b"a", "queue must be a str, not bytes"),
        ("", "queue must not be empty"),
        (" a", "has white space at an end"),
        ("a ", "has white space at an end"),
        ("a\n", "has white space at an end"),
        ("\ta", "has white space at an end"),
        ("\u3000a", "has white space at an end"),
        ("a\xa0", "has white space at an end"),
        (" ", "has white space at an end"),
        ("a\x00b", "has a NUL or a lone surrogate"),
        ("\ud800", "has a NUL or a lone surrogate"),
        ("a\udfff", "has a NUL or a lone surrogate"),
        ("x" * 13, "queue has 13 characters, at most 12 are allowed"),
    ],
)
def test_what_cannot_be_a_name_is_refused(value: Any, complaint: str) -> None:
    """The message says what is wrong, and can be printed whatever the value holds."""
    with pytest.raises(InvalidOption) as refusal:
        check_name("queue", value, 12)
    assert complaint in str(refusal.value)
    assert str(refusal.value).encode().startswith(b"queue")
    assert refusal.value.facts["value"] == value


def test_the_length_counts_code_points() -> None:
    """Twelve emoji are twelve, whatever their bytes; a combining mark is one of its own."""
    assert check_name("queue", "😀" * 12, 12)
    with pytest.raises(InvalidOption):
        check_name("queue", "e\u0301" * 7, 12)


def test_a_name_without_a_length_is_left_to_the_caller() -> None:
    """``None`` means that any length passes."""
    assert len(check_name("wire name", "x" * 10_000, None)) == 10_000


def test_a_long_name_is_not_repeated_whole() -> None:
    """A megabyte of a name does not fill the log."""
    with pytest.raises(InvalidOption) as refusal:
        check_name("queue", "x" * 1_000_000, 12)
    assert len(str(refusal.value)) < 200
    with pytest.raises(InvalidOption) as refusal:
        check_name("queue", "x" * 1_000_000 + " ", None)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a\x00b", "a\\x00b"),
        ("\ud800", "\\ud800"),
        ("\udfffx", "\\udfffx"),
        ("\ud83d\ude00", "\\ud83d\\ude00"),
        ("tab\t and \x01 stay", "tab\t and \x01 stay"),
        ("😀 e\u0301 \u202e", "😀 e\u0301 \u202e"),
    ],
)
def test_what_no_database_holds_is_written_visibly(text: str, shown: str) -> None:
    """NUL and lone surrogates become escapes; all else stays."""
    assert visible(text) == shown
    assert visible(text).encode().decode() == shown


@pytest.mark.parametrize(
    ("text", "cut"),
    [("", ""), ("abc", "abc"), ("abcd", "abcd"), ("abcde", "abc…"), ("😀" * 9, "😀😀😀…")],
)
def test_a_clipped_text_ends_in_an_ellipsis(text: str, cut: str) -> None:
    """Four code points at most, the last one an ellipsis where something was cut."""
    assert clipped(text, 4) == cut


def test_a_cause_is_cut_after_its_escapes() -> None:
    """Escapes count by what they take."""
    cause = storable_cause("\x00" * TERMINAL_CAUSE_MAX)
    assert len(cause) == TERMINAL_CAUSE_MAX
    assert cause.startswith("\\x00\\x00")
    assert cause.endswith("…")
    assert storable_cause("x" * TERMINAL_CAUSE_MAX) == "x" * TERMINAL_CAUSE_MAX


def test_a_detail_that_fits_stays_whole() -> None:
    """Up to the last byte nothing is cut."""
    assert storable_detail("é" * 50, 100) == "é" * 50
    assert storable_detail("", 100) == ""
    assert storable_detail("a\x00", 5) == "a\\x00"


def test_a_long_detail_loses_its_middle() -> None:
    """A quarter of the room goes to the beginning, the rest to the end."""
    detail = storable_detail("".join(map(chr, range(0x100, 0x100 + 200))), 115)
    head, tail = detail.split(MARK)
    assert [ord(c) - 0x100 for c in head] == list(range(12))
    assert [ord(c) - 0x100 for c in tail] == list(range(163, 200))
    assert len(detail.encode()) <= 115


def test_a_detail_of_ten_megabytes_keeps_its_two_ends() -> None:
    """The first line and the last one of a giant text are still there."""
    detail = storable_detail("first\n" + "😀" * 10_000_000 + "\nlast", 8_192)
    assert detail.startswith("first\n😀")
    assert detail.endswith("😀\nlast")
    assert detail.count(MARK) == 1
    assert 8_180 < len(detail.encode()) <= 8_192


@pytest.mark.parametrize("room", range(1, 40))
def test_a_tiny_room_is_never_exceeded(room: int) -> None:
    """Whatever the limit, the bytes stay below it and no code point is split."""
    for text in ("é" * 100, "😀" * 100, "\x00" * 100, "a€" * 100):
        detail = storable_detail(text, room)
        assert len(detail.encode()) <= room
        assert "\ufffd" not in detail


def test_a_room_without_place_for_the_mark_keeps_the_beginning() -> None:
    """Where the mark would be most of it, the text is cut at its end."""
    assert storable_detail("abcdefgh" * 10, 10) == "abcdefghab"
    assert storable_detail("😀😀😀", 10) == "😀😀"
