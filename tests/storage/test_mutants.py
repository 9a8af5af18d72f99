"""The suite can fail: broken stores turn its tests red, and no test is green on all of them."""

from __future__ import annotations

import pytest

from backwave_django.storage.memory import InMemoryStore
from backwave_django.testing.conformance import conformance_tests, conformance_tests_of, rule_of
from backwave_django.testing.conformance.mutants import mutants_by_rule

MUTANTS = mutants_by_rule()
RULES = sorted({rule_of(name) for name in conformance_tests()})


def turns_red(test, store) -> bool:
    """Whether a test fails on a store; anything that it raises is a failure."""
    try:
        test(store)
    except pytest.skip.Exception:
        return False
    except (Exception, pytest.fail.Exception):  # noqa: BLE001
        return True
    return False


@pytest.mark.parametrize("rule", RULES)
def test_no_broken_store_survives_and_no_test_is_always_green(rule):
    """Each mutant is found out by a test of the rule that it breaks, each test finds one."""
    tests = conformance_tests_of(rule)
    unused, survivors = set(tests), []
    for mutant in MUTANTS.get(rule, []):
        red = {name for name, test in tests.items() if turns_red(test, mutant())}
        unused -= red
        if not red:
            survivors.append(f"{mutant.__name__} ({mutant.__doc__})")
    assert survivors == []
    assert sorted(unused) == []


@pytest.mark.parametrize("rule", RULES)
def test_the_unbroken_store_survives(rule):
    """What turns red on a mutant is green on the store that the mutant is made of."""
    for name, test in conformance_tests_of(rule).items():
        assert not turns_red(test, InMemoryStore()), name


def test_every_rule_has_a_broken_store():
    """No rule is tested by tests that nothing is known to fail, and no number is mistyped."""
    assert sorted(MUTANTS) == RULES
