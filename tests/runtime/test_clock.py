"""Cluster time: the database's, carried on by the host, never going back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from backwave_django import deployment
from backwave_django.runtime import clock as clock_module
from backwave_django.runtime.clock import ClusterClock, elapsed, wall_time

START = datetime(2026, 1, 1, tzinfo=UTC)


class Host:
    """A host whose two clocks a test sets, and a database that has one of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.elapsed = 100.0
        self.wall = START - timedelta(hours=5)
        self.database = START
        self.looks = 0
        self.round_trip = 0.0
        monkeypatch.setattr(clock_module, "elapsed", lambda: self.elapsed)
        monkeypatch.setattr(clock_module, "wall_time", lambda: self.wall)

    def look(self) -> datetime:
        """Read the database's clock; the answer is made in the middle of the round trip."""
        self.looks += 1
        self.pass_(self.round_trip / 2)
        seen = self.database
        self.pass_(self.round_trip / 2)
        return seen

    def pass_(self, seconds: float) -> None:
        """Let time pass everywhere."""
        self.elapsed += seconds
        self.wall += timedelta(seconds=seconds)
        self.database += timedelta(seconds=seconds)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host whose wall clock is five hours late."""
    return Host(monkeypatch)


def test_the_database_is_asked_once(host: Host) -> None:
    """Then its time is carried on, whatever the host's wall clock says."""
    clock = ClusterClock(host.look)
    assert host.looks == 0
    assert clock.now() == START
    host.pass_(10)
    host.wall += timedelta(days=3)
    assert clock.now() == START + timedelta(seconds=10)
    host.pass_(1_000_000)
    assert clock.now() == host.database
    assert host.looks == 1


def test_the_middle_of_the_round_trip_is_taken(host: Host) -> None:
    """A slow answer errs by half its round trip at most."""
    host.round_trip = 4.0
    clock = ClusterClock(host.look)
    assert clock.now() == START + timedelta(seconds=4) == host.database


def test_an_old_look_is_taken_anew(host: Host) -> None:
    """After the interval, not at it."""
    clock = ClusterClock(host.look, timedelta(seconds=30))
    clock.now()
    host.pass_(30)
    clock.now()
    assert host.looks == 1
    host.pass_(0.001)
    # The database's clock was set forward meanwhile; the next look follows it.
    host.database += timedelta(seconds=7)
    assert clock.now() == host.database
    assert host.looks == 2


def test_it_stands_still_rather_than_going_back(host: Host) -> None:
    """When the database's clock was set back, until that has caught up."""
    clock = ClusterClock(host.look, timedelta(seconds=30))
    host.pass_(1)
    before = clock.now()
    host.pass_(31)
    host.database -= timedelta(minutes=1)
    assert clock.now() == before
    host.pass_(20)
    assert clock.now() == before
    host.pass_(20)
    assert clock.now() == host.database > before


def test_a_failing_look_is_the_callers(host: Host) -> None:
    """The error passes, and the next call asks again."""

    def away() -> datetime:
        host.looks += 1
        if host.looks == 1:
            raise OSError("away")
        return host.database

    clock = ClusterClock(away)
    with pytest.raises(OSError, match="away"):
        clock.now()
    assert clock.now() == START


def test_an_old_look_that_fails_leaves_the_estimate(host: Host) -> None:
    """A pump goes on estimating while its database is away."""
    clock = ClusterClock(host.look, timedelta(seconds=30))
    clock.now()
    host.pass_(60)
    clock._look = lambda: (_ for _ in ()).throw(OSError("away"))
    with pytest.raises(OSError, match="away"):
        clock.now()
    assert clock.estimate() == host.database


def test_an_estimate_asks_nobody(host: Host) -> None:
    """The host's own time where nothing is known, else the last look carried on."""
    clock = ClusterClock(host.look)
    assert clock.estimate() == host.wall
    clock.measure()
    assert host.looks == 1
    host.pass_(3)
    assert clock.estimate() == host.database
    assert host.looks == 1


def test_an_estimate_does_not_go_back_either(host: Host) -> None:
    """Also where the first one was the host's, and that is ahead."""
    host.wall = START + timedelta(hours=1)
    clock = ClusterClock(host.look)
    first = clock.estimate()
    assert clock.now() == first
    host.pass_(2)
    assert clock.estimate() == first


def test_without_a_cluster_clock_the_hosts_is_it(host: Host) -> None:
    """As on SQLite; set back, it stands still."""
    clock = ClusterClock(None)
    assert clock.now() == host.wall
    newest = host.wall
    host.wall -= timedelta(hours=1)
    assert clock.now() == clock.estimate() == newest
    host.wall = newest + timedelta(seconds=1)
    assert clock.now() == host.wall
    assert clock.measure() == (host.wall, host.elapsed)


steps = st.lists(
    st.tuples(
        st.sampled_from(["pass", "wall", "database", "now", "estimate", "measure"]),
        st.floats(-1_000, 1_000),
    ),
    max_size=30,
)


@given(steps, st.booleans(), st.none() | st.floats(0.001, 500))
def test_whatever_happens_it_never_goes_back(
    taken: list[tuple[str, float]], has_look: bool, trusted: float | None
) -> None:
    """With any clock set anywhere at any time."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        host = Host(monkeypatch)
        interval = None if trusted is None else timedelta(seconds=trusted)
        clock = ClusterClock(host.look if has_look else None, interval)
        seen = [clock.estimate()]
        for step, seconds in taken:
            moved = timedelta(seconds=seconds)
            actions: dict[str, Callable[[], Any]] = {
                "pass": lambda s=seconds: host.pass_(abs(s)),
                "wall": lambda m=moved: setattr(host, "wall", host.wall + m),
                "database": lambda m=moved: setattr(host, "database", host.database + m),
                "now": lambda: seen.append(clock.now()),
                "estimate": lambda: seen.append(clock.estimate()),
                "measure": clock.measure,
            }
            actions[step]()
        seen.append(clock.now())
        assert seen == sorted(seen)


def test_threads_never_see_it_go_back() -> None:
    """Each sees times that only grow, while the database's clock jumps about."""
    jumps = iter(range(10**9))

    def look() -> datetime:
        return START + timedelta(seconds=next(jumps) % 7)

    clock = ClusterClock(look, timedelta(0))
    wrong: list[tuple[datetime, datetime]] = []

    def read() -> None:
        before = clock.now()
        for _ in range(2_000):
            after = clock.now()
            if after < before:
                wrong.append((before, after))
            before = after

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []


def test_the_real_readers_read() -> None:
    """Aware UTC, and seconds that go forward."""
    assert wall_time().tzinfo is UTC
    first = elapsed()
    assert elapsed() >= first


@pytest.mark.django_db(databases=["default", "postgres"])
def test_a_store_gives_its_own_clock(settings: Any) -> None:
    """On PostgreSQL the server's, for one statement in all; on SQLite the host's, for none."""
    for alias, looks in (("postgres", 1), ("default", 0)):
        settings.BACKWAVE = {"DATABASE": alias}
        with CaptureQueriesContext(connections[alias]) as queries:
            times = [deployment.clock().now() for _ in range(3)]
        assert len(queries) == looks
        assert times == sorted(times)
        assert abs(times[0] - wall_time()) < timedelta(seconds=5)
