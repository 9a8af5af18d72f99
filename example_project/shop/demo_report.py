"""What the demo shows at its end, and the sums that must hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db.models import Sum

from backwave_django import JobState, monitor

from .jobs import charge_order
from .models import Charge, Order
from .order_file import ImportReport

RECEIPT = "send-receipt"
PAGE = 500


@dataclass(frozen=True)
class DemoReport:
    """The numbers, from three sources: the import, the jobs, and the shop itself."""

    imported: ImportReport
    orders: int
    jobs: int
    succeeded: int
    dead_lettered: int
    receipts_succeeded: int
    emails: int
    charges_succeeded: int
    cards_charged: int
    declined: int
    retried: int

    def lines(self) -> Iterator[str]:
        """Give the table."""
        for name, count in (
            ("orders read", self.imported.read),
            ("  committed", self.imported.committed),
            ("  rolled back, with their jobs", self.imported.rolled_back),
            ("  broken lines, skipped", self.imported.broken),
            ("jobs asked for", self.imported.jobs),
            ("  succeeded", self.succeeded),
            ("  dead-lettered", self.dead_lettered),
            ("e-mails written", self.emails),
            ("cards charged", self.cards_charged),
            ("cards declined, times", self.declined),
            ("  tried again", self.retried),
        ):
            yield f"{name:<34}{count:>6,}"

    def wrong_sums(self) -> list[str]:
        """Give each sum that does not hold, with its numbers; best none."""
        taken = self.imported
        sums = (
            (
                "orders read = committed + rolled back + broken lines",
                taken.read,
                taken.committed + taken.rolled_back + taken.broken,
            ),
            ("orders in the shop = committed", self.orders, taken.committed),
            ("jobs there = jobs asked for", self.jobs, taken.jobs),
            (
                "jobs asked for = succeeded + dead-lettered",
                taken.jobs,
                self.succeeded + self.dead_lettered,
            ),
            ("e-mails = receipts that succeeded", self.emails, self.receipts_succeeded),
            ("cards charged = charges that succeeded", self.cards_charged, self.charges_succeeded),
        )
        return [f"{text} ({left} and {right})" for text, left, right in sums if left != right]


def read_report(imported: ImportReport) -> DemoReport:
    """Count what there is now."""
    by_state: Counter[JobState] = Counter()
    succeeded_by_type: Counter[str] = Counter()
    retried = 0
    for job in _all_jobs():
        by_state[job.state] += 1
        if job.state is JobState.SUCCEEDED:
            succeeded_by_type[job.wire_name] += 1
        if job.wire_name == charge_order.wire_name:
            retried += job.attempt - 1
    return DemoReport(
        imported=imported,
        orders=Order.objects.count(),
        jobs=by_state.total(),
        succeeded=by_state[JobState.SUCCEEDED],
        dead_lettered=by_state[JobState.DEAD_LETTERED],
        receipts_succeeded=succeeded_by_type[RECEIPT],
        emails=sum(1 for _ in Path(settings.SENT_MAIL).glob("*.eml")),
        charges_succeeded=succeeded_by_type[charge_order.wire_name],
        cards_charged=Charge.objects.filter(charged_at__isnull=False).count(),
        declined=Charge.objects.aggregate(total=Sum("declines"))["total"] or 0,
        retried=retried,
    )


def _all_jobs() -> Iterator[monitor.JobSnapshot]:
    after = None
    while page := monitor.list_jobs(after=after, limit=PAGE):
        yield from page
        after = page[-1].sequence
