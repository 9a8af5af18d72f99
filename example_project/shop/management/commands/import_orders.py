"""``manage.py import_orders FILE``: place the orders of a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from shop.order_file import COLUMNS, UnreadableFile, import_orders

CANNOT_START = 2


class Command(BaseCommand):
    """Says what it skipped and why, and how many orders became what."""

    help = (
        "Place the orders of a CSV file, each with its background jobs in one transaction. "
        "Orders that are there already are left alone, so a file may be imported again. "
        f"Columns: {', '.join(COLUMNS)}."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the argument."""
        parser.add_argument("file", type=Path, help="such as shop/data/orders.csv")

    def handle(self, **options: Any) -> None:
        """Import, line by line."""
        try:
            report = import_orders(options["file"], self.stdout.write)
        except UnreadableFile as error:
            name = ascii(str(options["file"]))
            raise CommandError(f"{name} {error}", returncode=CANNOT_START) from error
        except DatabaseError as error:
            raise CommandError(
                f"the database fails: {' '.join(str(error).split())}; has manage.py migrate run?",
                returncode=CANNOT_START,
            ) from error
        for name, count in (
            ("orders read", report.read),
            ("  committed", report.committed),
            ("  already there", report.already_there),
            ("  rolled back", report.rolled_back),
            ("  broken lines", report.broken),
            ("jobs asked for", report.jobs),
        ):
            self.stdout.write(f"{name:<24}{count:>7,}")
