"""The pure Core: every decision of the system, and nothing that touches the world.

Nothing here does I/O, reads a clock, draws randomness, starts a thread, logs or
imports Django. Time comes in as an argument, what is to be done goes out as a value.
``driver`` is the way in; ``states`` is the theory.
"""

from __future__ import annotations
