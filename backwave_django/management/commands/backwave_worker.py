"""``manage.py backwave_worker``: run jobs."""

from __future__ import annotations

import argparse
import difflib
import gc
import logging
import math
import os
import sys
from typing import Any

from django.apps import apps
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from ...conf import Configuration, app_label, configuration
from ...core.options import WorkerGroupOptions
from ...deployment import store
from ...handlers.registry import registry
from ...shell.supervisor import Supervisor

CANNOT_START = 2

EPILOG = """\
examples:
  manage.py backwave_worker --group default            run one group until stopped
  manage.py backwave_worker --group default --burst    run what is due, then exit
  manage.py backwave_worker                            run every group of the settings

The first SIGTERM or SIGINT stops claiming, lets running jobs finish within the grace
and hands the rest back. The second one hands everything back at once.

exit codes:
  0  stopped cleanly
  2  could not start: a wrong setting or option, an unknown group, no database, tables missing
  3  a pump halted on a fault that retrying cannot mend
"""


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 up")
    return seconds


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


class Command(BaseCommand):
    """Runs the pumps of some worker groups."""

    help = "Run background jobs of one or several worker groups."
    requires_system_checks: list[str] = []  # run by hand, to end in one line and code 2

    def create_parser(self, *args: Any, **kwargs: Any) -> CommandParser:
        """Add the examples, as they are written."""
        kwargs.setdefault("epilog", EPILOG)
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        return super().create_parser(*args, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--group",
            action="append",
            dest="groups",
            metavar="NAME",
            help="a worker group of settings.BACKWAVE; may be repeated (default: every group)",
        )
        parser.add_argument(
            "--burst",
            action="store_true",
            help="exit once nothing is due; jobs that wait for a later retry stay for later",
        )
        parser.add_argument(
            "--grace",
            type=_seconds,
            default=30.0,
            metavar="S",
            help="seconds for running jobs to finish after a stop (default: %(default)s)",
        )

    def handle(self, **options: Any) -> None:
        """Check what can be checked, then run until stopped."""
        settings = self._settings()
        groups = self._groups(settings, options["groups"])
        self._check_database(settings.database)
        self._let_logs_be_seen(options["verbosity"])
        supervisor = Supervisor(
            groups,
            list(settings.worker_groups.values()),
            store(),
            registry,
            grace=options["grace"],
            burst=options["burst"],
        )
        if options["verbosity"]:
            names = ", ".join(group.name for group in groups)
            self.stdout.write(f"backwave_worker: running {names} on database {settings.database!r}")
        if self._is_main_program():
            # What the project has loaded stays for good: keep the collector from walking
            # through it again and again (https://docs.python.org/3/library/gc.html#gc.freeze).
            gc.freeze()
        code = supervisor.run()
        if options["verbosity"]:
            self.stdout.write("backwave_worker: stopped")
        if supervisor.abandoned and self._is_main_program():
            # Handlers that never end must not keep the process: their jobs are handed
            # back, and their threads would be waited for.
            logging.shutdown()
            self.stdout.flush()
            os._exit(code)
        if code:
            raise CommandError("a pump halted; see the log", returncode=code)

    def _settings(self) -> Configuration:
        try:
            settings = configuration()
            errors = [
                message
                for message in run_checks()
                if message.is_serious() and not message.is_silenced()
            ]
        except ImproperlyConfigured as error:
            raise CommandError(_one_line(error), returncode=CANNOT_START) from error
        if errors:
            first = errors[0]
            more = f" ({len(errors) - 1} more: see manage.py check)" if errors[1:] else ""
            raise CommandError(
                f"{_one_line(first.msg)} ({first.id}). {_one_line(first.hint or '')}{more}",
                returncode=CANNOT_START,
            )
        return settings

    def _groups(self, settings: Configuration, names: list[str] | None) -> list[WorkerGroupOptions]:
        known = settings.worker_groups
        for name in names or ():
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
                raise CommandError(
                    f"unknown worker group {name!r}; {hint}", returncode=CANNOT_START
                )
        return [known[name] for name in dict.fromkeys(names or known)]

    def _check_database(self, alias: str) -> None:
        """Stop here if the database is away, or its tables are not those of this code."""
        connection = connections[alias]
        if connection.in_atomic_block:
            raise CommandError(
                "backwave_worker sees only what is committed, so it cannot run inside a "
                "transaction; in tests use TransactionTestCase",
                returncode=CANNOT_START,
            )
        is_open = connection.connection is not None
        try:
            missing = self._missing(connection)
        except (DatabaseError, ImproperlyConfigured) as error:
            raise CommandError(
                f"cannot reach database {alias!r}: {_one_line(error)}", returncode=CANNOT_START
            ) from error
        finally:
            if not is_open:
                connection.close()
        if missing:
            database = "" if alias == "default" else f" --database {alias}"
            raise CommandError(
                f"database {alias!r} lacks {missing} of backwave_django; run "
                f"manage.py migrate{database}",
                returncode=CANNOT_START,
            )

    def _missing(self, connection: BaseDatabaseWrapper) -> str:
        """Say which migrations or tables the database lacks; empty if none."""
        connection.ensure_connection()
        executor = MigrationExecutor(connection)
        targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] == app_label()]
        plan = executor.migration_plan(targets)
        if plan:
            names = ", ".join(migration.name for migration, _ in plan)
            return f"migrations ({names})"
        # A migration can be on record without its tables, where a router kept them out.
        tables = {model._meta.db_table for model in apps.get_app_config(app_label()).get_models()}
        absent = sorted(tables - set(connection.introspection.table_names()))
        return f"tables ({', '.join(absent)})" if absent else ""

    def _let_logs_be_seen(self, verbosity: int) -> None:
        """Give our logger a handler, if the project has configured none that it reaches."""
        logger = logging.getLogger("backwave_django")
        if not verbosity or logger.hasHandlers():
            return
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)

    def _is_main_program(self) -> bool:
        return bool(getattr(self, "_called_from_command_line", False))
