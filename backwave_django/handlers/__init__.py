"""Declaring jobs: their identity, their payload types, and the code that runs them.

Knows no store: what a declared job needs of the client it reaches through a port that
is bound when the app is ready.
"""

from __future__ import annotations
