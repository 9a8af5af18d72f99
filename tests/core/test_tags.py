"""Tags: labels and keyed tags, and the ordered set of them."""

from __future__ import annotations

from typing import Any

import pytest

from backwave_django.core.errors import InvalidOption
from backwave_django.core.tags import Tag, TagLike, tag_from, tag_set


def test_a_text_is_a_label_and_a_pair_a_keyed_tag() -> None:
    """Two kinds, told apart by structure."""
    assert tag_from("vip") == Tag(None, "vip")
    assert tag_from(("tenant", "acme")) == Tag("tenant", "acme")
    assert tag_from(Tag("tenant", "acme")) == Tag("tenant", "acme")
    assert tag_from(Tag(None, "vip")) == Tag(None, "vip")


def test_a_colon_in_a_label_is_data() -> None:
    """The label ``a:b`` is not the tag ``a`` = ``b``."""
    assert tag_from("a:b") == Tag(None, "a:b")
    assert tag_from("a:b") != tag_from(("a", "b"))


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (5, "a tag is a label"),
        (None, "a tag is a label"),
        (b"vip", "a tag is a label"),
        (["tenant", "acme"], "a tag is a label"),
        (("one",), "a tag is a label"),
        (("a", "b", "c"), "a tag is a label"),
        ("", "label must not be empty"),
        (" vip", "white space"),
        (("", "acme"), "tag key must not be empty"),
        (("tenant", ""), "tag value must not be empty"),
        (("tenant", 5), "tag value must be a str"),
        ((5, "acme"), "tag key must be a str"),
        ((None, ""), "label must not be empty"),
        ((None, 5), "label must be a str"),
        (("k" * 65, "v"), "tag key has 65 characters"),
        (("k", "v" * 257), "tag value has 257 characters"),
        ("l" * 257, "label has 257 characters"),
        ("v\x00", "NUL"),
    ],
)
def test_what_cannot_be_a_tag_is_refused(value: Any, complaint: str) -> None:
    """The message says what a tag is."""
    with pytest.raises(InvalidOption, match=complaint):
        tag_from(value)


def test_the_longest_tags_pass() -> None:
    """64 code points of a key and 256 of a value or label are allowed."""
    assert tag_from(("k" * 64, "v" * 256))
    assert tag_from("😀" * 256)


def test_a_set_keeps_the_order_in_which_each_was_first_seen() -> None:
    """Joining the defaults and the caller's tags repeats none; a key may have two values."""
    more: list[TagLike] = [("k", "2"), Tag(None, "a")]
    joined = tag_set(["b", "a"], [("k", "1"), "b"], iter(more))
    assert joined == (Tag(None, "b"), Tag(None, "a"), Tag("k", "1"), Tag("k", "2"))


def test_no_tags_are_an_empty_set() -> None:
    """Nothing joined with nothing is nothing."""
    assert tag_set() == ()
    assert tag_set([], ()) == ()


def test_a_text_in_place_of_a_list_is_refused() -> None:
    """``tags="vip"`` is not the labels v, i and p."""
    with pytest.raises(InvalidOption, match="list of tags, not the text 'vip'"):
        tag_set("vip")


@pytest.mark.parametrize("group", [{"tenant": "acme"}, Tag("tenant", "acme")])
def test_a_mapping_or_a_single_tag_in_place_of_a_list_is_refused(group: Any) -> None:
    """Neither a mapping nor one tag may quietly become the labels of its parts."""
    with pytest.raises(InvalidOption, match="list of tags"):
        tag_set(group)
