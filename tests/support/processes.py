"""Child processes that see this test process's databases, and waiting for what they do.

A child sees only what is committed: a test that starts one is marked
``@pytest.mark.django_db(transaction=True, databases=[...])``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TypeVar

from django.db import connections

ROOT = Path(__file__).resolve().parents[2]
_PAUSE_SECONDS = 0.02

T = TypeVar("T")


def wait_until(condition: Callable[[], T], seconds: float = 30, message: str = "") -> T:
    """Ask ``condition`` again and again until it is true; gives what it gave.

    The only place where tests sleep.

    Raises:
        AssertionError: it was not true within ``seconds``.
    """
    limit = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > limit:
            raise AssertionError(f"waited {seconds} s in vain: {message or repr(condition)}")
        time.sleep(_PAUSE_SECONDS)
    return answer


def child_environment(alias: str = "default") -> dict[str, str]:
    """Give the environment of a child that keeps its jobs in ``alias`` of this test process."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(":"),
        "PYTHONUNBUFFERED": "1",
        "BACKWAVE_TEST_SQLITE_NAME": str(connections["default"].settings_dict["NAME"]),
        "BACKWAVE_TEST_POSTGRES_NAME": str(connections["postgres"].settings_dict["NAME"]),
        "BACKWAVE_TEST_DATABASE": alias,
    }


class Child:
    """A running child process in a process group of its own; killed when the block ends."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str]) -> None:
        with contextlib.ExitStack() as on_failure:
            self._log: IO[bytes] = on_failure.enter_context(tempfile.TemporaryFile())
            self.process = subprocess.Popen(
                arguments,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            # From here on the log is closed by __exit__.
            on_failure.pop_all()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill_group()
        if error is not None:
            error.add_note(f"output of {self.process.args!r}:\n{self.output()}")
        self._log.close()

    @property
    def pid(self) -> int:
        """The id of the process, which is that of its group too."""
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process itself (not its group) is still there."""
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process alone."""
        self.process.send_signal(number)

    def terminate(self) -> None:
        """Send SIGTERM, as a service manager does."""
        self.send(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process alone, at once, and wait until it is gone."""
        self.process.kill()
        self.process.wait(30)

    def kill_group(self) -> None:
        """Kill the process and all that it has started, at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait(30)

    def wait(self, seconds: float = 60) -> int:
        """Wait for the end; gives the exit code.

        Raises:
            AssertionError: it still ran after ``seconds``.
        """
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"{self.process.args!r} still ran after {seconds} s; its output:\n{self.output()}"
            ) from None

    def output(self) -> str:
        """Give what the process has written so far, to either stream."""
        descriptor = self._log.fileno()
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, size, 0).decode("utf-8", "replace")

    def wait_for_output(self, text: str, seconds: float = 30) -> None:
        """Wait until ``text`` is in the output; fails at once where the process has ended.

        Raises:
            AssertionError: it did not come; the message shows what came instead.
        """

        def has_come() -> bool:
            ended = not self.is_running
            return text in self.output() or ended

        with contextlib.suppress(AssertionError):
            wait_until(has_come, seconds)
        if text not in (output := self.output()):
            raise AssertionError(f"no {text!r} in the output of {self.process.args!r}:\n{output}")


def spawn_python(
    *arguments: str, alias: str = "default", environment: Mapping[str, str] | None = None
) -> Child:
    """Start this Python with ``arguments``."""
    return Child([sys.executable, *arguments], {**child_environment(alias), **(environment or {})})


def spawn_command(
    *arguments: str, alias: str = "default", environment: Mapping[str, str] | None = None
) -> Child:
    """Start a management command."""
    return spawn_python("-m", "django", *arguments, alias=alias, environment=environment)


def spawn_worker(
    *arguments: str,
    alias: str = "default",
    group: str = "default",
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Start ``backwave_worker``; ``arguments`` are further options, say ``"--burst"``."""
    return spawn_command(
        "backwave_worker", "--group", group, *arguments, alias=alias, environment=environment
    )
