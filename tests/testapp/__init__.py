"""An application as users write them: a model and some jobs."""

from __future__ import annotations
