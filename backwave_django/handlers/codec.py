"""Payloads and outputs as JSON, typed both ways.

What is encoded is decoded again at once, with the declared types: a value that its
handler could not read is refused where it is enqueued, not quarantined later.

Source: https://jcristharif.com/msgspec/supported-types.html for the types.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from .errors import InvalidPayload

PLAIN_JSON = "str, int, float, bool, None, list, dict with str keys"


class Codec:
    """Between the values of one type and bytes.

    Args:
        subject: what the errors call it, such as ``payload of job 'send-receipt'``.
        type_: the type to decode to; ``Any`` for plain JSON.
        untyped: fields of the type that have no annotation: plain JSON only, since
            nothing would bring any other type back.
    """

    def __init__(self, subject: str, type_: Any, untyped: frozenset[str] = frozenset()) -> None:
        self.subject = subject
        self._untyped = untyped
        try:
            self._decoder = msgspec.json.Decoder(type_)
        except (TypeError, NameError) as error:
            raise InvalidPayload(f"{subject}: {error}") from error

    def encode(self, value: Any) -> bytes:
        """Give the bytes of ``value``.

        Raises:
            InvalidPayload: a part of it has no JSON form, or not the declared type; the
                message names the part.
        """
        for name in self._untyped & value.keys() if self._untyped else ():
            self._check_plain(value[name], name)
        encoded = self._to_json(value)
        if b"null" in encoded:  # NaN and Infinity would be written as null
            self._refuse_non_finite(value)
        try:
            self._decoder.decode(encoded)
        except msgspec.ValidationError as error:
            raise InvalidPayload(f"{self.subject}: {explained(error)}") from error
        return encoded

    def decode(self, data: bytes) -> Any:
        """Give the value of ``data``.

        Raises:
            InvalidPayload: not JSON, or not of the declared type; the message names the
                field and says why.
        """
        try:
            return self._decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidPayload(f"{self.subject}: {explained(error)}") from error

    def _to_json(self, value: Any) -> bytes:
        try:
            return msgspec.json.encode(value, enc_hook=_unsupported)
        except _Unsupported as refusal:
            where = _path_to(value, refusal.value) or "value"
            raise InvalidPayload(f"{self.subject}: {where}: {refusal}") from None
        except UnicodeEncodeError as error:
            raise InvalidPayload(
                f"{self.subject}: text with a lone surrogate cannot be stored: {error.reason}"
            ) from None
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidPayload(f"{self.subject}: {error}") from error

    def _refuse_non_finite(self, value: Any) -> None:
        where = _non_finite(msgspec.to_builtins(value), "")
        if where:
            raise InvalidPayload(
                f"{self.subject}: {where}: NaN and Infinity have no JSON form; "
                "pass None, a str or a Decimal instead"
            )

    def _check_plain(self, value: Any, where: str) -> None:
        if value is None or type(value) in (str, int, float, bool):
            return
        if type(value) is list:
            for place, item in enumerate(value):
                self._check_plain(item, f"{where}[{place}]")
        elif type(value) is dict and all(type(key) is str for key in value):
            for key, item in value.items():
                self._check_plain(item, f"{where}.{key}")
        else:
            try:
                msgspec.json.encode(value, enc_hook=_unsupported)
            except _Unsupported as refusal:
                raise InvalidPayload(f"{self.subject}: {where}: {refusal}") from None
            except (TypeError, ValueError, OverflowError):
                pass
            raise InvalidPayload(
                f"{self.subject}: {where}: a {type(value).__name__} would not come back as one; "
                f"annotate the parameter with its type, or pass plain JSON ({PLAIN_JSON})"
            )


class _Unsupported(Exception):
    """Carries the object that has no JSON form out of the encoder."""

    def __init__(self, value: object, advice: str) -> None:
        super().__init__(advice)
        self.value = value


def _unsupported(value: Any) -> Any:
    """Refuse what msgspec does not know, with advice on what to pass instead."""
    kind = type(value).__name__
    if hasattr(value, "_meta") and hasattr(value, "pk"):
        advice = (
            f"a model instance ({kind}) cannot be stored, and would be stale when the job "
            "runs; pass its primary key (.pk) and load it in the handler"
        )
    elif hasattr(value, "model") and hasattr(value, "query"):
        advice = f"a {kind} cannot be stored; pass a list of primary keys"
    elif isinstance(value, Callable):  # type: ignore[arg-type]
        advice = (
            f"a function or class ({getattr(value, '__qualname__', kind)}) cannot be stored; "
            "pass the data that it needs"
        )
    else:
        advice = f"a {kind} has no JSON form; pass plain data, a dataclass or a msgspec.Struct"
    raise _Unsupported(value, advice)


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f".{key}", item) for key, item in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(f"[{place}]", item) for place, item in enumerate(value)]
    fields: Any = getattr(value, "__struct_fields__", ())
    fields = fields or getattr(value, "__dataclass_fields__", ())
    return [(f".{name}", getattr(value, name, None)) for name in fields]


def _path_to(value: Any, target: object, depth: int = 50) -> str:
    """Give where in ``value`` the very object ``target`` stands, such as ``order.items[2]``."""
    if depth:
        for step, item in _parts(value):
            if item is target:
                return step.lstrip(".")
            deeper = _path_to(item, target, depth - 1)
            if deeper:
                return f"{step}{'' if deeper.startswith('[') else '.'}{deeper}".lstrip(".")
    return ""


def _non_finite(value: Any, where: str) -> str:
    """Give where in plain JSON a number stands that is not finite."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else (where.lstrip(".") or "value")
    for step, item in _parts(value):
        found = _non_finite(item, where + step)
        if found:
            return found
    return ""


def explained(error: Exception) -> str:
    """Say a decoding error with the field first: ``order_id: Expected `int`, got `str```."""
    text = str(error)
    message, _, path = text.partition(" - at `")
    where = path.rstrip("`").removeprefix("$").lstrip(".")
    return f"{where}: {message}" if where else text
