"""Tolerance of damage in older batches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from codebatch.errors import StoreError, StoreUnwritable, UnknownId


@contextlib.contextmanager
def treating_damage_as_missing() -> Iterator[None]:
    """Suppress errors of reading a base, so that unreadable results count as missing.

    StoreUnwritable is not suppressed.
    """
    try:
        yield
    except StoreUnwritable:
        raise
    except (UnknownId, StoreError, FileNotFoundError):
        pass
