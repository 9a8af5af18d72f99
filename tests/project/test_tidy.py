"""The project keeps the rules of the house; test_rules.py shows that they can be broken."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable

import pytest

from tests.project import code_rules, doc_rules
from tests.project.purity import brought_along
from tests.project.sources import ROOT, Source, python_files, read, text_files

PACKAGE = [s for s in python_files("backwave_django") if "/migrations/" not in s.path]
TESTS = python_files("tests")
EVERYTHING = text_files()

# Virtual time has to be made of something.
OWN_TIME = ("backwave_django/runtime/", "backwave_django/testing/")
# The rules and their own tests are full of bad examples.
BAD_EXAMPLES = ("tests/project/test_rules.py", "tests/project/code_rules.py")


def report(findings: Iterable[str]) -> None:
    """Fail with every finding on a line of its own."""
    if lines := list(findings):
        pytest.fail("\n".join(lines), pytrace=False)


def each(rule, sources: Iterable[Source]) -> list[str]:
    """Apply one rule to many files."""
    return [finding for source in sources for finding in rule(source)]


def existing(path: str) -> Source:
    """Read a file that has to be there."""
    if not (ROOT / path).is_file():
        pytest.fail(f"{path} is missing", pytrace=False)
    return read(ROOT / path)


def test_files_are_short():
    """No file of the package passes 400 lines, migrations excepted."""
    report(each(code_rules.long_files, PACKAGE))


def test_functions_are_short():
    """No function of the package passes 60 lines."""
    report(each(code_rules.long_functions, PACKAGE))


def test_time_and_chance_are_arguments():
    """Only runtime/ reads a clock or makes an id."""
    report(
        each(
            code_rules.clock_and_chance,
            [source for source in PACKAGE if not source.path.startswith(OWN_TIME)],
        )
    )


def test_everything_public_says_what_it_is_for():
    """Modules, public classes and public functions of the package have docstrings."""
    report(each(code_rules.missing_docstrings, PACKAGE))


def test_test_modules_say_what_they_are_for():
    """Modules of the test suite have docstrings."""
    report(
        finding
        for finding in each(code_rules.missing_docstrings, TESTS)
        if finding.endswith("the module has no docstring")
    )


def test_nothing_is_left_open():
    """No file says that something is still to be done."""
    report(each(code_rules.open_ends, _without_examples(EVERYTHING)))


def test_no_file_knows_a_machine():
    """No file holds an absolute path of somebody's machine."""
    report(each(code_rules.machine_paths, _without_examples(EVERYTHING)))


def test_tests_wait_for_what_they_need():
    """No test sleeps; tests/support has the one loop that waits."""
    waiting = [source for source in TESTS if not source.path.startswith("tests/support/")]
    report(each(code_rules.sleeps, _without_examples(waiting)))


def test_skipped_tests_have_a_reason():
    """A test that does not run says why."""
    report(each(code_rules.skips_without_reason, TESTS))


def test_the_core_and_the_pure_stores_bring_no_django():
    """Importing decisions, contract and in-memory store loads no Django."""
    modules = [
        source.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for source in PACKAGE
        if source.path.startswith("backwave_django/core/")
    ]
    pure = ("capabilities", "contract", "errors", "memory", "values")
    modules += [f"backwave_django.storage.{name}" for name in pure]
    assert len(modules) > len(pure) + 5
    assert brought_along(modules, ["django", "asgiref", "sqlite3", "psycopg"]) == []


def test_importing_the_package_needs_no_settings():
    """The public face is lazy."""
    assert brought_along(["backwave_django"], ["django", "backwave_django.models"]) == []


def test_settings_are_documented_with_their_defaults():
    """docs/reference/settings.md agrees with what the code takes."""
    from backwave_django import conf
    from backwave_django.core.limits import LIMIT_NAMES, Limits
    from backwave_django.core.options import WorkerGroupOptions

    options = doc_rules.field_defaults(WorkerGroupOptions)
    limits = doc_rules.field_defaults(Limits)
    limits = {published: limits[name] for published, name in LIMIT_NAMES.items()}
    del options["name"]  # the key of the group, not an option
    expected = {
        name: "`RetryPolicy()`" if name == "retry_policy" else doc_rules.default_text(value)
        for name, value in {**options, **limits}.items()
    }
    page = existing("docs/reference/settings.md")
    report(doc_rules.undocumented_settings(page, expected, conf.SETTING_KEYS))


def test_checks_are_documented_once():
    """docs/reference/checks.md agrees with the ids in the code."""
    page = existing("docs/reference/checks.md")
    used = doc_rules.check_ids(PACKAGE)
    assert used
    report(doc_rules.inconsistent_checks(used, page))


def test_decisions_are_complete():
    """Each ADR has its sections, and none shares its number."""
    pages = [read(path) for path in sorted((ROOT / "docs/decisions").glob("*.md"))]
    assert pages
    report([*each(doc_rules.incomplete_decision, pages), *doc_rules.repeated_numbers(pages)])


def test_one_command_tests_everything():
    """README names `make test`, and the continuous integration runs nothing else."""
    assert "make test" in existing("README.md").text
    report(doc_rules.other_commands(existing(".ci/run")))


def test_every_module_has_its_layer():
    """No module stands outside the import contracts."""
    modules = {
        "backwave_django." + source.path.split("/")[1].removesuffix(".py")
        for source in PACKAGE
        if source.path != "backwave_django/__init__.py"
    }
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = next(c["layers"] for c in contracts["contracts"] if c["id"] == "layers")
    report(doc_rules.modules_without_layer(sorted(modules), layers))


def _without_examples(sources: Iterable[Source]) -> list[Source]:
    return [source for source in sources if source.path not in BAD_EXAMPLES]
