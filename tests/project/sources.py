"""The files of the project, as the house rules see them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NOT_OURS = {".git", ".venv", ".nox", ".cache", ".hypothesis", "build", "dist", "__pycache__"}
_TEXT = {".cfg", ".css", ".csv", ".html", ".ini", ".js", ".md", ".py", ".toml", ".txt", ".yaml"}
_TEXT_NAMES = {"Makefile", "run", "LICENSE"}


@dataclass(frozen=True)
class Source:
    """A file: its path within the project, and what it holds."""

    path: str
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of a Python file."""
        return ast.parse(self.text, self.path)

    def at(self, line: int, what: str) -> str:
        """Say what is wrong, in the form that editors can jump to."""
        return f"{self.path}:{line}: {what}"


def read(path: Path, root: Path = ROOT) -> Source:
    """Read one file."""
    return Source(path.relative_to(root).as_posix(), path.read_text("utf-8"))


def python_files(*folders: str, root: Path = ROOT) -> list[Source]:
    """Read the Python files of some folders; those that do not exist hold none."""
    return [read(path, root) for name in folders for path in _walk(root / name, {".py"}, set())]


def text_files(root: Path = ROOT) -> list[Source]:
    """Read every text file of the project."""
    return [read(path, root) for path in _walk(root, _TEXT, _TEXT_NAMES)]


def _walk(folder: Path, suffixes: set[str], names: set[str]) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name in _NOT_OURS:
            continue
        if path.is_dir():
            yield from _walk(path, suffixes, names)
        elif path.suffix in suffixes or path.name in names:
            yield path
