"""Shell completion of batch references and of files of a batch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice

from codebatch.model.entry import is_utf8
from codebatch.model.plan import plan_items
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, load_batch_snapshot, read_batch_names
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir

COMPLETED_IDS_MAX = 50
"""Maximum number of batch IDs to suggest. The newest batches are suggested."""


def batches_beginning(store: StoreDir, word: str) -> list[str]:
    """Return the batch references that begin with a word: `latest`, `@NAME`s, then IDs, newest first."""
    ids = islice(
        (reference for reference in reversed(batch_ids(store)) if reference.startswith(word)), COMPLETED_IDS_MAX
    )
    references = ("latest", *(f"@{name}" for name in sorted(read_batch_names(store))))
    return [*(reference for reference in references if reference.startswith(word)), *ids]


def files_beginning(store: StoreDir, reference: str | None, word: str) -> list[str]:
    """Return the files and directories of a batch that begin with a word. Directories end with a slash.

    `reference` names the batch, by default the latest one. Paths are relative to the current directory if it is in the
    batch's tree, otherwise to the project. Paths that are not UTF-8 are omitted. Raises the errors of `resolve_batch`,
    and StoreCorrupt.
    """
    batch = resolve_batch(store, reference, is_unrestricted=True)
    current_directory = _user_directory_in(store, batch)
    candidates = (
        _next_parts(_completed_paths(store, batch, current_directory + word), len(current_directory))
        if current_directory
        else []
    )
    return candidates or _next_parts(_completed_paths(store, batch, word), 0)


def _user_directory_in(store: StoreDir, batch: BatchDir) -> str:
    """Return the user's directory as a prefix of paths in the batch, such as `src/`.

    Return an empty string if it is the top of the tree or outside.
    """
    sources = [os.fsdecode(source) for source in batch.about.sources]
    if len(sources) != 1:
        return ""
    try:
        directory = os.path.relpath(store.user_directory, sources[0])
    except FileNotFoundError:
        return ""
    return "" if directory == os.curdir or directory.split(os.sep)[0] == os.pardir else directory + os.sep


def _completed_paths(store: StoreDir, batch: BatchDir, beginning: str) -> list[str]:
    snapshot = load_batch_snapshot(store, batch).entries_beginning(os.fsencode(beginning))
    texts = (entry.path for entry in plan_items(snapshot, batch.about.paths))
    return [path.decode() for path in texts if is_utf8(path)]


def _next_parts(paths: Iterable[str], start: int) -> list[str]:
    """Return the distinct completions of paths, up to the next slash after the directory that all paths share.

    The first `start` characters of each path are cut off. Example: `a/b/c` and `a/d` give `a/b/` and `a/d`.
    """
    cut = [path[start:] for path in paths]
    shared = os.path.commonprefix(cut)  # noqa: RUF071  # a prefix of characters, as typed
    directory = shared.rpartition("/")[0]
    below = len(directory) + 1 if directory else 0
    parts = (path.partition("/") if not below else path[below:].partition("/") for path in cut)
    names = dict.fromkeys(name + slash for name, slash, _ in parts)
    return [f"{directory}/{name}" if directory else name for name in names]
