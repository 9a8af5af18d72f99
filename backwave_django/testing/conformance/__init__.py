"""The storage contract as tests: a file a chapter, at least one test a rule.

A test is a plain function that takes an empty store and nothing else. Its name says the
rule that it holds a store to: ``test_3_1_…`` is for rule 3.1 of the storage contract. To
hold a store of your own to it, put this into a test module beside a fixture ``store`` that
gives an empty store each time::

    from backwave_django.testing.conformance import conformance_tests

    globals().update(conformance_tests())

A store declares what it cannot do in its ``capabilities``; a test that needs it skips, and
says why. What only a database can be asked (SQL constraints, plans, locks that are held by
an application's transaction) is tested beside that database, under the same numbers.

``mutants`` holds a broken store for each rule. A test that no broken store turns red tests
nothing.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable

import pytest

from ...storage.contract import JobStore

CHAPTERS = (
    "ground_rules",
    "limits",
    "names",
    "jobs",
    "enqueue",
    "parents",
    "claim",
    "queues",
    "outcomes",
    "exchange",
    "leases",
    "operators",
    "requeueing",
    "audit",
    "dependencies",
    "ancestry",
    "reads",
    "tagging",
    "purging",
    "scheduling",
    "observing",
)
"""The modules that hold the tests, in the order of the contract."""

ConformanceTest = Callable[[JobStore], None]

# Without this, a failing test would not show the values that it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in ("scenario", *CHAPTERS)))


def conformance_tests() -> dict[str, ConformanceTest]:
    """Give every test by its name."""
    found: dict[str, ConformanceTest] = {}
    for chapter in CHAPTERS:
        module = importlib.import_module(f".{chapter}", __name__)
        found |= {name: test for name, test in vars(module).items() if name.startswith("test_")}
    return found


def rule_of(name: str) -> str:
    """Give the number of the rule that a test is for: ``3.1`` of ``test_3_1_…``."""
    match = re.match(r"test_(\d+)_(\d+)_", name)
    if match is None:
        raise ValueError(f"{name} does not begin with test_<chapter>_<rule>_")
    return f"{match[1]}.{match[2]}"


def conformance_tests_of(rule: str) -> dict[str, ConformanceTest]:
    """Give the tests of one rule by their names."""
    return {name: test for name, test in conformance_tests().items() if rule_of(name) == rule}
