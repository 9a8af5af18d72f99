"""A worker that stops still at one point of its report, so that a test can kill it there.

``python -m tests.support.faulty_worker POINT FILE OPTIONS...``: runs ``backwave_worker``
with the options; at POINT of the first report of at least ``BACKWAVE_TEST_OUTCOMES``
outcomes it writes FILE and never goes on.

- ``before``: the outcomes are in hand, nothing has been sent;
- ``during``: they are written, in a transaction that is not committed;
- ``after``: they are committed, the pump does not know it yet.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import django


def main(point: str, file: str, options: list[str]) -> None:
    """Patch the store of this process, then run the command."""
    django.setup()
    from django.core.management import call_command
    from django.db import transaction

    from backwave_django.storage.orm.store import DjangoStore

    exchange = DjangoStore.exchange
    enough = int(os.environ.get("BACKWAVE_TEST_OUTCOMES", "1"))

    def stand_still() -> None:
        Path(file).write_text("here")
        threading.Event().wait()

    def faulty(self: Any, worker_id: str, outcomes: Any, request: Any, now: Any) -> Any:
        if not outcomes:
            return exchange(self, worker_id, outcomes, request, now)
        if len(outcomes) < enough:
            # Busy: the driver keeps them, and reports them again with more.
            from backwave_django.core.events import Claimed, Reported, Verdict

            return [Reported(Verdict.BUSY)] * len(outcomes), request and Claimed((), None)
        if point == "before":
            stand_still()
        if point == "during":
            with transaction.atomic(using=self.alias):
                exchange(self, worker_id, outcomes, None, now)
                stand_still()
        answer = exchange(self, worker_id, outcomes, None, now)
        if point == "after":
            stand_still()
        return answer

    DjangoStore.exchange = faulty  # type: ignore[method-assign]
    call_command("backwave_worker", *options)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
