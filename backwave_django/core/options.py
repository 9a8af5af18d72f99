"""The options of a worker group, validated together."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from .dispatch import DispatchPolicy, Strict, Weighted
from .errors import InvalidOption
from .retry import LONGEST_DELAY, RetryPolicy

Duration = timedelta | float | int


@dataclass(frozen=True, kw_only=True)
class WorkerGroupOptions:
    """How one worker group claims and runs.

    Durations may be written as ``timedelta`` or as seconds; they are kept as
    ``timedelta``. Anything that breaks a rule raises ``InvalidOption``, with the group
    and the option in its message.

    Attributes:
        name: the group's name, unique in the settings.
        policy: which queues it serves, and how it shares effort among them.
        pool_size: jobs that one pump runs at once; at least 1.
        pumps: independent pumps in one process; at least 1.
        max_claim_batch: most jobs in one claim; at least 1.
        max_outcome_batch: most outcomes in one report; ``None``: ``max_claim_batch``.
        poll_interval: how often an idle pump looks for work.
        max_poll_interval: ceiling of the idle back-off; zero switches it off.
        maintenance_interval: how often lapsed leases are swept.
        lease_duration: how long a claim holds without a heartbeat.
        heartbeat_interval: how often leases are renewed; at most a third of
            ``lease_duration``, which is also what ``None`` means.
        retry_policy: for jobs whose type declares none.
    """

    name: str
    policy: DispatchPolicy
    pool_size: int = 20
    pumps: int = 1
    max_claim_batch: int = 32
    max_outcome_batch: int | None = None
    poll_interval: Duration = timedelta(seconds=1)
    max_poll_interval: Duration = timedelta(0)
    maintenance_interval: Duration = timedelta(seconds=5)
    lease_duration: Duration = timedelta(seconds=60)
    heartbeat_interval: Duration | None = None
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)

    def __post_init__(self) -> None:
        self._check_type("policy", (Strict, Weighted), "must be Strict(...) or Weighted({...})")
        self._check_type("retry_policy", (RetryPolicy,), "must be a RetryPolicy")
        for name in ("pool_size", "pumps", "max_claim_batch", "max_outcome_batch"):
            self._check_count(name)
        if self.max_outcome_batch is None:
            object.__setattr__(self, "max_outcome_batch", self.max_claim_batch)
        lease = self._to_timedelta("lease_duration")
        if self.heartbeat_interval is None:
            object.__setattr__(self, "heartbeat_interval", lease / 3)
        for name in ("poll_interval", "maintenance_interval", "heartbeat_interval"):
            self._to_timedelta(name)
        self._to_timedelta("max_poll_interval", zero_allowed=True)
        if self.heartbeat > lease / 3:
            self._refuse(
                "heartbeat_interval",
                f"must be at most a third of lease_duration ({lease / 3}), so that one lost "
                "heartbeat does not lose the lease",
            )
        if timedelta(0) < self.poll_ceiling < self.poll_floor:
            self._refuse("max_poll_interval", "must be zero (off) or at least poll_interval")

    # The fields accept seconds too; these give what validation made of them.

    @property
    def lease(self) -> timedelta:
        """``lease_duration`` as a ``timedelta``."""
        return _as_timedelta(self.lease_duration)

    @property
    def heartbeat(self) -> timedelta:
        """``heartbeat_interval`` as a ``timedelta``, its default filled in."""
        return (
            self.lease / 3
            if self.heartbeat_interval is None
            else _as_timedelta(self.heartbeat_interval)
        )

    @property
    def poll_floor(self) -> timedelta:
        """``poll_interval`` as a ``timedelta``."""
        return _as_timedelta(self.poll_interval)

    @property
    def poll_ceiling(self) -> timedelta:
        """``max_poll_interval`` as a ``timedelta``."""
        return _as_timedelta(self.max_poll_interval)

    @property
    def maintenance(self) -> timedelta:
        """``maintenance_interval`` as a ``timedelta``."""
        return _as_timedelta(self.maintenance_interval)

    @property
    def outcome_batch(self) -> int:
        """``max_outcome_batch`` with its default filled in."""
        return self.max_outcome_batch or self.max_claim_batch

    def _check_type(self, name: str, kinds: tuple[type, ...], rule: str) -> None:
        if not isinstance(getattr(self, name), kinds):
            self._refuse(name, rule)

    def _check_count(self, name: str) -> None:
        value = getattr(self, name)
        if value is None and name == "max_outcome_batch":
            return
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self._refuse(name, "must be a whole number of at least 1")

    def _to_timedelta(self, name: str, *, zero_allowed: bool = False) -> timedelta:
        value = getattr(self, name)
        try:
            duration = timedelta(-1) if isinstance(value, bool) else _as_timedelta(value)
        except (TypeError, ValueError, OverflowError):
            duration = timedelta(-1)
        if not timedelta(0) <= duration <= LONGEST_DELAY or not (duration or zero_allowed):
            self._refuse(name, "must be a positive timedelta or number of seconds, at most a year")
        object.__setattr__(self, name, duration)
        return duration

    def _refuse(self, option: str, rule: str) -> None:
        raise InvalidOption(
            f"worker group {self.name!r}: {option} {rule}, not {getattr(self, option)!r}",
            group=self.name,
            option=option,
        )


def _as_timedelta(value: Duration) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(seconds=value)
