"""The supervisor: the pumps of one worker process, from start to stop."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from datetime import datetime
from queue import Empty, SimpleQueue

from ..core.options import WorkerGroupOptions
from ..handlers.registry import Registry
from ..runtime.clock import REMEASURE_AFTER, ClusterClock, elapsed
from ..runtime.entropy import new_token
from ..storage.contract import JobStore
from . import telemetry
from .pump import EndGrace, Hint, Policies, Pump, Stop
from .shutdown import SignalTrap

HAND_BACK_SECONDS = 5.0
"""How long pumps get, after the grace, to write what they hand back."""

BURST_LOOK_SECONDS = 0.05
"""How often a burst is looked at, to see whether every pump is idle."""

CLEAN_EXIT = 0
HALTED_EXIT = 3


class Supervisor:
    """Runs the pumps of some worker groups until it is told to stop.

    Args:
        groups: the groups, each with ``pumps`` pumps.
        all_groups: every group of the settings, to know the policy of any queue.
        store: where the jobs are.
        registry: from wire names to handlers.
        grace: seconds that running jobs get after a stop, before they are handed back.
        burst: stop by itself once no pump finds anything due.
    """

    def __init__(
        self,
        groups: Sequence[WorkerGroupOptions],
        all_groups: Sequence[WorkerGroupOptions],
        store: JobStore,
        registry: Registry,
        *,
        grace: float = 30.0,
        burst: bool = False,
    ) -> None:
        self.name = f"{_host()}:{os.getpid()}"
        self._grace = grace
        self._burst = burst
        self._store = store
        self._inbox: SimpleQueue[str] = SimpleQueue()
        look = store.current_time if store.capabilities.cluster_clock else None
        self._clock = ClusterClock(look, REMEASURE_AFTER)
        self._group_of_queue = {
            queue: group for group in reversed(all_groups) for queue in group.policy.queues
        }
        self.pumps = [
            self._pump(group, index, registry) for group in groups for index in range(group.pumps)
        ]
        self._groups = [group.name for group in groups]

    def _pump(self, group: WorkerGroupOptions, index: int, registry: Registry) -> Pump:
        policies = Policies(registry, group, self._group_of_queue.get)
        name = "".join(c if c.isprintable() and c != ":" else "_" for c in group.name)[:32]
        worker_id = f"{self.name}:{name}:{index}:{new_token()}"
        return Pump(
            worker_id, group, self._store, self._clock, registry, policies,
            sweeps_at_once=self._burst, on_end=lambda: self._inbox.put("ended"),
        )  # fmt: skip

    def stop(self) -> None:
        """Ask for a clean stop; asked twice, for one at once. Safe in a signal handler."""
        self._inbox.put("stop")

    def run(self) -> int:
        """Run until stopped; give the exit code.

        Returns:
            0 after a clean stop, 3 if a pump halted on a fault.
        """
        with SignalTrap(self.stop):
            telemetry.worker_started(self.name, self._groups, getattr(self._store, "alias", ""))
            for pump in self.pumps:
                pump.start()
            self._run_until_stopped()
            self._drain()
        code = HALTED_EXIT if any(pump.fault for pump in self.pumps) else CLEAN_EXIT
        telemetry.worker_stopped(self.name, code)
        return code

    @property
    def abandoned(self) -> int:
        """Handlers that still run, though their jobs were handed back."""
        return sum(pump.running for pump in self.pumps)

    def _run_until_stopped(self) -> None:
        confirm_after: datetime | None = None
        while any(pump.is_alive for pump in self.pumps):
            try:
                message = self._inbox.get(timeout=BURST_LOOK_SECONDS if self._burst else None)
            except Empty:
                message = ""
            if message == "stop":
                return
            if self._burst:
                if self._is_drained(confirm_after):
                    return
                confirm_after = self._ask_to_confirm(confirm_after)

    def _is_drained(self, since: datetime | None) -> bool:
        """Whether every pump has found nothing in a claim asked for after ``since``.

        A pump that is idle says little while another still runs a job that may enqueue
        for it; so once all are idle, all are asked again.
        """
        idle = [pump.idle_since for pump in self.pumps if pump.is_alive]
        return since is not None and all(at is not None and at > since for at in idle)

    def _ask_to_confirm(self, asked: datetime | None) -> datetime | None:
        if any(pump.idle_since is None for pump in self.pumps if pump.is_alive):
            return None
        if asked is not None:
            return asked
        now = self._clock.estimate()
        for pump in self.pumps:
            pump.tell(Hint())
        return now

    def _drain(self) -> None:
        """Stop claiming, let jobs finish within the grace, hand back the rest."""
        for pump in self.pumps:
            pump.tell(Stop())
        self._wait_for_pumps(self._grace, until_stop=True)
        if any(pump.is_alive for pump in self.pumps):
            for pump in self.pumps:
                pump.tell(EndGrace())
            self._wait_for_pumps(HAND_BACK_SECONDS, until_stop=True)
        for pump in self.pumps:
            pump.join(0.1)

    def _wait_for_pumps(self, seconds: float, *, until_stop: bool) -> None:
        """Wait until all pumps have ended, time is up, or a stop is asked for again."""
        deadline = elapsed() + seconds
        while any(pump.is_alive for pump in self.pumps):
            left = deadline - elapsed()
            if left <= 0:
                return
            try:
                # A pump says that it ended just before its thread does: look again soon.
                message = self._inbox.get(timeout=min(left, 0.2))
            except Empty:
                continue
            if message == "stop" and until_stop:
                return


def _host() -> str:
    name = "".join(c if c.isalnum() or c in "-._" else "_" for c in socket.gethostname())
    return name[:40] or "host"
