"""The values that pass through the storage contract, beside the Core's own."""

from __future__ import annotations

from .jobs import (
    AncestorOutput,
    DependencyEdges,
    DependencyMode,
    EnqueueResult,
    EnqueueResults,
    EnqueueStatus,
    HistoryPolicy,
    JobCount,
    JobFilter,
    JobSnapshot,
    NewJob,
    TagFacet,
    Transition,
)
from .operating import (
    AuditAction,
    AuditRecord,
    BulkResult,
    CancelResult,
    RequeueResult,
    RescheduleResult,
)
from .scheduling import (
    Mint,
    MintDecision,
    Minted,
    Schedule,
    ScheduleDefinition,
    SkippedTick,
    TriggerResult,
    UpsertResult,
)

__all__ = [
    "AncestorOutput",
    "AuditAction",
    "AuditRecord",
    "BulkResult",
    "CancelResult",
    "DependencyEdges",
    "DependencyMode",
    "EnqueueResult",
    "EnqueueResults",
    "EnqueueStatus",
    "HistoryPolicy",
    "JobCount",
    "JobFilter",
    "JobSnapshot",
    "Mint",
    "MintDecision",
    "Minted",
    "NewJob",
    "RequeueResult",
    "RescheduleResult",
    "Schedule",
    "ScheduleDefinition",
    "SkippedTick",
    "TagFacet",
    "Transition",
    "TriggerResult",
    "UpsertResult",
]
