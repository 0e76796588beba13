"""Writing of many files by several threads."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

_WRITER_THREADS = 8


def write_in_threads(write: Callable[[Path, bytes], None], contents: Iterator[tuple[Path, bytes]]) -> None:
    """Write files in several threads: a disk syncs several files in the time of one.

    If the system refuses to start a thread, fewer threads are used. After an error in one thread, each other thread
    writes at most one more file.
    """
    lock = threading.Lock()
    errors: list[BaseException] = []

    def write_rest() -> None:
        try:
            while not errors:
                with lock:
                    item = next(contents, None)
                if item is None:
                    return
                write(*item)
        except BaseException as error:
            errors.append(error)

    threads = []
    with contextlib.suppress(RuntimeError):
        for _ in range(_WRITER_THREADS - 1):
            thread = threading.Thread(target=write_rest, daemon=True)
            thread.start()
            threads.append(thread)
    write_rest()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
