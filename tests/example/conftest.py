"""The example shop, as a fixture: migrated, on SQLite."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.example.shop import Shop


@pytest.fixture(scope="session")
def migrated_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an empty database once, to be copied."""
    shop = Shop(tmp_path_factory.mktemp("migrated"))
    shop.succeed("migrate", "-v0")
    return shop.folder / "db.sqlite3"


@pytest.fixture
def bare_shop(tmp_path: Path) -> Shop:
    """Give a shop as one finds it after a clone: without a database."""
    return Shop(tmp_path)


@pytest.fixture
def shop(bare_shop: Shop, migrated_database: Path) -> Shop:
    """Give a shop with empty tables."""
    shutil.copy(migrated_database, bare_shop.folder / "db.sqlite3")
    return bare_shop
