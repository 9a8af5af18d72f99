"""The background jobs of the shop. Read this file first, then ``orders.py``.

A job runs at least once: a worker that dies in the middle, or whose answer is lost, makes
it run again. So each handler first looks whether its work is done already.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.core.mail import EmailMessage
from django.db.models import F
from django.db.models.functions import Now

from backwave_django import GiveUp, JobContext, RetryPolicy, handles, job

from . import gateway
from .models import Charge, Order

# Seconds, so that the demo ends while you watch. A shop would wait minutes and hours; left
# out, the policy is 2, 4, 8 ... at most 300 seconds, and 10 attempts.
SOON = RetryPolicy(max_attempts=4, backoff=lambda attempt: 0.15 * 2**attempt)


# --- The method form: a function, whose arguments are the payload ------------------------


@job("order-charged", queue="billing", retry=SOON)
def charge_order(ctx: JobContext, order_id: int) -> None:
    """Charge the card of an order.

    A decline is raised on: the job is then tried again, later, up to four times in all.
    """
    order = Order.objects.get(pk=order_id)
    charge, _ = Charge.objects.get_or_create(order=order)
    if charge.charged_at is not None:
        return
    try:
        reference = gateway.charge(
            order.card_token,
            order.amount,
            order.currency,
            # The worker may die between this call and the update below. The next attempt
            # then calls again, and the key keeps the customer from paying twice.
            idempotency_key=order.number,
            attempt=ctx.attempt,
        )
    except (gateway.CardDeclined, gateway.CardStolen) as refusal:
        Charge.objects.filter(pk=charge.pk).update(declines=F("declines") + 1)
        if isinstance(refusal, gateway.CardStolen):
            raise GiveUp(str(refusal)) from refusal
        raise
    Charge.objects.filter(pk=charge.pk).update(reference=reference, charged_at=Now())


# --- The class form: a payload class, and the class that handles it ----------------------


@job("send-receipt", queue="emails", labels=["mail"])
@dataclass(frozen=True)
class SendReceipt:
    """Tell the customer that the order has arrived."""

    order_id: int


@handles(SendReceipt)
class SendReceiptHandler:
    """Writes the e-mail; built anew for each attempt."""

    def handle(self, job: SendReceipt, ctx: JobContext) -> None:
        """Send the receipt, unless it has been sent."""
        order = Order.objects.get(pk=job.order_id)
        if order.receipt_sent_at is not None:
            return
        EmailMessage(
            subject=f"Your order {order.number}",
            body=(
                f"Hello {order.customer},\n\n"
                f"thank you for your order of {order.placed_on:%Y-%m-%d}:\n\n"
                f"    {order.item}    {order.price}\n\n"
                "We charge your card now and ship as soon as that is done.\n\n"
                "Your Example Shop\n"
            ),
            to=[order.email],
            # E-mail knows no transaction. Should the worker die before the update below,
            # the second e-mail has the id of the first, and mail programs show one.
            headers={"Message-ID": f"<receipt-{order.number}@shop.example.com>"},
        ).send()
        Order.objects.filter(pk=order.pk).update(receipt_sent_at=Now())
