"""Control of Python's cyclic garbage collector."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Disable the garbage collector inside the `with`.

    Use it while many objects are created that stay alive and form no cycles.

    With the collector enabled, collections take a sixth of the time in which a large task list is read, and a ninth of
    the time of a snapshot. On exit the new objects move to the oldest generation, so that the next collection does not
    scan them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # If the caller has frozen other objects, gc.unfreeze would unfreeze them too.
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
