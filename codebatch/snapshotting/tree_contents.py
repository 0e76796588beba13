"""The files of a tree in which a command works, before and after the command (SPEC.md "Trees").

All files are selected that ignore files do not exclude. A file that existed before is looked at again afterwards, even
if ignore files exclude it then.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from itertools import chain

import msgspec

from codebatch.model.change import UnrecordedPath
from codebatch.model.entry import Entry
from codebatch.model.gitignore import PatternList
from codebatch.snapshotting.capture import capture_entry
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.entries import entry_from_row
from codebatch.snapshotting.listing import TreeLister, sort_by_directory
from codebatch.snapshotting.roots import SourceRoots
from codebatch.snapshotting.selection import WholeTreeRules
from codebatch.snapshotting.stat_cache import NO_KEY, FileStat, StatRow, is_racy, stat_at
from codebatch.snapshotting.unrecorded import find_unrecorded
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PackWriter


class TreeContents(msgspec.Struct, frozen=True):
    """The files and links of a tree at one time.

    `rows` has the lstat(2) result and the key of the content of each, by path. `stamp_ns` is as in `StatCache`.
    `submodules` has the commits of the submodules whose directories exist, by path.
    """

    rows: dict[bytes, StatRow]
    stamp_ns: int
    submodules: dict[bytes, str] = {}

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of all files and links, sorted by path."""
        for path in sorted(self.rows):
            entry = entry_from_row(path, self.rows[path])
            if entry is not None:
                yield entry


class TreeReading(msgspec.Struct, frozen=True):
    """The contents of a tree and, if there are earlier contents, the paths that they do not have."""

    contents: TreeContents
    unrecorded: list[UnrecordedPath]


def read_tree(
    root: bytes,
    objects: ObjectStore,
    writer: PackWriter,
    *,
    stamp_ns: int,
    before: TreeContents | None = None,
    known: Mapping[bytes, Entry] | None = None,
    unlisted: Collection[bytes] = (),
    links: Collection[bytes] = (),
    submodules: Mapping[bytes, str] | None = None,
    uses_git: bool,
    ignored_above: tuple[PatternList, ...] = (),
) -> TreeReading:
    """Read a tree, and add the contents of its files to a writer, whose packs the caller seals.

    Files that have not changed since `before` are not read again. Neither are files that `known` has with the same
    size: the caller has just written them. The paths in `unlisted`, like those of `before` and `known`,
    are looked at even if ignore files exclude them. `links` are paths of links to directories of the user: they are
    left out, unless something else has replaced the link. `submodules` are the commits of submodules by path, by
    default those of `before`. If `uses_git` is false, the tree is listed without git, and `ignored_above` are further
    ignore files that apply, as if they were above the root.

    Raises SourceUnreadable, SnapshotUnstable, StoreUnwritable or OSError.
    """
    links = [path for path in links if os.path.islink(os.path.join(root, path))]
    if submodules is None:
        submodules = {} if before is None else before.submodules
    submodules = {
        path: commit for path, commit in submodules.items() if before is not None or _is_directory(root, path)
    }
    sources = SourceRoots(root, (b"",), ())
    with DirectoryDescriptors(root) as directories:
        rules = WholeTreeRules()
        with TreeLister(sources, directories, rules, uses_git=uses_git, ignored_above=ignored_above) as lister:
            tree = lister.list_all()
        repositories = tuple(directory + b"/" for directory, _, _ in tree.listings if directory)
        stats = {
            path: status
            for path, status in tree.stats.items()
            if path not in links and not (repositories and path.startswith(repositories))
        }
        for path in chain(() if before is None else before.rows, known or (), unlisted):
            if path not in stats and path not in links:
                stats[path] = stat_at(directories, path)
        reader = _RowReader(directories, objects, writer, before, known or {})
        rows = {path: reader.row(path, stats[path]) for path in sort_by_directory(stats)}
        rows = {path: row for path, row in rows.items() if row.key != NO_KEY}
        unrecorded = []
        if before is not None:
            unrecorded = find_unrecorded(root, directories, tree, rows, submodules, links)
    return TreeReading(TreeContents(rows, stamp_ns, dict(submodules)), unrecorded)


def _is_directory(root: bytes, path: bytes) -> bool:
    place = os.path.join(root, path)
    return os.path.isdir(place) and not os.path.islink(place)


class _RowReader:
    def __init__(
        self,
        directories: DirectoryDescriptors,
        objects: ObjectStore,
        writer: PackWriter,
        before: TreeContents | None,
        known: Mapping[bytes, Entry],
    ) -> None:
        self._directories = directories
        self._objects = objects
        self._writer = writer
        self._before = before
        self._known = known

    def row(self, path: bytes, status: FileStat) -> StatRow:
        """Return the row of a path. Its key is NO_KEY unless the path is a file or a link."""
        if not (stat.S_ISREG(status.mode) or stat.S_ISLNK(status.mode)):
            return StatRow(status, NO_KEY, 0)
        if self._before is not None:
            row = self._before.rows.get(path)
            if row is not None and row.stat == status and not is_racy(status, self._before.stamp_ns):
                return row
        entry = self._known.get(path)
        if entry is not None and entry.size == status.size and (entry.kind == "symlink") == stat.S_ISLNK(status.mode):
            key = bytes.fromhex(entry.object)
            if self._objects.has_key(key):
                return StatRow(status, key, 0)
        return capture_entry(self._directories, path, status, self._writer)


def store_missing_contents(root: bytes, contents: TreeContents, objects: ObjectStore, writer: PackWriter) -> None:
    """Add those contents of a tree to a writer that the store does not have any more, if the files are unchanged.

    Nothing names the content of an unchanged file, so garbage collection removes it while an attempt waits for an
    answer. Raises the errors of `read_tree`.
    """
    with DirectoryDescriptors(root) as directories:
        for path in sort_by_directory(contents.rows):
            row = contents.rows[path]
            if not objects.has_key(row.key) and stat_at(directories, path) == row.stat:
                capture_entry(directories, path, row.stat, writer)


def encode_contents(contents: TreeContents) -> bytes:
    """Return the bytes of the contents of a tree, for `decode_contents`."""
    return _encoder.encode(contents)


def decode_contents(data: bytes) -> TreeContents:
    """Return the contents of a tree from their bytes. Raises ValueError."""
    return _decoder.decode(data)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(TreeContents)
