"""A private copy of the example shop, driven through its command line only."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "example_project"
_MADE_BY_RUNNING = shutil.ignore_patterns(
    "db.sqlite3*", "sent_mail", "worker.log", ".env", "var", "__pycache__"
)
HEADER = "number,placed_on,customer,email,item,amount,currency,card_token"


class Shop:
    """A copy of ``example_project`` in a folder of its own, with a database of its own."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder / "example_project"
        shutil.copytree(EXAMPLE, self.folder, ignore=_MADE_BY_RUNNING)
        # Nothing of this test run's own Django, and nothing of the machine's. Coverage of the
        # package comes from the other tests; here it would only double the time.
        foreign = ("DJANGO_", "DATABASE_", "SHOP_", "BACKWAVE_", "COVERAGE_")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(foreign)},
            "PYTHONPATH": str(ROOT),
            **environment,
        }

    def manage(
        self, *arguments: str, stdin: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run ``manage.py`` to its end."""
        return subprocess.run(
            [sys.executable, str(self.folder / "manage.py"), *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=110,
            check=False,
        )

    def succeed(self, *arguments: str, **options: str) -> str:
        """Run ``manage.py``, which must end well and complain of nothing; gives its output."""
        ended = self.manage(*arguments, **options)
        assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr
        return ended.stdout

    def work(self) -> None:
        """Run what is due."""
        ended = self.manage("backwave_worker", "--burst")
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def ask(self, code: str) -> Any:
        """Run code in the shop that leaves ``answer``, something that JSON can carry."""
        # As one argument of exec, so that the code needs no care for lines and quotes.
        script = f"exec({code!r}, scope := {{}}); import json; print(json.dumps(scope['answer']))"
        return json.loads(self.succeed("shell", "-v0", "-c", script))

    def write(self, name: str, *lines: str) -> str:
        """Write a file of orders; gives its path."""
        path = self.folder / name
        path.write_bytes("".join(f"{line}\n" for line in (HEADER, *lines)).encode())
        return str(path)

    def emails(self) -> list[str]:
        """Give the file names of the e-mails."""
        return sorted(path.name for path in (self.folder / "sent_mail").glob("*"))


def order_line(order: int, **changes: str) -> str:
    """Give the line of a good order, or of one with other columns."""
    values = {
        "number": f"S-{order:05}",
        "placed_on": "2026-05-04",
        "customer": "Zoë",
        "email": f"customer-{order}@example.com",
        "item": "Lamp",
        "amount": "12.50",
        "currency": "EUR",
        "card_token": "tok_pass_0001",
    }
    assert ",".join(values) == HEADER
    return ",".join({**values, **changes}.values())


def totals(output: str) -> dict[str, int]:
    """Read the table that a command printed, by the first words of each line."""
    rows = re.findall(r"^ *([a-z][a-z -]*[a-z])[a-z, -]*?  +([\d,]+)$", output, re.MULTILINE)
    return {name: int(count.replace(",", "")) for name, count in rows}
