"""Rule 8.1 and 4.5 under each history policy: it gates the log, and nothing else."""

from __future__ import annotations

import pytest

from backwave_django.core.outcomes import Outcome, Succeeded
from backwave_django.models import Transition
from backwave_django.storage.values import HistoryPolicy
from backwave_django.testing.conformance import conformance_tests_of
from backwave_django.testing.conformance.scenario import START, running

from .conftest import DATABASE_STORES, STORES

TESTS = conformance_tests_of("8.1") | conformance_tests_of("4.5") | conformance_tests_of("4.4")
OTHER_POLICIES = [HistoryPolicy.OFF, HistoryPolicy.TRANSITIONS]


@pytest.mark.parametrize("policy", OTHER_POLICIES, ids=lambda policy: policy.value)
@pytest.mark.parametrize("test", [t for n, t in TESTS.items() if "thousand" not in n])
@pytest.mark.parametrize("name", STORES)
def test_8_1_every_policy_keeps_the_contract(name, test, policy, make_store):
    """The tests know from the store what its log is to hold."""
    test(make_store(name, policy))


@pytest.mark.parametrize("name", DATABASE_STORES)
def test_8_1_without_history_no_row_is_written(name, make_store):
    """The table stays empty, so that the policy saves what it promises to save."""
    store = make_store(name, HistoryPolicy.OFF)
    lease = running(store)
    store.report([Outcome(lease, Succeeded())], START)
    assert not Transition.objects.using(store.alias).exists()
