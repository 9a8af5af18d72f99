"""How far along the transition log no open transaction can still add anything (rule 9.2).

The ids of the log are given at insert and seen at commit. So a transaction that is slow
to commit adds rows before those that others have shown already; a cursor that had moved
on to these would never see them.
"""

from __future__ import annotations

from typing import NamedTuple


class LogMark(NamedTuple):
    """Where the log ended once, and a transaction that began after that.

    Whoever drew an id up to ``position`` has a transaction id lower than
    ``transaction_id``. When all of those have ended, the log is settled that far.
    """

    position: int
    transaction_id: int
