"""docs/reference/transactions.md promises what is tested, and nothing else."""

from __future__ import annotations

import ast
import re

from tests.support.processes import ROOT

PAGE = (ROOT / "docs/reference/transactions.md").read_text()
FILES = ("test_transactions.py", "test_concurrency.py")


def names_of_tests_in(file: str) -> set[str]:
    """Give the names of the tests in a file."""
    tree = ast.parse((ROOT / "tests/client" / file).read_text())
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_each_test_that_the_page_names_exists() -> None:
    """A row without a test would be a wish."""
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert named - set.union(*map(names_of_tests_in, FILES)) == set()
    assert len(named) > 20


def test_each_row_names_its_test() -> None:
    """The last column of both tables."""
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    rows = [row for row in rows if not re.match(r"\| (Situation|---)", row)]
    assert [row for row in rows if not re.search(r"\| `test_\w+` \|$", row)] == []


def test_each_transaction_that_is_tested_is_on_the_page() -> None:
    """What users may meet is told to them, but for the race that only proves a row."""
    untold = names_of_tests_in("test_transactions.py") - set(re.findall(r"`(test_\w+)`", PAGE))
    assert untold == {"test_no_worker_ever_sees_a_job_without_its_data"}
