"""What every test has: databases that can always be dropped, and steady hypothesis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from django.db import connections
from django.test.utils import setup_databases, teardown_databases

# Deadlines measure the machine; `timeout` in pyproject.toml stops what hangs.
hypothesis.settings.register_profile("backwave", deadline=None, print_blob=True)
hypothesis.settings.load_profile("backwave")


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None,
    django_db_modify_db_settings: None,
    django_db_blocker: Any,
) -> Iterator[None]:
    """Make every test database, also for tests that carry no ``django_db`` mark.

    Many of ours commit, so they stand outside of the transaction that the mark opens.
    """
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False, serialized_aliases=set())
    yield
    with django_db_blocker.unblock():
        _end_other_sessions()
        teardown_databases(made, verbosity=0)


def _end_other_sessions() -> None:
    """End what still holds the PostgreSQL database, since it drops none that is in use.

    A worker that a test has killed leaves its server process behind for a moment.
    """
    connection = connections["postgres"]
    if connection.settings_dict["NAME"].startswith("test_backwave_"):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
