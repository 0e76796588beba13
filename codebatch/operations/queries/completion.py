"""What the beginning of a word may be meant for: a batch, or a file of one. Asked by a shell while somebody types."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice

from codebatch.model.plan import items_of
from codebatch.store.batches.batches import BatchDir, batch_ids, given_names, snapshot_of
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store import StoreDir

IDS_MAX = 50
"""Of batches that have no name: the newest."""


def batches_beginning(store: StoreDir, word: str) -> list[str]:
    """What batches are called that begin so: `latest`, names with `@`, then ids, the newest first."""
    ids = islice((each for each in reversed(batch_ids(store)) if each.startswith(word)), IDS_MAX)
    named = ("latest", *(f"@{name}" for name in sorted(given_names(store))))
    return [*(each for each in named if each.startswith(word)), *ids]


def files_beginning(store: StoreDir, reference: str | None, word: str) -> list[str]:
    """The files of a batch that begin so, by default of the latest; of many the directories, which end with a slash.

    As seen from the current directory where that is in the batch's tree, else as the batch has them; of what is no
    UTF-8 none. Raises what `resolve_batch` does, and StoreCorrupt.
    """
    batch = resolve_batch(store, reference, whole=True)
    here = _here_in(batch)
    found = _next_parts(_paths(store, batch, here + word), len(here)) if here else []
    return found or _next_parts(_paths(store, batch, word), 0)


def _here_in(batch: BatchDir) -> str:
    """The current directory as the paths below it begin; empty where that is not within the tree, or all of it."""
    sources = [os.fsdecode(source) for source in batch.about.sources]
    if len(sources) != 1:
        return ""
    try:
        here = os.path.relpath(os.getcwd(), sources[0])
    except FileNotFoundError:
        return ""
    return "" if here == os.curdir or here.split(os.sep)[0] == os.pardir else here + os.sep


def _paths(store: StoreDir, batch: BatchDir, beginning: str) -> list[str]:
    found = snapshot_of(store, batch).entries_beginning(os.fsencode(beginning))
    texts = (entry.path for entry in items_of(found, batch.about.paths))
    return [path.decode() for path in texts if _is_text(path)]


def _is_text(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


def _next_parts(paths: Iterable[str], start: int) -> list[str]:
    """Paths up to where they part, from `start` on: a directory that all are in is gone into."""
    cut = [path[start:] for path in paths]
    shared = os.path.commonprefix(cut)  # noqa: RUF071  # of characters, as they are typed
    directory = shared.rpartition("/")[0]
    below = len(directory) + 1 if directory else 0
    parts = (path.partition("/") if not below else path[below:].partition("/") for path in cut)
    names = dict.fromkeys(name + slash for name, slash, _ in parts)
    return [f"{directory}/{name}" if directory else name for name in names]
