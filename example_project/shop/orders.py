"""Placing an order: the order and its jobs are committed together, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.db.models import Sum

from backwave_django import enqueue

from .jobs import SendReceipt, charge_order
from .models import Currency, Order, money

DAILY_LIMIT = {
    Currency.CHF: Decimal(1_000),
    Currency.EUR: Decimal(1_000),
    Currency.GBP: Decimal(900),
    Currency.JPY: Decimal(150_000),
    Currency.PLN: Decimal(4_000),
    Currency.USD: Decimal(1_000),
}
"""What one customer may order on one day, in one currency."""


class OrderRefused(Exception):
    """The shop does not take this order; the text says why."""


@dataclass(frozen=True)
class Placed:
    """A committed order, with the jobs that it asked for; none if it was there before."""

    order: Order
    job_ids: tuple[UUID, ...] = ()


@transaction.atomic
def place_order(order: Order) -> Placed:
    """Save an order and enqueue its jobs.

    An order whose number is there already is left alone, with its jobs.

    Raises:
        OrderRefused: order and jobs are rolled back.
    """
    values = {
        field.name: getattr(order, field.name)
        for field in Order._meta.concrete_fields
        if field.name not in ("id", "number")
    }
    saved, is_new = Order.objects.get_or_create(number=order.number, defaults=values)
    if not is_new:
        return Placed(saved)
    tags = [("order", saved.number)]
    job_ids = (
        charge_order.using(tags=tags).enqueue(order_id=saved.pk),
        enqueue(SendReceipt(order_id=saved.pk), tags=tags),
    )
    # The limit needs the order in the table, so it comes last. That is fine: no worker
    # sees a job before the commit, and after a rollback there is none to see.
    _refuse_over_daily_limit(saved)
    return Placed(saved, job_ids)


def _refuse_over_daily_limit(order: Order) -> None:
    of_the_day = Order.objects.filter(
        email=order.email, placed_on=order.placed_on, currency=order.currency
    )
    total = of_the_day.aggregate(total=Sum("amount"))["total"]
    limit = DAILY_LIMIT[Currency(order.currency)]
    if total > limit:
        raise OrderRefused(
            f"{money(total, order.currency)} on one day is over the limit of "
            f"{money(limit, order.currency)}"
        )
