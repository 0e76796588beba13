"""Fixtures for tests of stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.system.files.files import RealFiles


@pytest.fixture
def store(tmp_path: Path) -> StoreDir:
    """A new, empty store."""
    return create_store(RealFiles(), tmp_path / "store")[0]
