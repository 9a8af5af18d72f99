"""The registry: one declaration per wire name, and who declared it."""

from __future__ import annotations

from typing import Any

from backwave_django import job
from backwave_django.handlers.registry import Conflict, Registry


def one(x: int) -> str:
    """Be one job."""
    return "one"


def other(x: int) -> str:
    """Be another."""
    return "other"


def invoked(registry: Registry, wire_name: str) -> Any:
    """Run what a wire name routes to."""
    job_type, payload = registry.route(wire_name, b'{"x":1}')
    assert job_type.invoke is not None
    return job_type.invoke(payload, None)  # type: ignore[arg-type]


def test_two_declarations_of_one_name_are_a_conflict(declared: Registry) -> None:
    """The first stands; both places are noted for the system check."""
    job("same")(one)
    job("same")(other)
    assert declared.conflicts == [Conflict("same", f"{__name__}.one", f"{__name__}.other")]
    assert invoked(declared, "same") == "one"


def test_a_conflict_is_noted_once(declared: Registry) -> None:
    """However often the second module is imported."""
    job("same")(one)
    for _ in range(3):
        job("same")(other)
    assert len(declared.conflicts) == 1
    job("same")(type("Payload", (), {}))
    assert len(declared.conflicts) == 2


def test_a_reloaded_declaration_replaces_itself(declared: Registry) -> None:
    """The same module and name is the same declaration; the newer code counts."""

    def version(answer: str) -> Any:
        def handler(x: int) -> str:
            return answer

        return handler

    job("reloaded")(version("old"))
    job("reloaded")(version("new"))
    assert declared.conflicts == []
    assert invoked(declared, "reloaded") == "new"


def test_names_differ_by_code_point(declared: Registry) -> None:
    """Case and composition of characters matter, as they do in storage."""
    job("mail")(one)
    job("Mail")(other)
    job("caf\u00e9")(one)
    job("cafe\u0301")(other)
    assert declared.conflicts == []
    assert len(declared.all()) == 4
    assert invoked(declared, "Mail") == "other"


def test_all_types_come_by_wire_name(declared: Registry) -> None:
    """In a steady order, for pages and checks."""
    for name in ("b", "c", "a"):
        job(name)(one)
    assert [job_type.wire_name for job_type in declared.all()] == ["a", "b", "c"]
    declared.remove("b")
    declared.remove("not there")
    assert declared.get("b") is None
    assert [job_type.wire_name for job_type in declared.all()] == ["a", "c"]


def test_a_codec_is_made_once_and_late(declared: Registry) -> None:
    """Annotations may name what is imported after the declaration."""

    def handler(x):
        return x

    handler.__annotations__["x"] = "Late"
    job_type = job("late")(handler).job_type
    handler.__globals__["Late"] = int
    try:
        assert job_type.codec is job_type.codec
        assert declared.route("late", b'{"x":1}')[1] == {"x": 1}
    finally:
        del handler.__globals__["Late"]
