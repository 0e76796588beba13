"""What of an older batch cannot be read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from codebatch.errors import StoreError, StoreUnwritable, UnknownId


@contextlib.contextmanager
def treating_damage_as_missing() -> Iterator[None]:
    """What of a base cannot be read is not there. Raises StoreUnwritable."""
    try:
        yield
    except StoreUnwritable:
        raise
    except (UnknownId, StoreError, FileNotFoundError):
        pass
