"""``manage.py demo``, as a newcomer runs it: in a fresh copy, from the command line."""

from __future__ import annotations

import email
import email.policy
import os
import uuid
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests.example.shop import Shop, order_line, totals

EXPECTED = {
    "orders read": 500,
    "committed": 483,
    "rolled back": 10,
    "broken lines": 7,
    "jobs asked for": 966,
    "succeeded": 954,
    "dead-lettered": 12,
    "e-mails written": 483,
    "cards charged": 471,
    "cards declined": 93,
    "tried again": 81,
}

LOOK_AT_THE_ADMIN = """
from django.test import Client
client = Client(headers={"host": "127.0.0.1"})
logged_in = client.login(username="admin", password="demo")
pages = ("/admin/", "/admin/shop/order/", "/admin/backwave_django/job/")
answer = [logged_in, *(client.get(page).status_code for page in pages)]
"""

COUNT_JOBS = """
from backwave_django import monitor
answer = sorted([entry.queue, entry.state.label, entry.count] for entry in monitor.count_jobs())
"""

JOBS_PER_ORDER = """
from collections import Counter
from backwave_django.models import JobTag
from shop.models import Order
jobs = Counter(JobTag.objects.filter(key="order").values_list("value", flat=True))
orders = set(Order.objects.values_list("number", flat=True))
answer = [set(jobs) == orders, sorted(set(jobs.values()))]
"""


def assert_sums(found: dict[str, int]) -> None:
    assert found["orders read"] == sum(
        found[name] for name in ("committed", "rolled back", "broken lines")
    )
    assert found["jobs asked for"] == 2 * found["committed"]
    assert found["jobs asked for"] == found["succeeded"] + found["dead-lettered"]


def test_the_demo_runs_every_order_to_its_end_and_its_sums_add_up(shop: Shop) -> None:
    """It starts afresh, prints the exact numbers, and leaves what it says."""
    # What an earlier run may have left: another order with its jobs, and an e-mail.
    shop.succeed("import_orders", shop.write("earlier.csv", order_line(77)))
    (shop.folder / "sent_mail").mkdir()
    (shop.folder / "sent_mail" / "earlier.eml").write_text("from an earlier run")

    output = shop.succeed("demo")

    found = totals(output)
    assert found == EXPECTED
    assert_sums(found)
    assert "All sums add up" in output
    assert "Traceback" not in output
    assert shop.ask(COUNT_JOBS) == [
        ["billing", "Dead-Lettered", 12],
        ["billing", "Succeeded", 471],
        ["emails", "Succeeded", 483],
    ]
    # No order that was rolled back has left a job.
    assert shop.ask(JOBS_PER_ORDER) == [True, [2]]
    assert len(shop.emails()) == 483
    assert "runserver" in output
    assert shop.ask(LOOK_AT_THE_ADMIN) == [True, 200, 200, 200]
    log = (shop.folder / "worker.log").read_text(encoding="utf-8")
    assert (log.count("job retrying"), log.count("job dead-lettered")) == (81, 12)


def test_the_demo_writes_real_emails(shop: Shop) -> None:
    """A mail program reads them, whatever script the customer's name is in."""
    lines = (shop.folder / "shop/data/orders.csv").read_text(encoding="utf-8").splitlines()
    arabic = next(line for line in lines if "حداد" in line)
    shop.succeed("import_orders", shop.write("one.csv", arabic))

    shop.work()

    number, _, name, address, *_ = arabic.split(",")
    (file_name,) = shop.emails()
    message = email.message_from_bytes(
        (shop.folder / "sent_mail" / file_name).read_bytes(), policy=email.policy.default
    )
    assert file_name.endswith(".eml")
    assert message["To"] == address
    assert message["Subject"] == f"Your order {number}"
    body = message.get_body()
    assert body is not None
    assert f"Hello {name}," in body.get_content()


def test_the_demo_fails_with_one_line_where_a_sum_does_not_add_up(bare_shop: Shop) -> None:
    """Exit code 1, the sum, and both its numbers."""
    orders = bare_shop.folder / "shop/data/orders.csv"
    orders.write_bytes(b"".join(orders.read_bytes().splitlines(keepends=True)[:4]))
    mail = bare_shop.folder / "shop/mail.py"
    with mail.open("a", encoding="utf-8") as source:
        source.write("    def send_messages(self, email_messages): return 0\n")

    ended = bare_shop.manage("demo")

    assert ended.returncode == 1
    assert ended.stderr == (
        "CommandError: the sums do not add up: e-mails = receipts that succeeded (0 and 3)\n"
    )


def test_the_demo_does_not_wait_for_ever(bare_shop: Shop) -> None:
    """Jobs that fail and fail, here for want of e-mail, end it with one line and exit code 1."""
    orders = bare_shop.folder / "shop/data/orders.csv"
    orders.write_bytes(b"".join(orders.read_bytes().splitlines(keepends=True)[:4]))
    mail = bare_shop.folder / "shop/mail.py"
    with mail.open("a", encoding="utf-8") as source:
        source.write("    def send_messages(self, email_messages): raise OSError\n")
    demo = bare_shop.folder / "shop/management/commands/demo.py"
    limit = "LIMIT_SECONDS = 90.0"
    assert limit in demo.read_text(encoding="utf-8")
    demo.write_text(demo.read_text(encoding="utf-8").replace(limit, "LIMIT_SECONDS = 1.5"))

    ended = bare_shop.manage("demo")

    assert ended.returncode == 1
    assert ended.stderr == (
        "CommandError: 3 jobs are left after 1.5 seconds, or are due later; see worker.log\n"
    )


def test_the_demo_says_where_to_look_when_the_worker_cannot_start(bare_shop: Shop) -> None:
    """Exit code 1, the worker's own code, and its log."""
    with (bare_shop.folder / "config/settings.py").open("a", encoding="utf-8") as settings:
        settings.write("\nimport sys\nif 'backwave_worker' in sys.argv: BACKWAVE['HISTORI'] = 1\n")

    ended = bare_shop.manage("demo")

    assert ended.returncode == 1
    assert ended.stderr == (
        "CommandError: the worker ended with exit code 2; see worker.log\n"
    )  # fmt: skip
    assert "did you mean 'HISTORY'?" in (bare_shop.folder / "worker.log").read_text()


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"SHOP_DEBUG": "false", "SHOP_SECRET_KEY": "x"}, "with DEBUG on only"),
        ({"DATABASE_URL": "sqlite://"}, "names one in memory"),
        ({"DATABASE_URL": "sqlite:////nowhere/at/all"}, "unable to open database file"),
        ({"DATABASE_URL": "postgres://u:secret@localhost:1/shop"}, "add --yes"),
        ({"SHOP_WORKER_LOG": "/nowhere/at/all"}, "/nowhere/at/all"),
    ],
)
def test_the_demo_refuses_with_one_line_and_code_2(
    bare_shop: Shop, environment: dict[str, str], reason: str
) -> None:
    """What it cannot or should not work with is said in a line, without a traceback."""
    ended = bare_shop.manage("demo", **environment)

    assert ended.returncode == 2
    assert reason in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "secret" not in ended.stdout + ended.stderr


def test_a_database_url_that_is_none_is_refused_without_showing_it(bare_shop: Shop) -> None:
    """It may hold a password."""
    ended = bare_shop.manage("check", DATABASE_URL="my://secret@host/name")

    assert ended.returncode != 0
    assert "DATABASE_URL is not understood" in ended.stderr
    assert "secret" not in ended.stderr


def test_the_example_passes_its_checks_and_lacks_no_migration(shop: Shop) -> None:
    """Neither a warning nor an outstanding migration, for the shop and for the jobs."""
    shop.succeed("check", "--fail-level", "WARNING")
    shop.succeed("makemigrations", "--check")


def test_the_order_file_is_what_its_script_writes(bare_shop: Shop) -> None:
    """Whoever changes the one changes the other."""
    orders = bare_shop.folder / "shop/data/orders.csv"
    shipped = orders.read_bytes()
    orders.unlink()

    bare_shop.ask("import runpy; runpy.run_path('shop/data/make_orders.py', run_name='__main__')\n"
                  "answer = 1")  # fmt: skip

    assert orders.read_bytes() == shipped


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """Make an empty database on the tests' PostgreSQL; gives its URL."""
    server = os.environ["BACKWAVE_TEST_POSTGRES_URL"]
    name = f"test_backwave_shop_{uuid.uuid4().hex}"
    parts = {key: str(value) for key, value in conninfo_to_dict(server).items() if value}
    parts.pop("dbname", None)
    user, password = (quote(parts.pop(key, ""), safe="") for key in ("user", "password"))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield f"postgres://{user}:{password}@/{name}?{urlencode(parts)}"
        finally:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


def test_one_variable_moves_the_demo_to_postgres(bare_shop: Shop, postgres_url: str) -> None:
    """It asks for ``--yes`` before it empties tables there; then the numbers are the same."""
    refused = bare_shop.manage("demo", DATABASE_URL=postgres_url)
    assert refused.returncode == 2

    output = bare_shop.succeed("demo", "--yes", DATABASE_URL=postgres_url)

    found = totals(output)
    assert found == EXPECTED
    assert_sums(found)
    assert not (bare_shop.folder / "db.sqlite3").exists()
