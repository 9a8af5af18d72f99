"""The settings of the test project: a SQLite file and a real PostgreSQL.

Read from the environment, so that a child process of a test finds the databases of that
very test process (``tests.support.processes.child_environment`` writes these):

- ``BACKWAVE_TEST_DIRECTORY``: where this test run keeps its files; set by
  ``tests.plugins.databases``.
- ``BACKWAVE_TEST_POSTGRES_URL``: the PostgreSQL server; set by yourself, or else by
  ``tests.plugins.databases``, which then starts one. Without it the settings can still be
  imported (the type checker does so), but the alias ``postgres`` leads nowhere.
- ``BACKWAVE_TEST_SQLITE_NAME``, ``BACKWAVE_TEST_POSTGRES_NAME``: the databases themselves,
  in place of those that test databases are made beside.
- ``BACKWAVE_TEST_DATABASE``: the alias that jobs live in; ``default`` unless given.
- ``BACKWAVE_TEST_GROUP``: options of the worker group ``default``, as JSON.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from backwave_django.core.dispatch import Strict

_directory = Path(
    os.environ.get("BACKWAVE_TEST_DIRECTORY") or Path(tempfile.gettempdir(), "backwave-test-none")
)
# Unique to the run, so that two runs on one server do not meet.
_run = _directory.name.rpartition("-")[2]


def _postgres() -> dict[str, Any]:
    url = os.environ.get("BACKWAVE_TEST_POSTGRES_URL")
    if not url:
        return {"NAME": "backwave"}
    from psycopg.conninfo import conninfo_to_dict

    options = {key: value for key, value in conninfo_to_dict(url).items() if value is not None}
    known = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host"}
    database = {key: str(options.pop(name, "")) for key, name in known.items()}
    return {**database, "PORT": str(options.pop("port", "")), "OPTIONS": options}


DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(_directory / "default.sqlite3"),
        "OPTIONS": {
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
        },
        # A file, not ":memory:", so that threads and processes can share it.
        "TEST": {"NAME": str(_directory / "test.sqlite3")},
    },
    "postgres": {
        "ENGINE": "django.db.backends.postgresql",
        **_postgres(),
        "TEST": {"NAME": f"test_backwave_{_run}"},
    },
}
for _alias, _variable in (
    ("default", "BACKWAVE_TEST_SQLITE_NAME"),
    ("postgres", "BACKWAVE_TEST_POSTGRES_NAME"),
):
    if os.environ.get(_variable):
        DATABASES[_alias]["NAME"] = os.environ[_variable]

BACKWAVE: dict[str, Any] = {"DATABASE": os.environ.get("BACKWAVE_TEST_DATABASE", "default")}
if os.environ.get("BACKWAVE_TEST_GROUP"):
    BACKWAVE["WORKER_GROUPS"] = {
        "default": {"policy": Strict("default"), **json.loads(os.environ["BACKWAVE_TEST_GROUP"])}
    }
DATABASE_ROUTERS = ["tests.support.router.TestRouter"]

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.admin",
    "backwave_django",
    "tests.testapp",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
ROOT_URLCONF = "tests.urls"
STATIC_URL = "static/"
SECRET_KEY = "only for tests"
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Quick, and good enough for users that live for one test.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
