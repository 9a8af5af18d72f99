"""Write ``orders.csv``, always the same: lists and arithmetic, no chance.

All names are invented. Seven lines are broken on purpose, each in its own way.
"""

from __future__ import annotations

import csv
import io
from datetime import date, timedelta
from pathlib import Path

COLUMNS = ("number", "placed_on", "customer", "email", "item", "amount", "currency", "card_token")
LINES = 500
ORDERS_PER_DAY = 9

# Name, the name before the @, currency.
CUSTOMERS = [
    ("Zoë Brückner", "zoe.brueckner", "EUR"),
    ("Siobhán O'Neill", "siobhan.oneill", "GBP"),
    ("山本 さくら", "yamamoto", "JPY"),
    ("Ada Fernsby, Jr.", "ada.fernsby", "USD"),
    ("ليلى حداد", "layla.haddad", "EUR"),
    ("Jürg Gämperle", "juerg.gaemperle", "CHF"),
    ("Łucja Żółkiewska", "lucja.z", "PLN"),
    ("נועה לוינסקי", "noa.levinsky", "USD"),
    ("王小雨", "wang.xiaoyu", "USD"),
    ("Søren Østergaard-Ångström", "soren.oa", "EUR"),
    ("DJ Fuchs 🦊", "dj.fuchs", "EUR"),
    ("김하늘", "kim.haneul", "USD"),
    ("Ελένη Παπαδάκη", "eleni.p", "EUR"),
    ("Ольга Снежина", "olga.snezhina", "EUR"),
    ("Nguyễn Thị Mai", "nguyen.mai", "USD"),
    ("Inès D'Arcy-Müller", "ines.darcy", "CHF"),
    ("अनन्या शर्मा", "ananya.sharma", "GBP"),
    ("Ólafur Þórsson", "olafur.thorsson", "GBP"),
    ('Greta "Gigi" Holm', "gigi.holm", "EUR"),
    ("สมชาย ใจดี", "somchai.jaidee", "USD"),
    ("Iñaki Etxeberri", "inaki.etxeberri", "EUR"),
    ("佐藤 健太郎", "sato", "JPY"),
    ("Família Conceição 👨‍👩‍👧", "familia.conceicao", "EUR"),
]
# Name, price in euro cents.
ITEMS = [
    ("Candle, large", 1490),
    ('Mug "Sunrise"', 1250),
    ("Grüner Tee 🍵", 895),
    ("風呂敷 (wrapping cloth)", 2300),
    ("Field notebook", 640),
    ("Räuchermännchen", 3475),
    ("Café crème, 12 bags", 8999),
    ("Rosewood pen", 4205),
    ("Wool blanket", 12900),
    ("شاي بالنعناع", 720),
    ("Lamp No. 5", 18950),
]
# Hundredths of the currency's unit for one euro cent, times 100.
RATES = {"CHF": 95, "EUR": 100, "GBP": 86, "JPY": 16_500, "PLN": 428, "USD": 112}
BULK = {44, 97, 151, 203, 260, 318, 377, 421, 466}
TWO_ON_ONE_DAY = {290, 291}


def order(i: int) -> list[str]:
    """Give the values of line ``i``, a good one."""
    customer, mailbox, currency = CUSTOMERS[i % len(CUSTOMERS)]
    item, cents = ITEMS[i * 7 % len(ITEMS)]
    pieces = 1 + i % 3
    if i in BULK:
        item, cents, pieces = "Wool blanket, for a hotel", 12900, 12
    if i in TWO_ON_ONE_DAY:  # 774 euros each: one is fine, two are over the daily limit
        (customer, mailbox, currency), item, cents, pieces = CUSTOMERS[0], "Wool blanket", 12900, 6
    hundredths = cents * pieces * RATES[currency] // 100
    if currency == "JPY":
        amount = str(hundredths // 100)
    else:
        amount = f"{hundredths // 100}.{hundredths % 100:02}"
    placed_on = date(2026, 1, 2) + timedelta(days=i // ORDERS_PER_DAY)
    kind = "pass"
    if i % 17 == 5:
        kind = "twice"
    if i % 61 == 9:
        kind = "never"
    if i % 160 == 40:
        kind = "stolen"
    email = f"{mailbox}@example.com"
    card = f"tok_{kind}_{i % 10_000:04}"
    return [f"S-{10_001 + i}", placed_on.isoformat(), customer, email, item, amount, currency, card]


def line(i: int) -> str:
    """Give line ``i``, good or broken."""
    values = order(i)
    match i:
        case 57:
            del values[4]  # a column is missing
        case 120:
            values[5] = "12,50 EUR"
        case 188:
            values[1] = "2026-02-30"
        case 233:
            return "\n"
        case 305:
            values[6] = "XBT"
        case 362:
            return (
                ",".join(values[:4])
                + ',"Lamp, the quote is never closed,'
                + ",".join(values[5:])
                + "\n"
            )
        case 449:
            values[0] = "S-10003"  # for the second time
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(values)
    return out.getvalue()


if __name__ == "__main__":
    text = ",".join(COLUMNS) + "\n" + "".join(line(i) for i in range(LINES))
    Path(__file__).with_name("orders.csv").write_bytes(text.encode())
