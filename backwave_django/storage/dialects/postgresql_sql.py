"""The statements of the PostgreSQL dialect."""

from __future__ import annotations

import functools

from .postgresql_trip import LOCK_TIMEOUT
from .sql import sql

OWN_TRANSACTION = f"""SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"""

LOCK_PARENTS = sql(
    "SELECT sequence FROM {job} WHERE job_id = ANY (%s::uuid[]) ORDER BY sequence FOR KEY SHARE"
)

LOCK_GATES = sql("""
    SELECT g.name, (SELECT q.concurrency_limit FROM {queue} q WHERE q.name = g.name)
      FROM {gate} g WHERE g.name = ANY (%s::text[]) ORDER BY g.name FOR UPDATE
""")
"""Gates in code-point order, which is the order of their collation."""

HELD_BACK = sql("""
    SELECT 1 FROM {job} j JOIN {queue} q ON q.name = j.queue AND NOT q.paused
     WHERE j.state = {SCHEDULED} AND j.queue = ANY (%s::text[]) AND j.due_time <= %s
     LIMIT 1 FOR NO KEY UPDATE OF j SKIP LOCKED
""")

# Sequences are drawn in the order given, and rows go in by id: two batches that share ids
# then wait for each other in one order, and cannot deadlock.
_INSERT_JOBS = """
WITH input AS MATERIALIZED (
  SELECT nextval((SELECT pg_get_serial_sequence('{job}', 'sequence'))::regclass) AS sequence, i.*
    FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::bytea[], %s::bigint[],
                       %s::smallint[], %s::int[], %s::smallint[], %s::text[],
                       %s::text[][link arrays])
    WITH ORDINALITY AS i(job_id, wire_name, queue, payload, due_time,
                         state, latch, mode, cause, trace_context[links], ord)
), inserted AS (
  INSERT INTO {job} (sequence, job_id, wire_name, queue, state, attempt, claim_number, ordinal,
                     due_time, enqueued_at, terminal_at, terminal_cause, mode, latch,
                     trace_context[links])
  SELECT sequence, job_id, wire_name, queue, state, 0, 0, 1, due_time, %s::bigint,
         CASE WHEN state >= {FIRST_TERMINAL} THEN %s::bigint END, cause, mode, latch, trace_context
         [links]
    FROM input ORDER BY job_id
  ON CONFLICT (job_id) DO NOTHING
  RETURNING sequence, job_id, state
), contents AS (
  INSERT INTO {content} (job_id, payload)
  SELECT n.sequence, i.payload FROM inserted n JOIN input i ON i.job_id = n.job_id
)"""

_INSERT_LOG = """, logged AS (
  INSERT INTO {transition} (job_id, ordinal, at, state, attempt, claim_number)
  SELECT sequence, 1, %s::bigint, state, 0, 0 FROM inserted ORDER BY sequence
)"""

_INSERT_TAGS = """, tagged AS (
  INSERT INTO {tag} (job_id, key, value)
  SELECT n.sequence, t.key, t.value
    FROM unnest(%s::uuid[], %s::text[], %s::text[]) WITH ORDINALITY AS t(job_id, key, value, ord)
    JOIN inserted n ON n.job_id = t.job_id
   ORDER BY t.ord
)"""


LINKS = ("schedule_id text", "tick bigint", "workflow_id uuid")
"""Columns that few jobs fill: where a job comes from, and what it belongs to."""


@functools.cache
def insert_jobs(*, logged: bool, tagged: bool, linked: bool) -> str:
    """Give the statement that stores jobs with all that hangs on them.

    ``linked``: with the columns of ``LINKS``, whose arrays follow those of the others.
    """
    names = "".join(f", {link.split()[0]}" for link in LINKS) * linked
    arrays = "".join(f", %s::{link.split()[1]}[]" for link in LINKS) * linked
    jobs = _INSERT_JOBS.replace("[links]", names).replace("[link arrays]", arrays)
    parts = [jobs, _INSERT_LOG * logged, _INSERT_TAGS * tagged]
    return sql("".join(parts) + "\nSELECT sequence, job_id FROM inserted")


_CHOOSE = """pick{place} AS MATERIALIZED (
  SELECT sequence FROM {{job}}
   WHERE state = {{SCHEDULED}} AND queue = %(queue{of})s AND due_time <= %(now)s
     AND {guard}
   ORDER BY due_time, sequence
   LIMIT {count}
     FOR NO KEY UPDATE SKIP LOCKED
)"""

_SETTINGS = """settings AS MATERIALIZED (
  SELECT coalesce(bool_or(concurrency_limit IS NOT NULL), false) AS limited,
         coalesce(array_agg(name::text) FILTER (WHERE paused), ARRAY[]::text[]) AS paused
    FROM {queue} WHERE name = ANY (%(queues)s::text[])
)"""

_NOT_PAUSED = "%(queue{of})s <> ALL (paused)"

_ROOM = """, (SELECT greatest(0, q.concurrency_limit - (
      SELECT count(*) FROM {{job}} j WHERE j.state = {{LEASED}} AND j.queue = q.name){taken})
     FROM {{queue}} q WHERE q.name = %(queue{of})s AND q.concurrency_limit IS NOT NULL)"""

_LEASE = """, leased AS (
  UPDATE {job}
     SET state = {LEASED}, attempt = attempt + 1, claim_number = claim_number + 1,
         ordinal = ordinal + 1, lease_owner = %(worker)s, lease_expires_at = %(expires)s
   WHERE sequence = ANY (ARRAY (SELECT sequence FROM picked))
  RETURNING sequence, job_id, wire_name, queue, attempt, claim_number, ordinal, due_time,
            schedule_id, tick, trace_context
)"""

_LEASE_LOG = """, logged AS (
  INSERT INTO {transition} (job_id, ordinal, at, state, attempt, claim_number, worker_id)
  SELECT sequence, ordinal, %(now)s, {LEASED}, attempt, claim_number, %(worker)s FROM leased
)"""

_CLAIM_ANSWER = """
SELECT {limited},
       CASE WHEN NOT EXISTS (SELECT 1 FROM leased) THEN (
         SELECT min(later.due_time)
           FROM unnest(%(queues)s::text[]) AS asked(name),
                LATERAL (SELECT due_time FROM {{job}}
                          WHERE state = {{SCHEDULED}} AND queue = asked.name
                            AND due_time > %(now)s
                          ORDER BY due_time LIMIT 1) AS later
          WHERE (SELECT asked.name <> ALL (paused) FROM settings)
       ) END,
       l.sequence, l.job_id, l.wire_name, l.queue, l.attempt, l.claim_number, l.due_time,
       c.payload,
       (SELECT json_agg(json_build_array(t.key, t.value) ORDER BY t.id)::text
          FROM {{tag}} t WHERE t.job_id = l.sequence),
       l.schedule_id, l.tick, l.trace_context
  FROM (SELECT 1) AS always
  LEFT JOIN (leased l JOIN {{content}} c ON c.job_id = l.sequence) ON true"""


_ROOM_AFTER_REPORT = """(SELECT CASE current_setting('backwave.settled', true)
                                WHEN 'all' THEN %(room)s::bigint ELSE 0 END)"""


@functools.cache
def claim(
    queue_count: int, *, second_pass: bool, gated: bool, logged: bool, reported: bool = False
) -> str:
    """Give the statement that claims from so many queues.

    Ungated, it claims nothing and says so (first column) if any queue has a limit.
    Gated, it is run under the gates of the limited queues, and counts what they hold.
    ``reported``: it claims nothing unless the report before it, in the same transaction,
    noted that it settled all.
    """
    picks: list[str] = []
    names: list[str] = []
    passes = [(of, False) for of in range(queue_count)]
    passes += [(of, True) for of in range(queue_count)] * second_pass
    for place, (of, is_second) in enumerate(passes):
        earlier = (f" - (SELECT count(*) FROM {name})" for name in names)
        taken = "".join([_ROOM_AFTER_REPORT if reported else "%(room)s", *earlier])
        open_to_all = "true" if gated else "NOT limited"
        guard = f"(SELECT {open_to_all} AND {_NOT_PAUSED.format(of=of)} FROM settings)"
        most, extra = f"%(most{of})s::bigint, ", ""
        if is_second:
            guard += f" AND sequence <> ALL (ARRAY (SELECT sequence FROM pick{of}))"
            most, extra = "", f" - (SELECT count(*) FROM pick{of})"
        room = _ROOM.format(of=of, taken=extra) if gated else ""
        count = f"greatest(0, least({most}{taken}{room}))"
        picks.append(_CHOOSE.format(place=place, of=of, guard=guard, count=count))
        names.append(f"pick{place}")
    union = " UNION ALL ".join(f"SELECT sequence FROM {name}" for name in names)
    text = ",\n".join([f"WITH {_SETTINGS}", *picks, f"picked AS ({union})"])
    answer = _CLAIM_ANSWER.format(limited="false" if gated else "(SELECT limited FROM settings)")
    return sql(text + _LEASE + _LEASE_LOG * logged + answer)


# What is asked goes as one JSON text: composing it, and reading it on the server, costs a
# fraction of what ten arrays cost.
_ASKED = """asked AS (
  SELECT * FROM jsonb_to_recordset(%s::jsonb)
    AS a(ord int, job_id uuid, worker_id text, attempt int, claim_number int{more})
)"""

_LEASES = (
    _ASKED
    + """, locked AS MATERIALIZED (
  SELECT sequence, job_id, lease_owner, attempt, claim_number, ordinal, due_time, cancel_cause
    FROM {{job}} WHERE job_id = ANY (ARRAY (SELECT job_id FROM asked)) AND state = {{LEASED}}
     FOR NO KEY UPDATE SKIP LOCKED
)"""
)

_FENCE = """{row}.job_id = a.job_id AND {row}.lease_owner = a.worker_id
       AND {row}.attempt = a.attempt AND {row}.claim_number = a.claim_number"""

_ALIVE = f"""EXISTS (SELECT 1 FROM {{job}} s
                WHERE s.state = {{LEASED}} AND {_FENCE.format(row="s")})"""
RENEW = sql(
    "WITH "
    + _LEASES.format(more="")
    + f""", renewed AS (
  UPDATE {{job}} j SET lease_expires_at = %s
    FROM locked k JOIN asked a ON {_FENCE.format(row="k")}
   WHERE j.sequence = k.sequence
  RETURNING a.ord, k.cancel_cause IS NOT NULL AS cancelling
)
SELECT a.ord, CASE WHEN r.cancelling THEN 3 WHEN r.ord IS NOT NULL THEN 2
                   WHEN NOT EXISTS (SELECT 1 FROM locked k WHERE k.job_id = a.job_id)
                    AND {_ALIVE} THEN 1 ELSE 0 END
  FROM asked a LEFT JOIN renewed r ON r.ord = a.ord"""
)
"""Answers: 0 lost, 1 busy, 2 renewed, 3 renewed and cancellation requested."""

_SETTLE = (
    "WITH "
    + _LEASES.format(
        more=", state smallint, due_time bigint, cause text, detail text, gives_back int"
        ", yields bool"
    )
    + f""", live AS MATERIALIZED (
  SELECT a.ord, a.detail, a.due_time, k.sequence, k.ordinal, k.cancel_cause,
         coalesce(a.gives_back, 0) AS gives_back,
         a.cause, coalesce(a.yields, false) AND k.cancel_cause IS NOT NULL AS cancelled,
         CASE WHEN a.yields AND k.cancel_cause IS NOT NULL THEN {{CANCELLED}} ELSE a.state END
           AS state,
         EXISTS (SELECT 1 FROM {{dependency}} d WHERE d.parent_id = k.sequence AND d.open)
           AS gates
    FROM locked k JOIN asked a ON {_FENCE.format(row="k")}
), settled AS (
  UPDATE {{job}} j
     SET state = l.state,
         due_time = CASE WHEN l.cancelled OR l.due_time IS NULL THEN j.due_time
                         ELSE l.due_time END,
         attempt = CASE WHEN l.cancelled THEN j.attempt ELSE j.attempt - l.gives_back END,
         ordinal = j.ordinal + 1,
         terminal_at = CASE WHEN l.state >= {{FIRST_TERMINAL}} THEN %s::bigint END,
         terminal_cause = CASE WHEN l.cancelled THEN l.cancel_cause ELSE l.cause END,
         lease_owner = NULL, lease_expires_at = NULL, cancel_cause = NULL
    FROM live l
   WHERE j.sequence = l.sequence AND {{ends}}
  RETURNING l.ord, j.sequence, j.state, j.attempt, j.claim_number, j.ordinal, l.detail
)"""
)

_SETTLE_LOG = """, logged AS (
  INSERT INTO {job_log} (job_id, ordinal, at, state, attempt, claim_number, failure_detail)
  SELECT sequence, ordinal, %s::bigint, state, attempt, claim_number, detail
    FROM settled ORDER BY ord
)"""

_SETTLE_OUTPUT = """, outputs AS (
  UPDATE {content} c SET output = o.output
    FROM unnest(%s::bigint[], %s::bytea[]) AS o(ord, output) JOIN settled s ON s.ord = o.ord
   WHERE c.job_id = s.sequence
)"""

_SETTLE_TAGS = """, tagged AS (
  INSERT INTO {tag} (job_id, key, value)
  SELECT s.sequence, t.key, t.value
    FROM unnest(%s::bigint[], %s::text[], %s::text[]) WITH ORDINALITY AS t(ord, key, value, place)
    JOIN settled s ON s.ord = t.ord
   ORDER BY t.place
  ON CONFLICT DO NOTHING
)"""

_SETTLE_ANSWER = """
SELECT l.ord, s.state{noted} FROM live l LEFT JOIN settled s ON s.ord = l.ord{noting}"""

_NOTING = """,
       (SELECT set_config('backwave.settled', CASE (SELECT count(*) FROM settled)
                                              WHEN %s THEN 'all' ELSE '' END, true)) AS noted"""

ALIVE = sql(f"WITH {_ASKED.format(more='')} SELECT a.ord FROM asked a WHERE {_ALIVE}")
"""Places of the leases that are alive, for all that can be seen."""


@functools.cache
def settle(
    *, logged: bool, tagged: bool, with_output: bool, ends_too: bool, notes_all: bool = False
) -> str:
    """Give the statement that records outcomes.

    Answers with the place and the new state of each; no state for one that was not
    written because it ends a job that gates others, nothing at all for one whose lease
    is not there to be locked. ``ends_too`` writes the ends as well. ``notes_all``: if all
    were written, tells the claim that follows in the same transaction.
    """
    answer = _SETTLE_ANSWER.format(noted=", noted.*" * notes_all, noting=_NOTING * notes_all)
    ends = "true" if ends_too else "NOT (l.gates AND l.state >= {FIRST_TERMINAL})"
    text = (
        _SETTLE.replace("{ends}", ends)
        + _SETTLE_LOG.replace("{job_log}", "{transition}") * logged
        + _SETTLE_OUTPUT * with_output
        + _SETTLE_TAGS * tagged
        + answer
    )
    return sql(text)
