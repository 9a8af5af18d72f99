"""``manage.py backwave_bench``: measure this database and this machine."""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from ...conf import configuration
from ..bench import QUEUE, Bench, Figure

EPILOG = f"""\
examples:
  manage.py backwave_bench                       20,000 jobs in batches of 100
  manage.py backwave_bench --batch 32 --json     the default batch, for a machine to read
  manage.py backwave_bench --memory              also 100,000 jobs for the growth of memory

It works on the real job tables, on queue {QUEUE!r}, and deletes its rows at the end. Do
not run it beside a worker that matters: it takes what the database has.
"""


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


class Command(BaseCommand):
    """Prints what enqueueing and running no-op jobs costs here."""

    help = "Measure enqueueing and running no-op jobs on the database of the settings."

    def create_parser(self, *args: Any, **kwargs: Any) -> CommandParser:
        """Add the examples, as they are written."""
        kwargs.setdefault("epilog", EPILOG)
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        return super().create_parser(*args, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--jobs", type=_count, default=20_000, help="default: %(default)s")
        parser.add_argument(
            "--batch",
            type=_count,
            default=100,
            help="pool size, claim batch and outcome batch (default: %(default)s)",
        )
        parser.add_argument("--memory", action="store_true", help="measure memory growth too")
        parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")

    def handle(self, **options: Any) -> None:
        """Measure, say each figure as it is known, and clean up."""
        settings = configuration()
        bench = Bench(settings.database, options["batch"], settings.history)
        if connections[settings.database].in_atomic_block:
            raise CommandError("backwave_bench measures commits: run it outside a transaction")
        jobs = options["jobs"]
        figures: list[Figure] = []
        say = (lambda figure: None) if options["json"] else self._say
        bench.clean()
        try:
            floor = bench.floor(max(jobs, 20_000))
            for found in (
                [floor] if floor else [],
                [bench.enqueue_single(max(1, jobs // 20))],
                [bench.enqueue_bulk(jobs - max(1, jobs // 20))],
                bench.drain(jobs),
                [bench.memory((10_000, 100_000))] if options["memory"] else [],
            ):
                for figure in found:
                    figures.append(figure)
                    say(figure)
            if floor is not None and floor.value:
                drain = next(f.value for f in figures if f.name == "no-op drain") or 0.0
                figures.append(Figure("drain, as a part of the floor", drain / floor.value, ""))
                say(figures[-1])
        finally:
            bench.clean()
        if options["json"]:
            self.stdout.write(json.dumps([figure.__dict__ for figure in figures]))

    def _say(self, figure: Figure) -> None:
        value = "not measured" if figure.value is None else f"{figure.value:,.3f} {figure.unit}"
        note = f"  ({figure.note})" if figure.note else ""
        self.stdout.write(f"{figure.name:<55} {value}{note}")
