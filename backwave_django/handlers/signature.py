"""From the signature of a handler function to the type of its payload.

A payload is a JSON object with one field per parameter, by name. The parameter that
takes the ``JobContext`` is no part of it.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any, NotRequired, TypedDict

from .codec import Codec
from .context import JobContext
from .errors import DeclarationError, InvalidPayload

_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY
_VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
_VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD


class HandlerSignature:
    """How a handler function is called, and what its payload looks like."""

    def __init__(self, function: Callable[..., Any], wire_name: str) -> None:
        self._function = function
        self._wire_name = wire_name
        whole = inspect.signature(function)
        self._context_name = _context_parameter(whole)
        parameters = [p for p in whole.parameters.values() if p.name != self._context_name]
        self._signature = whole.replace(parameters=parameters)
        self._whole = whole
        self._by_keyword = all(
            p.kind not in (_POSITIONAL_ONLY, _VAR_POSITIONAL, _VAR_KEYWORD)
            for p in whole.parameters.values()
        )

    def payload(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Give the payload of a call with these arguments.

        Raises:
            TypeError: the arguments do not fit the handler, as Python would say it.
        """
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"job {self._wire_name!r} takes {self._signature}: {error}") from None
        payload = dict(bound.arguments)
        for name, value in payload.items():
            if self._signature.parameters[name].kind is _VAR_POSITIONAL:
                payload[name] = list(value)
        return payload

    def call(self, payload: Mapping[str, Any], context: JobContext) -> Any:
        """Call the handler with a decoded payload."""
        if self._by_keyword:
            if self._context_name is None:
                return self._function(**payload)
            return self._function(**payload, **{self._context_name: context})
        given = dict(payload)
        if self._context_name is not None:
            given[self._context_name] = context
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        by_place = True  # until a parameter is left to its default
        for name, parameter in self._whole.parameters.items():
            if parameter.kind is _VAR_POSITIONAL:
                args += given.get(name, ())
            elif parameter.kind is _VAR_KEYWORD:
                kwargs |= given.get(name, {})
            elif name not in given:
                by_place = False
            elif by_place and parameter.kind is not _KEYWORD_ONLY:
                args.append(given[name])
            else:
                kwargs[name] = given[name]
        return self._function(*args, **kwargs)

    def make_codec(self, subject: str) -> Codec:
        """Make the codec of the payload.

        Raises:
            InvalidPayload: an annotation that cannot be resolved, or has no JSON form.
        """
        try:
            hints = typing.get_type_hints(
                self._function, localns={"JobContext": JobContext}, include_extras=True
            )
        except (NameError, TypeError, AttributeError, SyntaxError) as error:
            raise InvalidPayload(f"{subject}: an annotation cannot be resolved: {error}") from error
        fields: dict[str, Any] = {}
        for name, parameter in self._signature.parameters.items():
            hint: Any = hints.get(name, Any)
            if parameter.kind is _VAR_POSITIONAL:
                fields[name] = NotRequired[list[hint]]
            elif parameter.kind is _VAR_KEYWORD:
                fields[name] = NotRequired[dict[str, hint]]
            elif parameter.default is not inspect.Parameter.empty:
                fields[name] = NotRequired[hint]
            else:
                fields[name] = hint
        payload_type = TypedDict("Payload", fields)  # type: ignore[misc]
        return Codec(subject, payload_type)


def _context_parameter(signature: inspect.Signature) -> str | None:
    """Give the name of the parameter that takes the context.

    The one annotated with ``JobContext``, else an unannotated one named ``ctx``.
    """
    annotated = [
        name
        for name, parameter in signature.parameters.items()
        if _is_context(parameter.annotation)
    ]
    if len(annotated) > 1:
        raise DeclarationError(f"a handler takes one JobContext, not {len(annotated)}")
    if annotated:
        return annotated[0]
    ctx = signature.parameters.get("ctx")
    if ctx is not None and ctx.annotation is inspect.Parameter.empty:
        return "ctx"
    return None


def _is_context(annotation: Any) -> bool:
    """Whether an annotation says ``JobContext``, also as optional or ``Annotated``."""
    if isinstance(annotation, str):
        return re.search(r"\bJobContext\b", annotation) is not None
    return annotation is JobContext or any(map(_is_context, typing.get_args(annotation)))
