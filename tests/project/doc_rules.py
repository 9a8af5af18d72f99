"""House rules about documents and commands; each gives what it found, one line a finding."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from tests.project.sources import Source

ADR_SECTIONS = ("Status", "Context", "Decision", "Consequences", "How it is checked")

_CHECK_ID = re.compile(r"backwave_django\.[EWI]\d{3}\b")
_SHELL_FRAME = re.compile(r"^(#.*|set -.*|cd .*|)$")


# --- Settings --------------------------------------------------------------------------


def documented_defaults(page: Source) -> dict[str, str]:
    """Read the tables of a page: the name in the first column, the text under "default"."""
    found: dict[str, str] = {}
    column: int | None = None
    for line in page.text.splitlines():
        if not line.lstrip().startswith("|"):
            column = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if column is None:
            titles = [cell.lower() for cell in cells]
            column = titles.index("default") if "default" in titles else len(cells)
        elif (name := re.fullmatch(r"`([\w]+)`", cells[0])) and column < len(cells):
            found[name[1]] = cells[column]
    return found


def default_text(value: object) -> str:
    """Write a default as the settings page does; ``MISSING`` is ``required``."""
    if value is dataclasses.MISSING:
        return "required"
    if isinstance(value, timedelta):
        return f"`{value.total_seconds():g} s`"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"`{value:,}`".replace(",", "_") if value >= 10_000 else f"`{value}`"
    return f"`{value!r}`"


def field_defaults(options: Any) -> dict[str, object]:
    """Give the default of each field of a dataclass."""
    return {
        field.name: field.default
        if field.default_factory is dataclasses.MISSING
        else field.default_factory()
        for field in dataclasses.fields(options)
    }


def undocumented_settings(
    page: Source, expected: Mapping[str, str], keys: Iterable[str] = ()
) -> Iterator[str]:
    """Every setting is on the page with its default; a default may go on with words."""
    found = documented_defaults(page)
    for name in keys:
        if not found.get(name):
            yield f"{page.path}: {name} has no row with a default"
    for name, default in expected.items():
        if name not in found:
            yield f"{page.path}: {name} has no row"
        elif not found[name].startswith(default):
            yield f"{page.path}: the default of {name} is {default}, not {found[name]!r}"
    for name in found.keys() - set(expected) - set(keys):
        yield f"{page.path}: {name} is no setting"


# --- Checks ----------------------------------------------------------------------------


def check_ids(sources: Iterable[Source]) -> Counter[str]:
    """Count the places in the code that give a check its id."""
    return Counter(
        node.value.value
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.keyword)
        and node.arg == "id"
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and _CHECK_ID.fullmatch(node.value.value)
    )


def inconsistent_checks(used: Counter[str], page: Source) -> Iterator[str]:
    """An id means one thing, and the page explains it at one place."""
    documented = Counter(_CHECK_ID.findall(page.text))
    for name, count in used.items():
        if count > 1:
            yield f"{name} is given at {count} places"
        if documented[name] != 1:
            yield f"{page.path}: {name} appears {documented[name]} times, not once"
    for name in documented.keys() - used.keys():
        yield f"{page.path}: {name} is no check"


# --- Decisions -------------------------------------------------------------------------


def incomplete_decision(page: Source) -> Iterator[str]:
    """A decision without its context cannot be revised, and one unchecked is a wish."""
    number = re.search(r"(\d{4})-[a-z0-9-]+\.md$", page.path)
    if number is None:
        yield f"{page.path}: the name is not NNNN-short-title.md"
    elif not page.text.startswith(f"# {number[1]}. "):
        yield f"{page.path}: the title does not begin with '# {number[1]}. '"
    sections = re.split(r"^## (.+)$", page.text, flags=re.MULTILINE)
    titles, bodies = sections[1::2], sections[2::2]
    if [title for title in titles if title in ADR_SECTIONS] != list(ADR_SECTIONS):
        yield f"{page.path}: the sections are not {', '.join(ADR_SECTIONS)}, in this order"
    for title, body in zip(titles, bodies, strict=True):
        if not body.strip():
            yield f"{page.path}: section {title} is empty"


def repeated_numbers(pages: Iterable[Source]) -> Iterator[str]:
    """A number stands for one decision."""
    for number, count in Counter(page.path.rpartition("/")[2][:4] for page in pages).items():
        if count > 1:
            yield f"docs/decisions: number {number} is taken {count} times"


# --- Commands and layers ---------------------------------------------------------------


def other_commands(script: Source) -> Iterator[str]:
    """What the continuous integration runs is what a contributor runs."""
    commands = [line for line in script.text.splitlines() if not _SHELL_FRAME.match(line.strip())]
    if commands != ["make test"]:
        yield f"{script.path}: runs {commands}, not make test alone"


def modules_without_layer(modules: Iterable[str], layers: Iterable[str]) -> Iterator[str]:
    """A new module finds its place among the layers before it grows."""
    placed = {re.sub(r"[()\s]", "", name) for layer in layers for name in re.split("[|:]", layer)}
    for module in modules:
        if not any(name == module or name.startswith(f"{module}.") for name in placed):
            yield f"{module} is in no layer of [tool.importlinter] in pyproject.toml"
