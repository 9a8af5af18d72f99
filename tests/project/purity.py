"""What an import brings along, seen in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from tests.project.sources import ROOT

_REPORT = """
import importlib, sys
wanted, unwanted = sys.argv[1].split(","), sys.argv[2].split(",")
for name in wanted:
    importlib.import_module(name)
print(",".join(name for name in unwanted if name in sys.modules))
"""


def brought_along(modules: Iterable[str], unwanted: Iterable[str]) -> list[str]:
    """Import ``modules``, without any settings; gives those of ``unwanted`` that came too."""
    answer = subprocess.run(
        [sys.executable, "-c", _REPORT, ",".join(modules), ",".join(unwanted)],
        cwd=ROOT,
        env={"PATH": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return [name for name in answer.stdout.strip().split(",") if name]
