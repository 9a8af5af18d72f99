"""Payloads and outputs as JSON, typed both ways.

What is encoded is decoded again at once, with the declared types, and must be what was
given: a value that its handler could not read, or would read as something else, is
refused where it is enqueued.

Source: https://jcristharif.com/msgspec/supported-types.html for the types.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import msgspec

from .errors import InvalidPayload

PLAIN_JSON = "str, int, float, bool, None, list, dict with str keys"


class Codec:
    """Between the values of one type and bytes.

    Args:
        subject: what the errors call it, such as ``payload of job 'send-receipt'``.
        type_: the type to decode to; ``Any`` for plain JSON.
        exact: whether what arrives must be what was sent. Not so where the reader alone
            knows the type, as with outputs.
    """

    def __init__(self, subject: str, type_: Any, *, exact: bool = True) -> None:
        self.subject = subject
        self._exact = exact
        try:
            self._decoder = msgspec.json.Decoder(type_)
        except (TypeError, NameError) as error:
            raise InvalidPayload(f"{subject}: {error}") from error

    def encode(self, value: Any) -> bytes:
        """Give the bytes of ``value``.

        Raises:
            InvalidPayload: a part of it has no JSON form, not the declared type, or would
                arrive as something else; the message names the part.
        """
        encoded = self._to_json(value)
        if b"null" in encoded:  # NaN and Infinity would be written as null
            self._refuse_non_finite(value)
        arrived = self.decode(encoded)
        try:
            changed = _difference(value, arrived, "") if self._exact else ""
        except RecursionError as error:
            raise InvalidPayload(f"{self.subject}: nested too deeply") from error
        if changed:
            raise InvalidPayload(f"{self.subject}: {changed}")
        return encoded

    def decode(self, data: bytes) -> Any:
        """Give the value of ``data``.

        Raises:
            InvalidPayload: not JSON, not of the declared type, or refused by the type's
                own checks; the message names the field and says why.
        """
        try:
            return self._decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidPayload(f"{self.subject}: {explained(error)}") from error
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
            raise InvalidPayload(f"{self.subject}: {text}") from error

    def _refuse_non_finite(self, value: Any) -> None:
        where = _non_finite(msgspec.to_builtins(value, enc_hook=_unsupported), "")
        if where:
            raise InvalidPayload(
                f"{self.subject}: {where}: NaN and Infinity have no JSON form; "
                "pass None, a str or a Decimal instead"
            )

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
        except RecursionError as error:
            raise InvalidPayload(f"{self.subject}: nested too deeply") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidPayload(f"{self.subject}: {error}") from error


class _Unsupported(Exception):
    """Carries the object that has no JSON form out of the encoder."""

    def __init__(self, value: object, advice: str) -> None:
        super().__init__(advice)
        self.value = value


def _unsupported(value: Any) -> Any:
    """Refuse what msgspec does not know, with advice on what to pass instead."""
    if isinstance(value, str):  # as a rendered template is
        return "".join([value])
    if isinstance(value, datetime):  # as a test clock gives
        return datetime.combine(value.date(), value.timetz())
    kind = type(value).__name__
    if isinstance(value, type) or (callable(value) and not hasattr(value, "query")):
        advice = (
            f"a function or class ({getattr(value, '__qualname__', kind)}) cannot be stored; "
            "pass the data that it needs"
        )
    elif hasattr(value, "_meta") and hasattr(value, "pk"):
        advice = (
            f"a model instance ({kind}) cannot be stored, and would be stale when the job "
            "runs; pass its primary key (.pk) and load it in the handler"
        )
    elif hasattr(value, "model") and hasattr(value, "query"):
        advice = f"a {kind} cannot be stored; pass a list of primary keys"
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


def _difference(sent: Any, arrived: Any, where: str) -> str:
    """Say where what arrives is not what was sent, and what to do; empty if nowhere."""
    kind = type(sent)
    if kind is not type(arrived) and not _is_same_in_kind(sent, arrived):
        return f"{where.lstrip('.') or 'value'}: {_advice(sent)}"
    if kind in (str, int, bool, type(None)):
        return ""
    if isinstance(sent, dict):
        if sent.keys() != arrived.keys():
            return f"{where.lstrip('.') or 'value'}: {_advice(sent)}"
        pairs = [(f".{key}", item, arrived[key]) for key, item in sent.items()]
    elif isinstance(sent, list | tuple):
        both = zip(sent, arrived, strict=True)
        pairs = [(f"[{place}]", item, came) for place, (item, came) in enumerate(both)]
    elif isinstance(sent, set | frozenset):
        pairs = []
    else:
        pairs = [(step, item, getattr(arrived, step[1:], None)) for step, item in _parts(sent)]
    for step, item, came in pairs:
        found = _difference(item, came, where + step)
        if found:
            return found
    if not pairs and not _is_record(sent) and not _is_equal(sent, arrived):
        return f"{where.lstrip('.') or 'value'}: {sent!r} would arrive as {arrived!r}"
    return ""


def _is_record(value: Any) -> bool:
    return hasattr(value, "__struct_fields__") or hasattr(value, "__dataclass_fields__")


def _is_equal(sent: Any, arrived: Any) -> bool:
    try:
        return bool(sent == arrived)
    except ArithmeticError:  # a signaling NaN of ``Decimal`` cannot be compared
        return False


def _is_same_in_kind(sent: Any, arrived: Any) -> bool:
    """Whether another type is no loss: an int for a float, a subclass that adds no field.

    A member of ``TextChoices`` arrives as the text that it is, a frozen test clock's
    ``datetime`` as a plain one; that they are equal is seen to afterwards.
    """
    if isinstance(arrived, float):
        return isinstance(sent, int) and not isinstance(sent, bool) and sent == arrived
    return isinstance(sent, type(arrived)) and not _is_record(arrived)


def _advice(sent: Any) -> str:
    return (
        f"a {type(sent).__name__} would not come back as one; annotate the parameter with its "
        f"type, or pass plain JSON ({PLAIN_JSON})"
    )


def explained(error: Exception) -> str:
    """Say a decoding error with the field first: ``order_id: Expected `int`, got `str```."""
    text = str(error)
    message, _, path = text.partition(" - at `")
    where = path.rstrip("`").removeprefix("$").lstrip(".")
    return f"{where}: {message}" if where else text
