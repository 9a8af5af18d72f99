"""House rules about Python files; each rule gives what it found, one line a finding."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.project.sources import Source

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60

_TIME_AND_CHANCE = {
    "asyncio.sleep",
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "django.utils.timezone.localdate",
    "django.utils.timezone.localtime",
    "django.utils.timezone.now",
    "os.getrandom",
    "os.urandom",
    "time.clock_gettime",
    "time.clock_gettime_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.perf_counter",
    "time.perf_counter_ns",
    "time.sleep",
    "time.time",
    "time.time_ns",
    "uuid.uuid1",
    "uuid.uuid4",
    "uuid.uuid6",
    "uuid.uuid7",
}
_CHANCE_MODULES = ("random", "secrets")

# Written in two halves, so that this file passes its own rule.
_OPEN_ENDS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
_MACHINE_PATHS = re.compile(
    r"(?<![\w.$}/])/(?:home|root|work|Users)(?:/[\w.-]+|\b(?=[\"'`\s]))|\b[A-Z]:\\Users\\"
)
_SLEEP = re.compile(r"\bsleep\((?!0\))")


def long_files(source: Source) -> Iterator[str]:
    """A long file is a sign that a noun is missing."""
    count = len(source.text.splitlines())
    if count > MAX_FILE_LINES:
        yield source.at(count, f"{count} lines; at most {MAX_FILE_LINES}")


def long_functions(source: Source) -> Iterator[str]:
    """A function that does not fit on a screen is not read as a whole."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            count = (node.end_lineno or node.lineno) - node.lineno + 1
            if count > MAX_FUNCTION_LINES:
                yield source.at(
                    node.lineno, f"{node.name} has {count} lines; at most {MAX_FUNCTION_LINES}"
                )


def clock_and_chance(source: Source) -> Iterator[str]:
    """Time and chance are arguments; one module reads the clock, one makes ids."""
    names = _imported_names(source.tree)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute | ast.Name):
            dotted = _dotted(node, names)
            if dotted is not None and _is_time_or_chance(dotted):
                yield source.at(node.lineno, f"{dotted}: take time and chance as arguments")
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if _is_time_or_chance(f"{node.module}.{alias.name}"):
                    yield source.at(node.lineno, f"imports {node.module}.{alias.name}")


def _is_time_or_chance(dotted: str) -> bool:
    return dotted in _TIME_AND_CHANCE or dotted.partition(".")[0] in _CHANCE_MODULES


def _imported_names(tree: ast.Module) -> dict[str, str]:
    """Map each name that an import binds to what it stands for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                names[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value, names)
        return f"{owner}.{node.attr}" if owner else None
    return None


def missing_docstrings(source: Source) -> Iterator[str]:
    """Every module, and every public class and function, says what it is for."""
    if source.text.strip() and not ast.get_docstring(source.tree):
        yield source.at(1, "the module has no docstring")
    for node in _public_definitions(source.tree.body):
        if not ast.get_docstring(node):
            yield source.at(node.lineno, f"{node.name} has no docstring")


def _public_definitions(
    body: list[ast.stmt],
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            if node.name != "Meta":
                yield node
                yield from _public_definitions(node.body)
        elif (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and not node.name.startswith("_")
            and not _decorators(node) & {"overload", "setter", "override"}
        ):
            yield node


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}


def open_ends(source: Source) -> Iterator[str]:
    """What is left to do is written down where work is planned, not in the code."""
    yield from _matches(source, _OPEN_ENDS, "left open: {}")


def machine_paths(source: Source) -> Iterator[str]:
    """The project knows nothing of the machine that it was written on."""
    yield from _matches(source, _MACHINE_PATHS, "a path of somebody's machine: {}")


def sleeps(source: Source) -> Iterator[str]:
    """A test waits for what it needs (``tests.support.processes.wait_until``), not for a while."""
    yield from _matches(source, _SLEEP, "{}: use wait_until")


def _matches(source: Source, pattern: re.Pattern[str], what: str) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), 1):
        for match in pattern.finditer(line):
            yield source.at(number, what.format(match[0]))


def skips_without_reason(source: Source) -> Iterator[str]:
    """A test that does not run, or that may fail, says why."""
    reasoned: set[int] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if _skips(name):
                reasoned.add(id(node.func))
                if not _has_reason(node, name):
                    yield source.at(node.lineno, f"{name} without a reason")
    for node in ast.walk(source.tree):
        # A bare mark, as in `@pytest.mark.skip`.
        if isinstance(node, ast.Attribute) and id(node) not in reasoned:
            name = ast.unparse(node)
            if ".mark." in name and _skips(name):
                yield source.at(node.lineno, f"{name} without a reason")


def _skips(name: str) -> bool:
    owner, _, verb = name.rpartition(".")
    skipping = ("skip", "skipif", "xfail", "skipIf", "skipUnless", "skipTest", "importorskip")
    return bool(owner) and verb in skipping


def _has_reason(call: ast.Call, name: str) -> bool:
    if any(word.arg in ("reason", "msg") for word in call.keywords):
        return True
    # A condition comes first in skipif and its like; a reason only in these others.
    texts_needed = 2 if name.rpartition(".")[2] in ("skipIf", "skipUnless") else 1
    positional = name.rpartition(".")[2] in ("skip", "xfail", "skipTest", "skipIf", "skipUnless")
    first = call.args[texts_needed - 1 :]
    return positional and bool(first) and not _is_empty_text(first[0])


def _is_empty_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not str(node.value).strip()
