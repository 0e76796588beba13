"""Equal shard files become one again: who copies a store without its hard links has each file once a name.

Only for who has the store alone (`Store.alone`). Equal is what has one digest and was compared byte by byte, and sound
is what stays; so whoever is killed at any call leaves under each name what was under it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from codebatch.errors import StoreError
from codebatch.model.digest import Digest
from codebatch.store.batches.batches import hidden_directory
from codebatch.store.batches.store import StoreDir
from codebatch.store.results.shard_files import split_shard_file
from codebatch.store.results.shard_survey import ShardName, survey
from codebatch.store.sharing import ignoring_link_refusals, try_link
from codebatch.system.files.files import Files


class Copies(msgspec.Struct, frozen=True):
    """Names of copies of the file at `path`, which is sound and to which they are given."""

    path: Path
    names: tuple[Path, ...]


def find_copies(files: Files, names: Iterable[ShardName]) -> list[Copies]:
    """The copies among the files behind some names. Of each file that has the most names stays."""
    found = []
    for digest, inodes in survey(files, names, is_full=False).sound.items():
        if len(inodes) > 1:
            ordered = sorted(inodes.values(), key=lambda same: (-len(same), same[0].path))
            copies = _copies(files, digest, [[name.path for name in same] for same in ordered])
            if copies.names:
                found.append(copies)
    return found


def _copies(files: Files, digest: Digest, ordered: list[list[Path]]) -> Copies:
    kept: Path | None = None
    content = b""
    names: list[Path] = []
    for same in ordered:
        with contextlib.suppress(StoreError, FileNotFoundError):
            data = files.read(same[0])
            if kept is None and _is_sound(data, digest):
                kept, content = same[0], data
            elif kept is not None and data == content:
                names += same
    return Copies(kept or ordered[0][0], tuple(names))


def _is_sound(data: bytes, digest: Digest) -> bool:
    try:
        split_shard_file(data, digest)
    except ValueError:
        return False
    return True


def relink(store: StoreDir, found: Collection[Copies]) -> None:
    """Give copies' names to what they are copies of. On return that is on disk. Raises StoreUnwritable.

    What somebody removes by hand meanwhile is passed over, and so are the names that a file does not get.
    """
    if not found:
        return
    files, directories = store.files, set()
    with hidden_directory(store) as hidden:
        for place, copies in enumerate(found):
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
