"""``manage.py import_orders``, and the handlers of the shop run twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.example.shop import HEADER, Shop, order_line, totals

ORDERS_AND_JOBS = """
from backwave_django import monitor
from shop.models import Order
answer = [
    list(Order.objects.values_list("number", flat=True)),
    sum(entry.count for entry in monitor.count_jobs()),
]
"""


def test_a_file_may_be_imported_again(shop: Shop) -> None:
    """The second time every order is there already, and no job is enqueued twice."""
    first = totals(shop.succeed("import_orders", "shop/data/orders.csv"))
    second = totals(shop.succeed("import_orders", "shop/data/orders.csv"))

    assert first == {
        "orders read": 500,
        "committed": 483,
        "already there": 0,
        "rolled back": 10,
        "broken lines": 7,
        "jobs asked for": 966,
    }
    assert second == {**first, "committed": 0, "already there": 483, "jobs asked for": 0}
    assert shop.ask(ORDERS_AND_JOBS)[1] == 966


def test_an_order_that_is_refused_leaves_neither_order_nor_job(shop: Shop) -> None:
    """The one before and the one after it are committed all the same."""
    one_customer = {"email": "a@example.com", "amount": "600.00"}
    path = shop.write(
        "orders.csv",
        order_line(1, **one_customer),
        order_line(2, **one_customer),
        order_line(3, **one_customer, placed_on="2026-05-05"),
    )

    output = shop.succeed("import_orders", path)

    assert "line 3: rolled back: 1,200.00 EUR on one day is over the limit" in output
    assert totals(output)["rolled back"] == 1
    assert shop.ask(ORDERS_AND_JOBS) == [["S-00001", "S-00003"], 4]


def test_the_shipped_file_has_a_broken_line_of_each_kind(shop: Shop) -> None:
    """Each is reported by its number in the file."""
    output = shop.succeed("import_orders", "shop/data/orders.csv")

    assert [line for line in output.splitlines() if "broken, skipped" in line] == [
        "line 59: broken, skipped: 7 columns, not 8",
        "line 122: broken, skipped: amount: '12,50 EUR' is not like 12.50",
        "line 190: broken, skipped: placed_on: '2026-02-30' is not in the calendar",
        "line 235: broken, skipped: the line is empty",
        "line 307: broken, skipped: currency: 'XBT' is not known here",
        "line 364: broken, skipped: no CSV: unexpected end of data",
        "line 451: broken, skipped: number: 'S-10003' is on line 4 already",
    ]


HOSTILE = {
    order_line(1, customer="\x1b[2Jgone"): "customer: a control character in '\\x1b[2Jgone'",
    order_line(1, customer="nul\x00"): "customer: a control character in 'nul\\x00'",
    order_line(1, customer=""): "customer: '' is missing",
    order_line(1, item="x" * 101): f"item: '{'x' * 40}...' is too long",
    order_line(1, item="y" * 200_000): "no CSV: field larger than field limit (131072)",
    order_line(1, amount="NaN"): "amount: 'NaN' is not like 12.50",
    order_line(1, amount="1e3"): "amount: '1e3' is not like 12.50",
    order_line(1, amount="-5.00"): "amount: '-5.00' is not like 12.50",
    order_line(1, amount="\uff11\uff12"): "amount: '\\uff11\\uff12' is not like 12.50",
    order_line(1, amount="0"): "amount: '0' is too small",
    order_line(1, amount="9" * 30): f"amount: '{'9' * 30}' has too many digits",
    order_line(1, amount="1.234"): "amount: '1.234' has too many decimals",
    order_line(1, amount="12.5", currency="JPY"): "amount: '12.5' has too many decimals",
    order_line(1, placed_on="4.5.2026"): "placed_on: '4.5.2026' has the wrong form",
    order_line(1, email="a@b\u202ec"): "email: 'a@b\\u202ec' has the wrong form",
    order_line(1, card_token="4111111111111111"): (
        "card_token: '4111111111111111' has the wrong form"
    ),
    order_line(1, number="S-10001'; DROP TABLE shop_order; --"): (
        'number: "S-10001\'; DROP TABLE shop_order; --" has the wrong form'
    ),
    order_line(1) + ",more": "9 columns, not 8",
    order_line(1, customer='"a" b'): "no CSV: ',' expected after '\"'",
}


def test_hostile_lines_cost_themselves_only_and_cannot_forge_output(shop: Shop) -> None:
    """Each gets one plain line of ASCII with its number; what stands between is imported."""
    lines = [order_line(2), *HOSTILE, order_line(3, item='"Lamp, large"')]

    output = shop.succeed("import_orders", shop.write("orders.csv", *lines))

    reported = output.splitlines()[: len(HOSTILE)]
    assert reported == [
        f"line {number}: broken, skipped: {reason}"
        for number, reason in enumerate(HOSTILE.values(), start=3)
    ]
    assert all(line.isascii() and line.isprintable() for line in output.splitlines())
    assert shop.ask(ORDERS_AND_JOBS) == [["S-00002", "S-00003"], 4]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file or directory"),
        ("a directory", "is not a file"),
        (b"", "is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is not UTF-8 text"),
        (b"\x7fELF\x02\x01\x01\x00", f"must begin with the line {HEADER}"),
        (b"number;placed_on\n", f"must begin with the line {HEADER}"),
        # A good order before the byte that is no UTF-8: nothing of the file is imported.
        (f"{HEADER}\n{order_line(1)}\n{order_line(2)}\n".encode("latin-1"), "is not UTF-8 text"),
        (f"{HEADER}\n".encode() * 200_000, "is over 10,000,000 bytes; split it"),
    ],
    ids=["missing", "directory", "empty", "binary", "binary-ascii", "header", "latin-1", "large"],
)
def test_a_file_that_is_none_of_orders_is_refused_whole(
    shop: Shop, content: bytes | str | None, reason: str
) -> None:
    """One line that names the file, exit code 2, and nothing imported."""
    path = shop.folder / "orders\n.csv"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.mkdir()

    ended = shop.manage("import_orders", str(path))

    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == f"CommandError: {str(path)!a} {reason}\n"
    assert shop.ask(ORDERS_AND_JOBS) == [[], 0]


def test_a_file_as_spreadsheets_write_it_is_read(shop: Shop) -> None:
    """With a byte order mark, with CRLF, and without an end of line at the end."""
    path = Path(shop.write("orders.csv", order_line(1), order_line(2)))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n").rstrip())

    assert totals(shop.succeed("import_orders", str(path)))["committed"] == 2


def test_without_tables_the_import_says_to_migrate(bare_shop: Shop) -> None:
    """One line and exit code 2, where a newcomer forgets the first step."""
    ended = bare_shop.manage("import_orders", "shop/data/orders.csv")

    assert ended.returncode == 2
    assert "no such table" in ended.stderr
    assert "migrate" in ended.stderr
    assert ended.stderr.count("\n") == 1


ENQUEUE_AGAIN = """
from backwave_django import enqueue
from shop.jobs import SendReceipt, charge_order
from shop.models import Order
for order in Order.objects.all():
    charge_order.enqueue(order_id=order.pk)
    enqueue(SendReceipt(order_id=order.pk))
answer = None
"""

WHAT_CAME_OF_IT = """
from backwave_django import monitor
from shop.models import Order
answer = [
    [list(row) for row in Order.objects.values_list(
        "charge__declines", "charge__reference", "charge__charged_at", "receipt_sent_at")],
    sorted([entry.state.label, entry.count] for entry in monitor.count_jobs()),
]
for row in answer[0]:
    row[2:] = [str(instant) for instant in row[2:]]
"""


def test_jobs_that_run_twice_do_their_work_once(shop: Shop) -> None:
    """As a worker that dies before its answer is recorded makes them do."""
    shop.succeed("import_orders", shop.write("orders.csv", order_line(1), order_line(2)))
    shop.work()
    once, _ = shop.ask(WHAT_CAME_OF_IT)
    for email in shop.emails():
        (shop.folder / "sent_mail" / email).unlink()

    shop.ask(ENQUEUE_AGAIN)
    shop.work()

    twice, jobs = shop.ask(WHAT_CAME_OF_IT)
    assert jobs == [["Succeeded", 4], ["Succeeded", 4]]
    assert [row[:2] for row in once] == [[0, "ch_S-00001"], [0, "ch_S-00002"]]
    assert twice == once
    assert shop.emails() == []
