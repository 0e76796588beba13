"""Tolerance of damage in older batches, from which results are reused or compared."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from codebatch.errors import StoreError, StoreUnwritable, UnknownId


@contextlib.contextmanager
def treating_damage_as_missing() -> Iterator[None]:
    """Suppress errors that occur when an older batch is read, so that its unreadable results count as missing.

    Suppresses UnknownId, StoreError and FileNotFoundError, but not StoreUnwritable.
    """
    try:
        yield
    except StoreUnwritable:
        raise
    except (UnknownId, StoreError, FileNotFoundError):
        pass
