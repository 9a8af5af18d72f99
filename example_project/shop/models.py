"""What the shop keeps: orders, and what came of charging them."""

from __future__ import annotations

from decimal import Decimal

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models


class Currency(models.TextChoices):
    """The currencies that the shop takes."""

    CHF = "CHF", "Swiss francs"
    EUR = "EUR", "euros"
    GBP = "GBP", "pounds sterling"
    JPY = "JPY", "yen"
    PLN = "PLN", "złoty"
    USD = "USD", "US dollars"


def money(amount: Decimal, currency: str) -> str:
    """Write an amount with its currency, such as ``1,490.00 EUR``."""
    return f"{amount:,.{0 if currency == Currency.JPY else 2}f} {currency}"


class Order(models.Model):
    """What a customer has ordered."""

    number = models.CharField(
        max_length=20,
        unique=True,
        validators=[RegexValidator(r"\AS-[0-9]{5}\Z", "not like S-10001")],
    )
    placed_on = models.DateField()
    customer = models.CharField(max_length=100)
    email = models.EmailField()
    item = models.CharField(max_length=100)
    amount = models.DecimalField(
        max_digits=10, decimal_places=2, validators=[MinValueValidator(Decimal("0.01"))]
    )
    currency = models.CharField(max_length=3, choices=Currency)
    # Never a card number: what the card gateway gave the shop in its place.
    card_token = models.CharField(
        max_length=40,
        validators=[RegexValidator(r"\Atok_[a-z]+_[0-9]{4}\Z", "not like tok_pass_0001")],
    )
    receipt_sent_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["number"]

    def __str__(self) -> str:
        return f"order {self.number}"

    @property
    def price(self) -> str:
        """The amount with its currency."""
        return money(self.amount, self.currency)

    def clean(self) -> None:
        """Refuse fractions of a currency that has none."""
        if self.currency == Currency.JPY and isinstance(self.amount, Decimal) and self.amount % 1:
            too_many = ValidationError("JPY has no decimals", code="max_decimal_places")
            raise ValidationError({"amount": too_many})


class Charge(models.Model):
    """The charge of one order. There is at most one: the database sees to it."""

    order = models.OneToOneField(Order, on_delete=models.CASCADE, related_name="charge")
    declines = models.PositiveIntegerField(default=0)
    # What the gateway calls it, once the card has been charged.
    reference = models.CharField(max_length=40, blank=True, default="")
    charged_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"charge of {self.order}"
