"""The statements of the SQLite dialect."""

from __future__ import annotations

import functools

from .sql import sql

PARAMETERS_MAX = 30_000
"""Below SQLite's own limit, 32,766 since 3.32: https://www.sqlite.org/limits.html"""

CONTENT = (sql("INSERT INTO {content} (job_id, payload)"), "")
TAG = (sql("INSERT OR IGNORE INTO {tag} (job_id, key, value)"), "")
TRANSITION = (
    sql(
        "INSERT INTO {transition} (job_id, ordinal, at, state, attempt, claim_number,"
        " worker_id, failure_detail)"
    ),
    "",
)
OUTPUT = (
    sql("INSERT INTO {content} (job_id, payload, output)"),
    " ON CONFLICT (job_id) DO UPDATE SET output = excluded.output",
)
"""An upsert on rows that are there: the one way to set many outputs in one statement."""


@functools.lru_cache(maxsize=256)
def insert(target: tuple[str, str], row_count: int, width: int) -> str:
    """Give an insert of so many rows; ``target`` is what stands before and after them."""
    row = f"({', '.join(['%s'] * width)})"
    return f"{target[0]} VALUES {', '.join([row] * row_count)}{target[1]}"


@functools.lru_cache(maxsize=256)
def insert_jobs(row_count: int) -> str:
    """Give the insert of so many jobs; an id that is there already is passed over."""
    row = "(%s, %s, %s, %s, 0, 0, 1, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    return sql(
        "INSERT INTO {job} (job_id, wire_name, queue, state, attempt, claim_number, ordinal,"
        " due_time, enqueued_at, terminal_at, terminal_cause, mode, latch, trace_context,"
        " schedule_id, tick, workflow_id)"
        f" VALUES {', '.join([row] * row_count)}"
        " ON CONFLICT (job_id) DO NOTHING RETURNING sequence, job_id"
    )


_PICK = """pick{place} AS MATERIALIZED (
  SELECT sequence FROM {{job}}
   WHERE state = {{SCHEDULED}} AND queue = %(queue{of})s AND due_time <= %(now)s
     AND NOT EXISTS (SELECT 1 FROM {{queue}} WHERE name = %(queue{of})s AND paused){fresh}
   ORDER BY due_time, sequence
   LIMIT max(0, min({most}{taken}, coalesce((
     SELECT concurrency_limit - (SELECT count(*) FROM {{job}}
                                  WHERE state = {{LEASED}} AND queue = %(queue{of})s){mine}
       FROM {{queue}} WHERE name = %(queue{of})s AND concurrency_limit IS NOT NULL
     ), %(room)s)))
)"""

_LEASE = """
UPDATE {job}
   SET state = {LEASED}, attempt = attempt + 1, claim_number = claim_number + 1,
       ordinal = ordinal + 1, lease_owner = %(worker)s, lease_expires_at = %(expires)s
 WHERE sequence IN (<<picked>>)
RETURNING sequence, job_id, wire_name, queue, attempt, claim_number, ordinal, due_time,
          schedule_id, tick, trace_context,
          (SELECT payload FROM {content} WHERE {content}.job_id = sequence),
          (SELECT json_group_array(json_array(key, value))
             FROM (SELECT key, value FROM {tag} WHERE {tag}.job_id = sequence ORDER BY id)
           HAVING count(*) > 0)"""


@functools.cache
def claim(queue_count: int, *, second_pass: bool) -> str:
    """Give the statement that claims from so many queues."""
    picks: list[str] = []
    names: list[str] = []
    passes = [(of, False) for of in range(queue_count)]
    passes += [(of, True) for of in range(queue_count)] * second_pass
    for place, (of, is_second) in enumerate(passes):
        mine = f" - (SELECT count(*) FROM pick{of})" if is_second else ""
        fresh = f" AND sequence NOT IN (SELECT sequence FROM pick{of})" if is_second else ""
        picks.append(
            _PICK.format(
                place=place,
                of=of,
                fresh=fresh,
                mine=mine,
                most="" if is_second else f"%(most{of})s, ",
                taken=" - ".join(["%(room)s", *(f"(SELECT count(*) FROM {n})" for n in names)]),
            )
        )
        names.append(f"pick{place}")
    picked = " UNION ALL ".join(f"SELECT sequence FROM {name}" for name in names)
    return sql(f"WITH {', '.join(picks)}" + _LEASE.replace("<<picked>>", picked))


@functools.cache
def next_due(queue_count: int) -> str:
    """Give the read of the earliest due time in so many queues that are not paused."""
    one = (
        "SELECT (SELECT due_time FROM {job} WHERE state = {SCHEDULED} AND queue = asked.name"
        " ORDER BY due_time LIMIT 1) AS due_time FROM (SELECT %s AS name) AS asked"
        " WHERE NOT EXISTS (SELECT 1 FROM {queue} q WHERE q.name = asked.name AND q.paused)"
    )
    return sql(f"SELECT min(due_time) FROM ({' UNION ALL '.join([one] * queue_count)})")


_FENCE = """j.job_id = a.job_id AND j.state = {LEASED} AND j.lease_owner = a.worker_id
   AND j.attempt = a.attempt AND j.claim_number = a.claim_number"""

_ASKED = """(SELECT json_extract(value, '$[0]') AS job_id, json_extract(value, '$[1]') AS worker_id,
        json_extract(value, '$[2]') AS attempt, json_extract(value, '$[3]') AS claim_number
        {more} FROM json_each(%s)) AS a"""

# RETURNING gives plain columns only: in an UPDATE … FROM, SQLite 3.40 answers 1 to
# ``column IS NOT NULL`` for a column that is null (seen on 3.40.1).
RENEW = sql(
    "UPDATE {job} AS j SET lease_expires_at = %s FROM "
    + _ASKED.replace("{more}", "")
    + f" WHERE {_FENCE} RETURNING job_id, cancel_cause"
)

_SETTLED_STATE = "iif(a.yields AND j.cancel_cause IS NOT NULL, {CANCELLED}, a.state)"

_SETTLE = (
    f"""
UPDATE {{job}} AS j
   SET state = {_SETTLED_STATE},
       due_time = iif(a.yields AND j.cancel_cause IS NOT NULL, j.due_time,
                      coalesce(a.due_time, j.due_time)),
       attempt = iif(a.yields AND j.cancel_cause IS NOT NULL, j.attempt,
                     j.attempt - a.gives_back),
       ordinal = j.ordinal + 1,
       terminal_at = iif({_SETTLED_STATE} >= {{FIRST_TERMINAL}}, %s, NULL),
       terminal_cause = iif(a.yields AND j.cancel_cause IS NOT NULL, j.cancel_cause, a.cause),
       lease_owner = NULL, lease_expires_at = NULL, cancel_cause = NULL
  FROM """
    + _ASKED.replace(
        "{more}",
        """, json_extract(value, '$[4]') AS state, json_extract(value, '$[5]') AS due_time,
        json_extract(value, '$[6]') AS cause, json_extract(value, '$[7]') AS gives_back,
        json_extract(value, '$[8]') AS yields""",
    )
    + f" WHERE {_FENCE}"
)

_NOT_GATING = f""" AND NOT ({_SETTLED_STATE} >= {{FIRST_TERMINAL}}
   AND EXISTS (SELECT 1 FROM {{dependency}} d WHERE d.parent_id = j.sequence AND d.open))"""

_SETTLE_ANSWER = " RETURNING sequence, job_id, state, attempt, claim_number, ordinal"


@functools.cache
def settle(*, ends_too: bool) -> str:
    """Give the statement that records outcomes; see ``Dialect.settle``."""
    return sql(_SETTLE + ("" if ends_too else _NOT_GATING) + _SETTLE_ANSWER)


@functools.lru_cache(maxsize=256)
def alive(count: int) -> str:
    """Give the read of the leases that so many jobs are under."""
    return sql(
        "SELECT job_id, lease_owner, attempt, claim_number FROM {job}"
        f" WHERE state = {{LEASED}} AND job_id IN ({', '.join(['%s'] * count)})"
    )


@functools.cache
def lapsed(queue_count: int | None) -> str:
    """Give the read of lapsed leases, of so many queues or (``None``) of all.

    The plus keeps SQLite from walking the whole table in the order that is asked for.
    """
    queues = "" if queue_count is None else f" AND queue IN ({', '.join(['%s'] * queue_count)})"
    return sql(
        "SELECT job_id, lease_owner, attempt, claim_number, wire_name, queue, lease_expires_at"
        f" FROM {{job}} WHERE state = {{LEASED}} AND lease_expires_at <= %s{queues}"
        " ORDER BY +sequence LIMIT %s"
    )
