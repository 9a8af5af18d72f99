"""Statements over the graph that PostgreSQL and SQLite read alike."""

from __future__ import annotations

from .sql import sql

# UNION, and not UNION ALL: each job is visited once, however many ways lead to it.
IS_ANCESTOR = sql("""
    WITH RECURSIVE above(id) AS (
      SELECT parent_id FROM {dependency} WHERE child_id = %s
      UNION
      SELECT d.parent_id FROM above a JOIN {dependency} d ON d.child_id = a.id
    )
    SELECT 1 FROM above WHERE id = %s LIMIT 1
""")
