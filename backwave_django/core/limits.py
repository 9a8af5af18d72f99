"""The named limits of the store, with their defaults and what happens beyond each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from .errors import InvalidOption

WIRE_NAME_LENGTH_MAX = 512
"""The width of the column, in code points; the limit itself is lower by default."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that a store enforces; each a whole number of at least 1.

    Attributes:
        max_payload_bytes: encoded payload; a longer one is refused at enqueue.
        max_wire_name_length: code points; a longer one is refused at enqueue.
        max_claim_batch: jobs in one claim; a larger wish is clamped.
        max_parents_per_job: a job with more is refused at enqueue.
        max_monitor_page_size: rows of one page of a read; a larger wish is clamped.
        max_purge_batch: jobs in one purge; a larger wish is clamped.
        max_transitions_per_job: newest log entries that are kept; older ones age out.
        max_recorded_skipped_ticks: newest skipped ticks of a schedule that are kept.
        max_failure_detail_bytes: UTF-8 bytes; a longer detail is cut.
        max_output_bytes: encoded output; a longer one is refused, never cut.
    """

    max_payload_bytes: int = 65_536
    max_wire_name_length: int = 128
    max_claim_batch: int = 32
    max_parents_per_job: int = 16
    max_monitor_page_size: int = 200
    max_purge_batch: int = 500
    max_transitions_per_job: int = 64
    max_recorded_skipped_ticks: int = 32
    max_failure_detail_bytes: int = 8_192
    max_output_bytes: int = 65_536

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidOption(
                    f"limit {_published(field.name)} must be a whole number of at least 1, "
                    f"not {value!r}",
                    name=field.name,
                    value=value,
                )
        if self.max_wire_name_length > WIRE_NAME_LENGTH_MAX:
            raise InvalidOption(
                f"limit MaxWireNameLength must be at most {WIRE_NAME_LENGTH_MAX}, the width of its "
                f"column, not {self.max_wire_name_length}",
                name="max_wire_name_length",
            )


def _published(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


LIMIT_NAMES: Mapping[str, str] = {_published(field.name): field.name for field in fields(Limits)}
"""Published name (``MaxPayloadBytes``) to attribute (``max_payload_bytes``)."""


def limits_from(mapping: Mapping[str, int]) -> Limits:
    """Make ``Limits`` from published names.

    Raises:
        InvalidOption: an unknown name, or a value that is not a whole number from 1 up.
    """
    unknown = sorted(set(mapping) - set(LIMIT_NAMES), key=str)
    if unknown:
        raise InvalidOption(
            f"unknown limit {unknown[0]!r}; known: {', '.join(LIMIT_NAMES)}", name=unknown[0]
        )
    return Limits(**{LIMIT_NAMES[name]: value for name, value in mapping.items()})
