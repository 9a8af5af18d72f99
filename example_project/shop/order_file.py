"""Orders from a CSV file: UTF-8, a header, and one order per line.

Each line is read on its own, so a broken one, say with a quote that is never closed,
costs that line and no other.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from django.core.exceptions import ValidationError

from .models import Order
from .orders import OrderRefused, place_order

COLUMNS = (
    "number", "placed_on", "customer", "email", "item", "amount", "currency", "card_token",
)  # fmt: skip
SIZE_MAX = 10_000_000
_CONTROL = {"Cc", "Zl", "Zp"}

# By the code of Django's validation error. Its texts repeat the value as it came.
REASONS = {
    "blank": "is missing",
    "invalid_choice": "is not known here",
    "invalid_date": "is not in the calendar",
    "max_decimal_places": "has too many decimals",
    "max_digits": "has too many digits",
    "max_length": "is too long",
    "max_whole_digits": "has too many digits",
    "min_value": "is too small",
}


class UnreadableFile(Exception):
    """Not a file of orders; nothing of it was read."""


class BrokenLine(Exception):
    """Not an order; the text says why and can be printed anywhere."""


@dataclass
class ImportReport:
    """What became of the lines of a file."""

    read: int = 0
    committed: int = 0
    already_there: int = 0
    rolled_back: int = 0
    broken: int = 0
    jobs: int = 0
    first_lines: dict[str, int] = field(default_factory=dict, repr=False)


def import_orders(path: Path, tell: Callable[[str], None]) -> ImportReport:
    """Place each order of a file; ``tell`` gets one line for each that is not taken.

    Raises:
        UnreadableFile: nothing was imported.
    """
    report = ImportReport()
    for number, line in enumerate(_lines(path), start=2):
        report.read += 1
        try:
            _import_line(line, number, report)
        except BrokenLine as error:
            report.broken += 1
            tell(f"line {number}: broken, skipped: {error}")
        except OrderRefused as error:
            report.rolled_back += 1
            tell(f"line {number}: rolled back: {error}")
    return report


def _import_line(line: str, number: int, report: ImportReport) -> None:
    order = parse_line(line)
    first = report.first_lines.setdefault(order.number, number)
    if first != number:
        raise BrokenLine(f"number: {_printable(order.number)} is on line {first} already")
    placed = place_order(order)
    if placed.job_ids:
        report.committed += 1
        report.jobs += len(placed.job_ids)
    else:
        report.already_there += 1


def parse_line(line: str) -> Order:
    """Make an unsaved order of a line.

    Raises:
        BrokenLine: it is none.
    """
    try:
        values = next(csv.reader([line], strict=True), [])
    except csv.Error as error:
        raise BrokenLine(f"no CSV: {error}") from error
    if not values:
        raise BrokenLine("the line is empty")
    if len(values) != len(COLUMNS):
        raise BrokenLine(f"{len(values)} columns, not {len(COLUMNS)}")
    named = dict(zip(COLUMNS, values, strict=True))
    for name, value in named.items():
        if any(unicodedata.category(character) in _CONTROL for character in value):
            raise BrokenLine(f"{name}: a control character in {_printable(value)}")
    # Decimal() also reads "1e3", "1_000" and "NaN", which nobody means in a price.
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", named["amount"]):
        raise BrokenLine(f"amount: {_printable(named['amount'])} is not like 12.50")
    order = Order(**named)
    try:
        order.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        name, (first, *_) = next(iter(error.error_dict.items()))
        reason = REASONS.get(first.code or "", "has the wrong form")
        raise BrokenLine(f"{name}: {_printable(named[name])} {reason}") from error
    return order


def _printable(value: str) -> str:
    """Quote a value, short, with all that a terminal could stumble over as escapes."""
    return ascii(value if len(value) <= 40 else value[:40] + "...")


def _lines(path: Path) -> list[str]:
    """Give the lines after the header; all are read before the first is imported."""
    try:
        if path.exists() and not path.is_file():
            raise UnreadableFile("is not a file")
        if path.stat().st_size > SIZE_MAX:
            raise UnreadableFile(f"is over {SIZE_MAX:,} bytes; split it")
        with path.open(encoding="utf-8-sig") as file:
            lines = file.readlines()
    except UnicodeDecodeError:
        raise UnreadableFile("is not UTF-8 text") from None
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}") from error
    except ValueError:
        raise UnreadableFile("cannot be read: not a file name") from None
    if not lines:
        raise UnreadableFile("is empty")
    if lines[0].strip() != ",".join(COLUMNS):
        raise UnreadableFile(f"must begin with the line {','.join(COLUMNS)}")
    return lines[1:]
