"""Each rule of the storage contract's page has a test, and each test a rule."""

from __future__ import annotations

import re
from collections.abc import Iterable

from backwave_django.testing.conformance import conformance_tests, rule_of
from tests.project.sources import ROOT, python_files

PAGE = ROOT / "docs/reference/storage-contract.md"


def rules_of_page(text: str) -> set[str]:
    """Find the numbers of the rules: ``**5.2 Requeue.**`` at the start of a line."""
    return set(re.findall(r"^\*\*(\d+\.\d+) ", text, re.MULTILINE))


def rules_of_tests(names: Iterable[str]) -> set[str]:
    """Find the numbers in the names of tests: ``test_5_2_…``."""
    return {rule_of(name) for name in names if re.match(r"test_\d+_\d+_", name)}


def unmatched(page: set[str], tests: set[str]) -> tuple[list[str], list[str]]:
    """Give the rules without a test, and the numbers that stand on no page."""
    return sorted(page - tests), sorted(tests - page)


def test_each_rule_has_a_test():
    """In the shipped suite, or beside a database where only that can be asked."""
    own = [
        name
        for folder in ("tests/storage", "tests/django")
        for source in python_files(folder)
        for name in re.findall(r"^def (test_\w+)", source.text, re.MULTILINE)
    ]
    tests = rules_of_tests([*conformance_tests(), *own])
    assert unmatched(rules_of_page(PAGE.read_text()), tests) == ([], [])


def test_a_rule_without_a_test_is_found():
    """Also a number that nobody has written down."""
    page = rules_of_page("**1.1 A rule.**\ntext **9.9 no rule**\n**2.1 Another.**\n")
    assert unmatched(page, rules_of_tests(["test_1_1_a", "test_3_1_b", "test_other"])) == (
        ["2.1"],
        ["3.1"],
    )
