"""``manage.py demo``: the whole way of some hundred orders, watched from the outside."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection, transaction

from backwave_django import JobState, monitor
from shop.demo_report import DemoReport, read_report
from shop.order_file import ImportReport, UnreadableFile, import_orders

CANNOT_START = 2
INTERRUPTED = 130
ORDERS = settings.BASE_DIR / "shop" / "data" / "orders.csv"
USER, PASSWORD = "admin", "demo"
LIMIT_SECONDS = 90.0


class Command(BaseCommand):
    """Starts afresh, imports the orders, runs the worker, and says what happened."""

    help = (
        "Empty the shop, import the orders of the example, run the worker until no job is "
        "left, and show what happened. Asks nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the option."""
        parser.add_argument(
            "--yes",
            action="store_true",
            help="empty the tables of the shop and of the jobs also where the database is no "
            "SQLite file",
        )

    def handle(self, **options: Any) -> None:
        """Show the shop, from the first order to the last job."""
        self._refuse_to_harm(options["yes"])
        started = time.monotonic()
        try:
            report = self._run()
        except DatabaseError as error:
            reason = " ".join(str(error).split())
            raise CommandError(f"the database fails: {reason}", returncode=CANNOT_START) from error
        except OSError as error:
            raise CommandError(str(error), returncode=CANNOT_START) from error
        except KeyboardInterrupt:
            raise CommandError("stopped half-way", returncode=INTERRUPTED) from None
        self.stdout.write("")
        for line in report.lines():
            self.stdout.write(line)
        self.stdout.write(f"\nThe e-mails are in {_relative(settings.SENT_MAIL)}.")
        wrong = report.wrong_sums()
        if wrong:
            raise CommandError(f"the sums do not add up: {'; '.join(wrong)}")
        self.stdout.write(f"All sums add up ({time.monotonic() - started:.1f} s).\n\n")
        runserver = shlex.join([_relative(sys.executable), _relative(_manage_py()), "runserver"])
        self.stdout.write(
            "Look at orders and jobs in the admin:\n"
            f"    {runserver}\n"
            f"    http://127.0.0.1:8000/admin/    user {USER!r}, password {PASSWORD!r}"
        )

    def _refuse_to_harm(self, yes: bool) -> None:
        if not settings.DEBUG:
            raise CommandError(
                "the demo makes an admin with a known password, so it runs with DEBUG on only",
                returncode=CANNOT_START,
            )
        if connection.settings_dict["NAME"] == ":memory:":
            raise CommandError(
                "the demo needs a database that its worker, another process, can see; "
                "DATABASE_URL names one in memory",
                returncode=CANNOT_START,
            )
        if connection.vendor != "sqlite" and not yes:
            raise CommandError(
                "the demo empties the tables of the shop and of the jobs, and DATABASE_URL names "
                f"a {connection.display_name} database; add --yes if that is what you want",
                returncode=CANNOT_START,
            )

    def _run(self) -> DemoReport:
        name = _relative(connection.settings_dict["NAME"])
        self._say(f"Starting afresh on {connection.display_name}, {name} ...")
        _start_afresh()
        self._say(f"Importing {_relative(ORDERS)} ...")
        imported = self._import()
        self._say(
            f"Running the worker until no job is left (its log, with each declined card: "
            f"{_relative(settings.WORKER_LOG)}) ..."
        )
        with Path(settings.WORKER_LOG).open("wb") as log:
            self._work(log)
        return read_report(imported)

    def _import(self) -> ImportReport:
        try:
            return import_orders(ORDERS, lambda line: None)
        except UnreadableFile as error:
            raise CommandError(f"{ORDERS.name} {error}", returncode=CANNOT_START) from error

    def _work(self, log: IO[bytes]) -> None:
        """Run bursts of the worker until every job has ended.

        A burst leaves what is due later, here the cards that were declined, for the next.
        """
        deadline = time.monotonic() + LIMIT_SECONDS
        while live := _count_live():
            wait = max(_seconds_until_all_are_due(), 0.0)
            if time.monotonic() + wait > deadline:
                raise CommandError(
                    f"{live} jobs are left after {LIMIT_SECONDS:g} seconds, or are due later; "
                    f"see {_relative(settings.WORKER_LOG)}"
                )
            again = f", to be tried again in {wait:.1f} s" if wait else ""
            self._say(f"  jobs left: {live:>3}{again}")
            threading.Event().wait(wait)
            self._burst(log, deadline)

    def _burst(self, log: IO[bytes], deadline: float) -> None:
        command = [sys.executable, str(_manage_py()), "backwave_worker", "--burst"]
        worker = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            while worker.poll() is None and time.monotonic() < deadline:
                try:
                    worker.wait(timeout=1)
                except subprocess.TimeoutExpired:
                    self._say(f"  jobs left: {_count_live():>3}")
        finally:
            was_stopped = worker.poll() is None
            if was_stopped:
                worker.terminate()
                worker.wait()
        if worker.returncode and not was_stopped:
            raise CommandError(
                f"the worker ended with exit code {worker.returncode}; "
                f"see {_relative(settings.WORKER_LOG)}"
            )

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _start_afresh() -> None:
    """Make the tables, empty those of the shop and of the jobs, and make an admin user."""
    call_command("migrate", verbosity=0, interactive=False)
    with transaction.atomic():
        for label in ("shop", "backwave_django"):
            for model in reversed(list(apps.get_app_config(label).get_models())):
                model._default_manager.all().delete()
        user, _ = get_user_model()._default_manager.get_or_create(username=USER)
        user.is_staff = user.is_superuser = user.is_active = True
        user.set_password(PASSWORD)
        user.save()
    for email in Path(settings.SENT_MAIL).glob("*.eml"):
        email.unlink()


def _count_live() -> int:
    return sum(entry.count for entry in monitor.count_jobs() if not entry.state.is_terminal)


def _seconds_until_all_are_due() -> float:
    """Give how long it is until no job waits for its time any more."""
    dues = [
        job.due_time.timestamp() for job in monitor.list_jobs(state=JobState.SCHEDULED, limit=500)
    ]
    return max(dues, default=0.0) - time.time()


def _manage_py() -> Path:
    return Path(settings.BASE_DIR, "manage.py")


def _relative(path: Path | str) -> str:
    """Give a path as one would type it here."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return str(path)
