"""What every part of the in-memory store stands on."""

from __future__ import annotations

import threading
from datetime import datetime

from ...core.limits import Limits
from ...core.settlement import parent_cause
from ...core.states import JobState, Move
from ..capabilities import Capabilities
from ..errors import StoreMisused
from ..values import AuditAction, AuditRecord, DependencyMode, HistoryPolicy
from .rows import Row, Tables


class MemoryBase:
    """The rows, the one lock, and what several parts do.

    Args:
        limits: the store's limits.
        history: what the transition log records.
    """

    capabilities = Capabilities(
        durable=False,
        transactional_enqueue=False,
        skips_locked_rows=True,
        cluster_clock=False,
        settles_log=True,
    )

    def __init__(
        self,
        limits: Limits | None = None,
        history: HistoryPolicy = HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL,
    ) -> None:
        self.limits = limits or Limits()
        self.history = history
        self._lock = threading.RLock()
        self._tables = Tables(history, self.limits.max_transitions_per_job)

    @property
    def supports_transactional_enqueue(self) -> bool:
        """False: there is no transaction to join."""
        return self.capabilities.transactional_enqueue

    def current_time(self) -> datetime:
        """Refuse: this store has no clock of its own."""
        raise StoreMisused("the in-memory store has no clock; time is always an argument")

    def _page(self, limit: int) -> int:
        return max(0, min(limit, self.limits.max_monitor_page_size))

    def _audit(
        self, action: AuditAction, target: object, actor: str | None, now: datetime, detail: str
    ) -> None:
        records = self._tables.audit
        number = len(records) + 1
        records.append(AuditRecord(number, now, actor, action, str(target), detail))

    def _follow(self, ended: Row, now: datetime, *others: Row) -> None:
        """Move on every job that waited for one of these, and so on down the graph."""
        frontier = [row for row in (ended, *others) if row.state.is_terminal]
        while frontier:
            following = []
            for parent in sorted(frontier, key=lambda row: row.sequence):
                for child in self._tables.waiting_for(parent.job_id):
                    child.gating.discard(parent.job_id)
                    failed = parent.state is not JobState.SUCCEEDED
                    if failed and child.mode is DependencyMode.ON_SUCCESS:
                        cause = parent_cause(parent.job_id, parent.state)
                        self._tables.move(child, Move.CANCEL, now, cause=cause)
                        following.append(child)
                    elif not child.gating:
                        child.due_time = max(child.due_time, now)
                        self._tables.move(child, Move.RELEASE, now)
            frontier = following
