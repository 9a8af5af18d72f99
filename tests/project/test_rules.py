"""Every house rule can fail: each is shown something bad, and something good."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

import pytest

from tests.project import code_rules, doc_rules
from tests.project.purity import brought_along
from tests.project.sources import Source, python_files, text_files

CASES = [
    # rule, bad, good
    (code_rules.long_files, "x = 1\n" * 401, "x = 1\n" * 400),
    (
        code_rules.long_functions,
        "class A:\n  async def f(self):\n" + "    x = 1\n" * 60,
        "class A:\n  async def f(self):\n" + "    x = 1\n" * 59,
    ),
    (code_rules.clock_and_chance, "import time\ntime.monotonic()", "import time\ntime.tzname"),
    (code_rules.clock_and_chance, "import time as t\nwait = t.sleep", "sleep = 1\nsleep"),
    (code_rules.clock_and_chance, "from time import sleep", "from time import struct_time"),
    (
        code_rules.clock_and_chance,
        "from datetime import datetime as d\nd.now(tz=None)",
        "from datetime import datetime\ndef f(now: datetime): return now",
    ),
    (
        code_rules.clock_and_chance,
        "import datetime\ndatetime.datetime.utcnow()",
        "import datetime\ndatetime.datetime.fromtimestamp(0)",
    ),
    (
        code_rules.clock_and_chance,
        "from django.utils import timezone\ntimezone.now()",
        "from datetime import timezone\ntimezone.utc",
    ),
    (code_rules.clock_and_chance, "import uuid\nuuid.uuid4()", "import uuid\nuuid.UUID(int=1)"),
    (code_rules.clock_and_chance, "import random\nrandom.Random(1)", "import re\nre.compile('')"),
    (code_rules.clock_and_chance, "from secrets import token_hex", "from .secrets import x"),
    (code_rules.clock_and_chance, "import os\nos.urandom(8)", "import os\nos.getpid()"),
    (code_rules.missing_docstrings, "x = 1", ""),
    (code_rules.missing_docstrings, "'''M.'''\ndef f(): ...", "'''M.'''\ndef _f(): ..."),
    (
        code_rules.missing_docstrings,
        "'''M.'''\nclass A:\n  '''A.'''\n  async def f(self): ...",
        "'''M.'''\nclass A:\n  '''A.'''\n  def __len__(self): ...\n  class Meta: ...",
    ),
    (code_rules.open_ends, "# TODO: later", "# the TODOS app"),
    (code_rules.open_ends, "FIXME", "fixed"),
    (code_rules.machine_paths, "cd /home/ada/shop", "see https://example.org/home/ada"),
    (code_rules.machine_paths, "DIR = '/root'", "path = root / 'work'"),
    (code_rules.machine_paths, "C:\\Users\\ada", "python/work/flow"),
    (code_rules.sleeps, "time.sleep(0.1)", "wait_until(done)"),
    (code_rules.sleeps, "await asyncio.sleep(1)", "await asyncio.sleep(0)"),
    (code_rules.skips_without_reason, "pytest.skip()", "pytest.skip('no PostgreSQL here')"),
    (code_rules.skips_without_reason, "pytest.skip(' ')", "pytest.skip(reason)"),
    (
        code_rules.skips_without_reason,
        "@pytest.mark.skip\ndef test(): ...",
        "@pytest.mark.skip(reason='why')\ndef test(): ...",
    ),
    (
        code_rules.skips_without_reason,
        "pytest.mark.skipif(condition)",
        "pytest.mark.skipif(condition, reason='why')",
    ),
    (code_rules.skips_without_reason, "pytest.mark.xfail()", "pytest.mark.xfail(reason='why')"),
    (code_rules.skips_without_reason, "unittest.skipIf(True)", "unittest.skipIf(True, 'why')"),
]


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    CASES,
    ids=[f"{rule.__name__}-{number}" for number, (rule, _, _) in enumerate(CASES)],
)
def test_a_code_rule_tells_bad_from_good(rule, bad, good):
    """A rule finds the bad file, with its path, and lets the good one pass."""
    assert all(finding.startswith("a.py:") for finding in rule(Source("a.py", bad)))
    assert list(rule(Source("a.py", bad)))
    assert list(rule(Source("a.py", good))) == []


@dataclass
class Options:
    """Some options."""

    policy: str
    size: int = 20
    big: int = 65_536
    pause: timedelta = timedelta(milliseconds=1500)


EXPECTED = {
    name: doc_rules.default_text(value) for name, value in doc_rules.field_defaults(Options).items()
}
SETTINGS_PAGE = """
| option | default | meaning |
| --- | --- | --- |
| `policy` | required | which |
| `size` | `20`, per pump | how many |
| `big` | `65_536` | bytes |
| `pause` | `1.5 s` | how long |

| key | default |
| --- | --- |
| `KEY` | `"x"` |
"""


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("", "", None),
        ("`20`", "`21`", "the default of size is `20`"),
        ("`1.5 s`", "`2 s`", "the default of pause is `1.5 s`"),
        ("| `big` |", "| big |", "big has no row"),
        ("`KEY`", "`KYE`", "KEY has no row"),
        ("`KEY`", "`KYE`", "KYE is no setting"),
        ('`"x"`', "", "KEY has no row with a default"),
        ("| option | default", "| option | value", "size has no row"),
    ],
)
def test_settings_page_and_code_must_agree(old, new, finding):
    """A missing row, a wrong default and a row too many are found."""
    page = Source("settings.md", SETTINGS_PAGE.replace(old, new) if old else SETTINGS_PAGE)
    found = list(doc_rules.undocumented_settings(page, EXPECTED, ["KEY"]))
    assert any(finding in line for line in found) if finding else found == []


@pytest.mark.parametrize(
    ("code", "page", "finding"),
    [
        ("f(id='backwave_django.E001')", "backwave_django.E001", None),
        ("f(id='backwave_django.E001')", "", "appears 0 times"),
        ("f(id='backwave_django.E001')", "backwave_django.E001 " * 2, "appears 2 times"),
        ("f(id='backwave_django.E001')\n" * 2, "backwave_django.E001", "at 2 places"),
        ("f(id='other')", "backwave_django.W009", "is no check"),
    ],
)
def test_checks_page_and_code_must_agree(code, page, finding):
    """A check that is not explained, explained twice, used twice or gone is found."""
    used = doc_rules.check_ids([Source("checks.py", code)])
    found = list(doc_rules.inconsistent_checks(used, Source("checks.md", page)))
    assert finding in found[0] if finding else found == []


ADR = "# 0007. Title\n\n" + "".join(f"## {name}\n\nText.\n\n" for name in doc_rules.ADR_SECTIONS)


@pytest.mark.parametrize(
    ("path", "text", "finding"),
    [
        ("0007-title.md", ADR, None),
        ("title.md", ADR, "NNNN-short-title.md"),
        ("0008-title.md", ADR, "'# 0008. '"),
        ("0007-title.md", ADR.replace("## Context", "## Contexts"), "the sections are not"),
        ("0007-title.md", ADR.replace("checked\n\nText.", "checked"), "checked is empty"),
    ],
)
def test_a_decision_must_be_complete(path, text, finding):
    """A wrong name, a wrong title, a missing section and an empty one are found."""
    found = list(doc_rules.incomplete_decision(Source(f"docs/decisions/{path}", text)))
    assert finding in found[0] if finding else found == []


def test_a_decision_must_have_its_own_number():
    """Two decisions with one number are found."""
    pages = [Source("docs/decisions/0001-a.md", ""), Source("docs/decisions/0001-b.md", "")]
    assert list(doc_rules.repeated_numbers(pages))
    assert not list(doc_rules.repeated_numbers(pages[:1]))


def test_the_integration_must_run_one_command():
    """A second command, or another one, is found."""
    good = "#!/bin/sh\n# Why.\nset -e\ncd here\nmake test\n"
    assert not list(doc_rules.other_commands(Source("run", good)))
    for bad in (good + "make lint\n", good.replace("make test", "pytest"), ""):
        assert list(doc_rules.other_commands(Source("run", bad)))


def test_a_module_must_have_a_layer():
    """A module that no layer names is found; a part of it is enough."""
    layers = ["(p.top)", "p.left | p.right.deep : p.other"]
    assert not list(
        doc_rules.modules_without_layer(["p.top", "p.left", "p.right", "p.other"], layers)
    )
    assert list(doc_rules.modules_without_layer(["p.to", "p.topper"], layers)) == [
        f"p.{name} is in no layer of [tool.importlinter] in pyproject.toml"
        for name in ("to", "topper")
    ]


def test_an_import_that_brings_something_along_is_seen():
    """The fresh interpreter reports what came, and nothing else."""
    assert brought_along(["decimal"], ["decimal", "django"]) == ["decimal"]
    assert brought_along(["django.conf"], ["django"]) == ["django"]
    with pytest.raises(AssertionError, match="no_such_module"):
        brought_along(["no_such_module"], ["django"])


def test_files_are_found_where_they_are(tmp_path):
    """Folders of tools are passed over; missing ones hold nothing."""
    for name in ("p/a.py", "p/deep/b.py", "p/__pycache__/c.py", ".venv/d.py", "Makefile", "e.bin"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert [s.path for s in python_files("p", "q", root=tmp_path)] == ["p/a.py", "p/deep/b.py"]
    assert {s.path for s in text_files(tmp_path)} == {"Makefile", "p/a.py", "p/deep/b.py"}


def test_ids_are_counted_where_they_are_given():
    """Only the id of a check counts, not a mention of it."""
    source = Source("a.py", "SILENCED = ['backwave_django.E001']\nf(id='backwave_django.E002')")
    assert doc_rules.check_ids([source]) == Counter({"backwave_django.E002": 1})
