"""Broken stores: for each rule of the suite at least one that its tests have to find.

Each mutant is the in-memory store with one fault, which its docstring names. A test of a
rule that no mutant of that rule turns red tests nothing; a mutant that none of them turns
red shows what is not tested.
"""

from __future__ import annotations

import importlib

from ....storage.memory import InMemoryStore
from .registry import MUTANTS

CHAPTERS = (
    "ground_rules",
    "names",
    "jobs",
    "enqueue",
    "claim",
    "leases",
    "outcomes",
    "graph",
    "operating",
    "ancestry",
    "reads",
    "tagging",
    "purging",
    "scheduling",
    "observing",
)


def mutants_by_rule() -> dict[str, list[type[InMemoryStore]]]:
    """Give the mutants of each rule."""
    for chapter in CHAPTERS:
        importlib.import_module(f".{chapter}", __name__)
    return MUTANTS
