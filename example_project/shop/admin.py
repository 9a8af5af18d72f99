"""Orders and their charges in the admin; jobs are there by themselves."""

from __future__ import annotations

from django.contrib import admin

from .models import Charge, Order


class ChargeInline(admin.StackedInline):
    """The charge, on the page of its order."""

    model = Charge
    can_delete = False
    readonly_fields = ("declines", "reference", "charged_at")


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    """The orders, each with its charge."""

    inlines = (ChargeInline,)
    list_display = ("number", "placed_on", "customer", "item", "amount", "currency", "is_charged")
    list_filter = ("currency",)
    list_select_related = ("charge",)
    readonly_fields = ("receipt_sent_at",)
    search_fields = ("number", "customer", "email")

    @admin.display(boolean=True, description="charged")
    def is_charged(self, order: Order) -> bool:
        """Whether the card has been charged."""
        charge = getattr(order, "charge", None)
        return charge is not None and charge.charged_at is not None
