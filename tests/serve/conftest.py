"""A store that is made once for all tests that only read it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codebatch.operations.project.stores import open_store
from codebatch.store.batches.batch_directory import open_batch
from tests.serve.event_files import EventFiles
from tests.serve.server_process import ServerProcess, serve
from tests.serve.serving import Client, LiveStore, make_live_store, serve_store
from tests.serve.watching import Stream
from tests.support.browser import Page, browse


@pytest.fixture(scope="session")
def live_store(tmp_path_factory: pytest.TempPathFactory) -> LiveStore:
    """A store with batches of both kinds. Tests must not change it."""
    return make_live_store(tmp_path_factory.mktemp("live"))


@pytest.fixture(scope="module")
def client(live_store: LiveStore) -> Iterator[Client]:
    """A client of a server that only reads."""
    with serve_store(live_store.root) as opened:
        yield opened


@pytest.fixture
def own_store(tmp_path: Path) -> LiveStore:
    """A store that the test may change, and that this user created here."""
    return make_live_store(tmp_path)


@pytest.fixture(scope="module")
def server(live_store: LiveStore) -> Iterator[ServerProcess]:
    """A server over a store that does not change."""
    with serve(live_store.root) as opened:
        yield opened


@pytest.fixture
def files(live_store: LiveStore, tmp_path: Path) -> tuple[LiveStore, EventFiles]:
    """A copy of a store, and the event files of its task list, which have no event yet."""
    store = live_store.copy(tmp_path)
    files = EventFiles(store.batch_root())
    files.clear()
    return store, files


@pytest.fixture(scope="module")
def stream(live_store: LiveStore, tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """A copy of a batch, without events."""
    copied = live_store.copy(tmp_path_factory.mktemp("stream"))
    store = open_store(copied.root)
    made = Stream(store, open_batch(store, copied.work))
    made.files.clear()
    return made


@pytest.fixture
def own_page(tmp_path: Path) -> Iterator[Page]:
    """A page of a browser that no other test uses."""
    with browse(tmp_path / "browser") as opened:
        yield opened
