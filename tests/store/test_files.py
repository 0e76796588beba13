"""What the disk refuses leaves files as they were."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from codebatch.errors import StoreError, StoreUnwritable
from codebatch.store.store import create_store
from codebatch.system.calls import RealCalls
from codebatch.system.files import RealFiles
from codebatch.testing.calls import Fate, Operation, WatchedCalls


def test_bytes_of_an_append_that_was_refused_halfway_are_not_before_the_next(tmp_path: Path) -> None:
    fates = iter([None, Fate(OSError(errno.ENOSPC, "No space left on device"), share=0.5), None])
    calls = WatchedCalls(RealCalls(), lambda operation: next(fates) if operation.call == "write" else None)
    files = RealFiles(calls)
    path = tmp_path / "segment"
    appender = files.open_append(path)
    appender.append(b"first")
    with pytest.raises(StoreUnwritable):
        appender.append(b"refused")
    offset = appender.append(b"second")
    appender.close()
    assert files.read_range(path, offset, 6) == b"second"


def test_a_file_system_without_hard_links_holds_no_store(tmp_path: Path) -> None:
    def watch(operation: Operation) -> Fate | None:
        return Fate(OSError(errno.EPERM, "Operation not permitted")) if operation.call == "link" else None

    with pytest.raises(StoreError, match="hard links"):
        create_store(RealFiles(WatchedCalls(RealCalls(), watch)), tmp_path / "store")
    assert not (tmp_path / "store" / "store.json").exists()
