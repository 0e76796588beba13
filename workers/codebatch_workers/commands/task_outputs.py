"""Outputs of tasks: collected into the store after success, and written to a directory for the tasks that use them.

Outputs are stored as a change set that only adds files. All its objects are durable before the outcome that names it is
committed. So a kill at any point leaves complete outputs, or an attempt without an outcome.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codebatch.errors import CodebatchError
from codebatch.model.change import ListedChange, TreeChange, encode_change_set
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import human_bytes
from codebatch.model.work.command import Command
from codebatch.snapshotting.capture import capture_entry
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.entries import entry_from_row
from codebatch.snapshotting.matching_files import find_matching_files, first_unreadable
from codebatch.snapshotting.stat_cache import FileStat, is_special
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.work.change_sets import read_change_set
from codebatch.system.files.writable_tree import TreeFileContent, WritableTree
from codebatch.system.processes.command_processes import ProcessNotStarted

OUTPUT_FILES_MAX = 100_000
OUTPUT_BYTES_MAX = 1_000_000_000


class OutputsNotCollected(Exception):
    """The error that files which the outputs of a task match cannot be collected. The message says why."""


class CollectedOutputs(NamedTuple):
    """The digest of collected outputs, and their paths."""

    digest: Digest
    paths: list[bytes]


def collect_outputs(root: Path, patterns: Sequence[str], objects: ObjectStore) -> CollectedOutputs:
    """Store the files below `root` that the patterns select. On return they are durable.

    Raises OutputsNotCollected, OSError, or the errors of `capture_entry`.
    """
    with DirectoryDescriptors(bytes(root)) as directories, PackWriter(objects) as writer:
        found = find_matching_files(directories, patterns)
        _check_outputs(found)
        changes: list[ListedChange] = []
        for path, status in found.items():
            entry = entry_from_row(path, capture_entry(directories, path, status, writer))
            if entry is None:
                raise OutputsNotCollected(f"{display_path(path)} disappeared while it was stored")
            change = TreeChange(
                path=path,
                kind="link" if entry.kind == "symlink" else "file",
                before=None,
                after=entry.object,
                executable=entry.executable,
            )
            changes.append(ListedChange(change=change, added=0, removed=0))
        links = [listed.change for listed in changes if listed.change.kind == "link"]
        places = {place for path in found for place in _path_and_parents(path)} if links else set()
        for link in links:
            _check_link(link, directories, places)
        return CollectedOutputs(writer.add(encode_change_set(changes)), [*found])


def _check_outputs(found: Mapping[bytes, FileStat]) -> None:
    if len(found) > OUTPUT_FILES_MAX:
        raise OutputsNotCollected(f"they have {len(found):,} files, more than {OUTPUT_FILES_MAX:,}")
    total = sum(status.size for status in found.values())
    if total > OUTPUT_BYTES_MAX:
        largest = max(found, key=lambda path: found[path].size)
        raise OutputsNotCollected(
            f"they have {human_bytes(total)}, more than {human_bytes(OUTPUT_BYTES_MAX)}; "
            f"the largest file is {display_path(largest)}"
        )
    for path, status in found.items():
        if is_special(status.mode):
            raise OutputsNotCollected(f"{display_path(path)} is a FIFO, a socket or a device")


def _path_and_parents(path: bytes) -> Iterator[bytes]:
    while path:
        yield path
        path = path.rpartition(b"/")[0]
    yield b""


def _check_link(link: TreeChange, directories: DirectoryDescriptors, places: Collection[bytes]) -> None:
    """Raise OutputsNotCollected unless a link leads to other outputs.

    Its target may begin with `..`, but have none after another name: that could be a link itself.
    """
    above, _, name = link.path.rpartition(b"/")
    target = os.readlink(name, dir_fd=directories.open_directory(above))
    parts = above.split(b"/") if above else []
    is_descending = False
    is_inside = digest_bytes(target) == link.after and not target.startswith(b"/")
    for part in target.split(b"/"):
        if part == b"..":
            is_inside = is_inside and bool(parts) and not is_descending
            del parts[-1:]
        elif part not in (b"", b"."):
            is_descending = True
            parts.append(part)
    if not is_inside or b"/".join(parts) not in places:
        raise OutputsNotCollected(
            f"{display_path(link.path)} is a link that does not lead to other outputs of the task"
        )


def write_outputs(objects: ObjectStore, digest: Digest, directory: Path) -> None:
    """Write outputs below a new directory. Raises OSError or StoreError."""
    with WritableTree(bytes(directory)) as tree:
        _write_changes(tree, objects, _listed_changes(objects, digest))


def restore_outputs(objects: ObjectStore, digest: Digest, directory: Path) -> str:
    """Write outputs that are missing below a directory. If one has other content, write none and return its path.

    Raises OSError or StoreError.
    """
    missing: list[TreeChange] = []
    with WritableTree(bytes(directory)) as tree:
        for change in _listed_changes(objects, digest):
            present = tree.read(change.path)
            if present is None:
                missing.append(change)
            elif present != _file_content(objects, change):
                return display_path(change.path)
        _write_changes(tree, objects, missing)
    return ""


def _listed_changes(objects: ObjectStore, digest: Digest) -> list[TreeChange]:
    return [listed.change for listed in read_change_set(objects, digest).changes]


def _write_changes(tree: WritableTree, objects: ObjectStore, changes: Sequence[TreeChange]) -> None:
    """Write files, then links."""
    for change in sorted(changes, key=lambda change: change.kind == "link"):
        tree.write(change.path, _file_content(objects, change))


def _file_content(objects: ObjectStore, change: TreeChange) -> TreeFileContent:
    assert change.after is not None, "outputs only add files"
    return TreeFileContent(objects.read(change.after), change.kind == "link", change.executable)


def write_needed_outputs(
    command: Command, outputs: Mapping[str, Digest], directory: Path, objects: ObjectStore
) -> dict[str, str]:
    """Write the outputs that a command uses below a directory. Return the value of each placeholder for them.

    The outputs of each task are in the directory with its ID. Raises ProcessNotStarted.
    """
    values: dict[str, str] = {}
    written: set[str] = set()
    for name, ids in (command.outputs_of or {}).items():
        if not name:
            continue
        is_group = "/" not in name and all("/" in id_ for id_ in ids)
        place = directory / (name if not ids else ids[0].partition("/")[0] if is_group else ids[0])
        values[f"tasks.{name}.outputs"] = str(place)
        try:
            place.mkdir(parents=True, exist_ok=True)
            for id_ in ids:
                if id_ not in outputs:
                    raise ProcessNotStarted(
                        f"the task {id_} has left no outputs; run it again with: codebatch work retry {id_}"
                    )
                if id_ not in written:
                    written.add(id_)
                    (directory / id_).mkdir(parents=True, exist_ok=True)
                    write_outputs(objects, outputs[id_], directory / id_)
        except OSError as error:
            raise ProcessNotStarted(f"outputs of tasks cannot be written: {first_unreadable(error)}") from error
        except CodebatchError as error:
            raise ProcessNotStarted(f"outputs of tasks cannot be read: {error.message}") from error
    return values
