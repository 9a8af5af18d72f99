"""A card gateway that charges nobody, and always answers alike.

What it answers depends on the card's token, and on which attempt it is:

==================  =======================================================
token               answer
==================  =======================================================
``tok_pass_0001``   charged
``tok_twice_0001``  declined twice, then charged (the bank was away a while)
``tok_never_0001``  declined each time
``tok_stolen_0001`` refused for good: no further attempt would help
==================  =======================================================
"""

from __future__ import annotations

from decimal import Decimal


class CardDeclined(Exception):
    """Not this time; a later attempt may pass."""


class CardStolen(Exception):
    """Never with this card."""


def charge(
    token: str, amount: Decimal, currency: str, *, idempotency_key: str, attempt: int
) -> str:
    """Charge a card; gives the reference of the charge.

    Args:
        token: the card.
        amount: how much.
        currency: of what.
        idempotency_key: charging twice by one key is charging once, as with any gateway
            that may be called from background jobs.
        attempt: this gateway has no memory, so it must be told.

    Raises:
        CardDeclined: the bank said no.
        CardStolen: the bank keeps the card.
    """
    kind = token.split("_")[1]
    if kind == "stolen":
        raise CardStolen(f"card {token} is reported stolen")
    if kind == "never" or (kind == "twice" and attempt <= 2):
        raise CardDeclined(f"card {token}: {amount} {currency} declined")
    return f"ch_{idempotency_key}"
