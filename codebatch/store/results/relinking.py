"""Restoring of hard links between equal shard files.

A program that copies a store may write each link as a separate file.

The caller holds the exclusive lock of the store (`StoreDir.exclusive_lock`). A file is replaced only by a link to an
undamaged file with the same digest and the same bytes. So a kill at any point leaves the same content under each name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from codebatch.errors import StoreError
from codebatch.model.digest import Digest
from codebatch.store.batches.batch_directory import hidden_directory
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.shard_files import split_shard_file
from codebatch.store.results.shard_survey import ShardName, survey_shard_files
from codebatch.store.sharing import ignoring_link_refusals, try_link
from codebatch.system.files.files import StoreFiles


class FileCopies(msgspec.Struct, frozen=True):
    """An undamaged file at `path`, and the names of copies of it. Each copy is to be replaced by a link to `path`."""

    path: Path
    names: tuple[Path, ...]


def find_copies(files: StoreFiles, names: Iterable[ShardName]) -> list[FileCopies]:
    """Return groups of equal shard files among `names`.

    In each group, the file with the most links stays; the others are copies.
    """
    found_copies = []
    for digest, inodes in survey_shard_files(files, names, is_full=False).sound.items():
        if len(inodes) > 1:
            ordered = sorted(inodes.values(), key=lambda group: (-len(group), group[0].path))
            copies = _group_copies(files, digest, [[name.path for name in group] for group in ordered])
            if copies.names:
                found_copies.append(copies)
    return found_copies


def _group_copies(files: StoreFiles, digest: Digest, ordered: list[list[Path]]) -> FileCopies:
    original: Path | None = None
    content = b""
    names: list[Path] = []
    for paths in ordered:
        with contextlib.suppress(StoreError, FileNotFoundError):
            data = files.read(paths[0])
            if original is None and _is_undamaged(data, digest):
                original, content = paths[0], data
            elif original is not None and data == content:
                names += paths
    return FileCopies(original or ordered[0][0], tuple(names))


def _is_undamaged(data: bytes, digest: Digest) -> bool:
    try:
        split_shard_file(data, digest)
    except ValueError:
        return False
    return True


def replace_by_links(store: StoreDir, duplicates: Collection[FileCopies]) -> None:
    """Replace each copy by a hard link to the file that stays. On return the links are on disk. Raises StoreUnwritable.

    Files that another program removes in between are skipped. If a copy cannot be replaced because of its own
    permissions, the copy stays.
    """
    if not duplicates:
        return
    files, directories = store.files, set()
    with hidden_directory(store) as hidden:
        for place, copies in enumerate(duplicates):
            for number, path in enumerate(copies.names):
                link = hidden / f"{place}.{number}"
                with contextlib.suppress(FileNotFoundError):
                    if try_link(files, copies.path, link) is None:
                        break
                    with ignoring_link_refusals():
                        files.replace(link, path)
                        directories.add(path.parent)
        for directory in sorted(directories):
            files.sync_directory(directory)
