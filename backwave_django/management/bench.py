"""The benchmark harness: the real shell against the real database, under a real clock.

It measures, and never judges: ratios to the floor of the same run carry over from one
machine to another, jobs per second do not.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connections
from django.db.backends.signals import connection_created

from ..core.dispatch import Strict
from ..core.instants import EPOCH
from ..core.limits import Limits
from ..core.options import WorkerGroupOptions
from ..core.tags import Tag
from ..handlers.codec import Codec
from ..handlers.context import JobContext
from ..handlers.registry import JobType, Registry
from ..models import Dependency, Job, JobContent, JobTag, Transition
from ..runtime.clock import elapsed
from ..runtime.entropy import new_job_id
from ..shell.supervisor import Supervisor
from ..storage.orm.store import DjangoStore
from ..storage.values import HistoryPolicy, NewJob

WIRE_NAME = QUEUE = "backwave-bench"
ENQUEUE_BATCH = 500


@dataclass(frozen=True)
class Figure:
    """One measured number."""

    name: str
    value: float | None  # ``None``: could not be measured here
    unit: str
    note: str = ""


class Bench:
    """One run of the harness over one alias.

    Args:
        alias: the database alias; its job tables are used, on a queue of their own.
        batch: pool size, claim batch and outcome batch.
        history: what the transition log records.
    """

    def __init__(self, alias: str, batch: int, history: HistoryPolicy) -> None:
        self.alias = alias
        self.batch = batch
        self.store = DjangoStore(alias, Limits(max_claim_batch=batch), history)

    @property
    def connection(self) -> Any:
        """This thread's connection."""
        return connections[self.alias]

    # -- the workloads ------------------------------------------------------------

    def enqueue_single(self, count: int) -> Figure:
        """Enqueue jobs one by one, each with its own commit."""
        jobs = self._jobs(count)
        began = elapsed()
        for job in jobs:
            self.store.enqueue(job, EPOCH)
        return _rate("enqueue one by one", count, began)

    def enqueue_bulk(self, count: int) -> Figure:
        """Enqueue jobs in batches."""
        jobs = self._jobs(count)
        began = elapsed()
        for start in range(0, count, ENQUEUE_BATCH):
            self.store.enqueue_many(jobs[start : start + ENQUEUE_BATCH], EPOCH)
        return _rate(f"enqueue in batches of {ENQUEUE_BATCH}", count, began)

    def drain(self, count: int) -> list[Figure]:
        """Run a worker in this process until all of ``count`` no-op jobs have run."""
        self._settle_server()
        with self._counting() as statements:
            cpu = time.process_time()
            began = elapsed()
            self._supervisor().run()
            rate = _rate("no-op drain", count, began)
            cpu = time.process_time() - cpu
            per_job = statements()
        return [
            rate,
            Figure("worker CPU per job", cpu / count * 1e6, "µs"),
            Figure(
                "statements per job",
                None if per_job is None else per_job / count,
                "",
                "BEGIN and COMMIT included" if per_job else "needs pg_stat_statements",
            ),
        ]

    def memory(self, counts: tuple[int, int]) -> Figure:
        """Say how much bigger the process is after ``counts[1]`` jobs than after ``counts[0]``."""
        first, second = counts
        self.enqueue_bulk(first)
        self._supervisor().run()
        before = _resident()
        for _ in range(first, second, first):
            self.enqueue_bulk(first)
            self._supervisor().run()
        grown = (_resident() - before) / 1e6
        return Figure(f"memory growth from {first} to {second} jobs", grown, "MB")

    def floor(self, count: int) -> Figure | None:
        """Claim and acknowledge with two bare statements a batch; PostgreSQL only.

        The least that any durable queue can do: no leases, no history, no handlers.
        """
        if self.connection.vendor != "postgresql":
            return None
        return _floor(self.connection, count, self.batch)

    def clean(self) -> None:
        """Delete every row of this harness."""
        mine = Job.objects.using(self.alias).filter(queue=QUEUE)
        sequences = mine.values("sequence")
        for model in (JobContent, JobTag, Transition):
            model.objects.using(self.alias).filter(job_id__in=sequences).delete()
        Dependency.objects.using(self.alias).filter(child_id__in=sequences).delete()
        mine.delete()

    # -- parts --------------------------------------------------------------------

    def _jobs(self, count: int) -> list[NewJob]:
        payload = b'{"order_id":12345}'
        tags = (Tag(None, "bench"),)
        return [NewJob(new_job_id(), WIRE_NAME, QUEUE, payload, EPOCH, tags) for _ in range(count)]

    def _supervisor(self) -> Supervisor:
        registry = Registry()
        codec = Codec("bench payload", Any)
        registry.add(
            JobType(WIRE_NAME, QUEUE, (), None, __name__, lambda subject: codec, _no_operation)
        )
        group = WorkerGroupOptions(
            name="bench",
            policy=Strict(QUEUE),
            pool_size=self.batch,
            max_claim_batch=self.batch,
            poll_interval=timedelta(seconds=1),
        )
        return Supervisor([group], [group], self.store, registry, burst=True)

    def _settle_server(self) -> None:
        if self.connection.vendor == "postgresql":
            with self.connection.cursor() as cursor:
                cursor.execute("ANALYZE")

    @contextmanager
    def _counting(self) -> Iterator[Callable[[], int | None]]:
        """Count statements where they are executed: in the server, or in the library."""
        if self.connection.vendor == "sqlite":
            with _sqlite_counter() as read:
                yield read
        elif self.connection.vendor == "postgresql":
            with _postgres_counter(self.connection) as read:
                yield read
        else:
            yield lambda: None


def _no_operation(payload: Any, context: JobContext) -> None:
    """Do nothing: what is left is the cost of the system itself."""


def _rate(name: str, count: int, began: float) -> Figure:
    return Figure(name, count / (elapsed() - began), "jobs/s")


def _resident() -> float:
    """Give the resident memory of this process, in bytes."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def _sqlite_counter() -> Iterator[Callable[[], int | None]]:
    seen = [0]

    def count(statement: str) -> None:
        seen[0] += not statement.startswith("--")

    def watch(connection: Any, **_: object) -> None:
        connection.connection.set_trace_callback(count)

    connection_created.connect(watch)
    try:
        yield lambda: seen[0]
    finally:
        connection_created.disconnect(watch)


@contextmanager
def _postgres_counter(connection: Any) -> Iterator[Callable[[], int | None]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'pg_stat_statements'")
        if cursor.fetchone() is None:
            yield lambda: None
            return
        cursor.execute("SELECT pg_stat_statements_reset()")

    def read() -> int | None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT sum(calls)::bigint FROM pg_stat_statements"
                " WHERE query NOT LIKE '%%pg_stat_statements%%'"
            )
            return int(cursor.fetchone()[0] or 0)

    yield read


_FLOOR_TABLE = """
    CREATE TABLE backwave_bench_floor (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, args jsonb NOT NULL,
      status smallint NOT NULL DEFAULT 0, created timestamptz NOT NULL DEFAULT now(),
      started timestamptz, finished timestamptz)"""


def _floor(connection: Any, count: int, batch: int) -> Figure:
    claim = f"""
        UPDATE backwave_bench_floor SET status = 1, started = now() WHERE id = ANY (ARRAY (
          SELECT id FROM backwave_bench_floor WHERE status = 0
           ORDER BY id LIMIT {int(batch)} FOR UPDATE SKIP LOCKED)) RETURNING id, kind, args"""
    done = "UPDATE backwave_bench_floor SET status = 2, finished = now() WHERE id = ANY (%s)"
    bodies = {"noop": lambda *args: None}
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS backwave_bench_floor")
        cursor.execute(_FLOOR_TABLE)
        cursor.execute("CREATE INDEX ON backwave_bench_floor (id) WHERE status = 0")
        cursor.execute(
            "INSERT INTO backwave_bench_floor (kind, args)"
            " SELECT 'noop', '[1]' FROM generate_series(1, %s)",
            [count],
        )
        cursor.execute("ANALYZE backwave_bench_floor")
    raw = connection.connection
    began = elapsed()
    while rows := raw.execute(claim).fetchall():
        for _, kind, args in rows:
            bodies[kind](*json.loads(args))
        raw.execute(done, [[row[0] for row in rows]])
    figure = _rate(f"floor: bare claim and acknowledge, batch {batch}", count, began)
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE backwave_bench_floor")
    return figure
