"""The settings of the example shop, for development on one machine.

Read from the environment, or from a file ``.env`` beside ``manage.py``:

- ``DATABASE_URL``: the database; a SQLite file beside ``manage.py`` unless set.
- ``SHOP_DEBUG``, ``SHOP_SECRET_KEY``: Django's ``DEBUG`` and ``SECRET_KEY``.
- ``SHOP_MAIL``: the folder that e-mails are written to.
- ``SHOP_WORKER_LOG``: the file that ``manage.py demo`` keeps the worker's log in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import django
import environ
from django.core.exceptions import ImproperlyConfigured

from backwave_django import Strict, Weighted

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
env.read_env(BASE_DIR / ".env")

DEBUG = env.bool("SHOP_DEBUG", default=True)
# Good enough while DEBUG is on; without it a key of your own is asked for.
SECRET_KEY = env.str("SHOP_SECRET_KEY", default="only-for-development" if DEBUG else env.NOTSET)
ALLOWED_HOSTS: list[str] = []

# --- The database: one for the shop's tables and the jobs' tables ------------------------
# Both live in one database, so that an order and its jobs are committed together.


def _database() -> dict[str, Any]:
    if not env.str("DATABASE_URL", default=""):
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(BASE_DIR / "db.sqlite3")}
    database: dict[str, Any] = env.db_url("DATABASE_URL")
    if "." not in database.get("ENGINE", ""):
        # The URL itself is not shown: it may hold a password.
        raise ImproperlyConfigured(
            "DATABASE_URL is not understood; write it like postgres://user:password@host/name"
        )
    return database


DATABASES = {"default": _database()}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # What SQLite needs when a web server and a worker share a file. No other database
    # knows these options.
    DATABASES["default"]["OPTIONS"] = {
        **DATABASES["default"].get("OPTIONS", {}),
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
    }

# --- Background jobs ---------------------------------------------------------------------

BACKWAVE = {
    "WORKER_GROUPS": {
        # Charging cards goes first, but never starves the rest.
        "default": {"policy": Weighted({"billing": 3, "default": 1}), "pool_size": 8},
        # A group of its own: a slow mail server holds up no charge.
        "emails": {"policy": Strict("emails"), "pool_size": 4},
    },
}

# --- E-mail: files instead of a mail server ----------------------------------------------

SENT_MAIL = env.str("SHOP_MAIL", default=str(BASE_DIR / "sent_mail"))
if django.VERSION >= (6, 1):
    MAILERS = {
        "default": {"BACKEND": "shop.mail.EmlFileBackend", "OPTIONS": {"file_path": SENT_MAIL}}
    }
else:
    EMAIL_BACKEND = "shop.mail.EmlFileBackend"
    EMAIL_FILE_PATH = SENT_MAIL
DEFAULT_FROM_EMAIL = "Example Shop <shop@example.com>"

# --- Logging: what the worker says, one line each ----------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)-7s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {"backwave_django": {"handlers": ["console"], "level": "INFO"}},
}
WORKER_LOG = env.str("SHOP_WORKER_LOG", default=str(BASE_DIR / "worker.log"))

# --- The rest: what the admin needs ------------------------------------------------------

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "backwave_django",
    "shop",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
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
            ]
        },
    }
]
ROOT_URLCONF = "config.urls"
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
