"""Creation of a snapshot: list the tree, read changed files, make objects durable, publish.

The order of writes is: seal the objects (sync the pack, name it, sync the directory), publish the snapshot, write the
stat cache. So a published snapshot names only durable objects, and the stat cache names only published snapshots. A
kill at any point leaves complete snapshots, and possibly objects that no snapshot names.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from codebatch.errors import StoreCorrupt, UnknownId, UnsupportedEntry
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry, SnapshotId, display_path, encode_entry
from codebatch.snapshotting.capture import capture_entry
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.entries import (
    SkippedEntry,
    content_notes,
    entry_from_row,
    is_regular_or_link,
    skipped_entries,
)
from codebatch.snapshotting.listing import ListedTree, TreeLister, sort_by_directory
from codebatch.snapshotting.roots import SourceRoots, resolve_sources, store_below
from codebatch.snapshotting.row_edits import RowEdits
from codebatch.snapshotting.selection import SelectionRules, SourceRules
from codebatch.snapshotting.stat_cache import (
    FLAG_SUBMODULE,
    MODE_GIT,
    NO_KEY,
    FileStat,
    StatCache,
    StatRow,
    cache_path,
    is_racy,
    load_stat_cache,
    make_stamp,
    save_stat_cache,
    stat_at,
    to_columns,
)
from codebatch.snapshotting.walk import unreadable_error
from codebatch.store import layout
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.snapshots.index_frames import SnapshotIndex, make_snapshot_index, splice_index
from codebatch.store.snapshots.snapshots import (
    Snapshot,
    SnapshotDocument,
    SnapshotSource,
    index_digest,
    load_snapshot,
    publish_snapshot,
)
from codebatch.system.files.files import StoreFiles
from codebatch.system.processes.garbage_collector import collector_paused

__all__ = ["SkippedEntry", "SnapshotProgress", "SnapshotResult", "SourceRules", "selects_any_file", "take_snapshot"]

REPORT_EVERY_FILES = 500


class SnapshotProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a snapshot: the paths that are done, all paths, and the bytes read.

    A path is done if it was read or found unchanged.
    """

    paths_done: int
    paths: int
    bytes_read: int


class SnapshotResult(msgspec.Struct, frozen=True, kw_only=True):
    """A published, durable snapshot.

    `read_files` is the number of files that were opened. `notes` are texts for the user. `reused` is set if nothing has
    changed since the last snapshot, which is then returned again. `stat_cache` is the name of the stat cache with the
    lstat results of the tree, or empty if there is none.
    """

    snapshot_id: SnapshotId
    digest: Digest
    files: int
    bytes: int
    entries: int
    read_files: int
    reused: bool
    skipped: list[SkippedEntry]
    notes: list[str]
    stat_cache: str


def take_snapshot(
    files: StoreFiles,
    store_root: Path,
    roots: Sequence[Path],
    rules: SourceRules,
    *,
    now: Callable[[], float],
    report: Callable[[SnapshotProgress], None] | None = None,
    is_temporary: bool = False,
) -> SnapshotResult:
    """Take a snapshot of the files below the roots. On return the snapshot and its objects are durable.

    If the tree `is_temporary`, no stat cache is written, because no later snapshot could use it.

    `now` returns Unix seconds, used only for `created_at`. If the tree has not changed since the last snapshot, return
    that snapshot without opening a file. Raises InvalidInput, SourceUnreadable, SnapshotUnstable or StoreUnwritable. If
    an error is raised, nothing was published.
    """
    sources = resolve_sources(roots, store_root)
    with DirectoryDescriptors(sources.base) as directories:
        selection = SelectionRules(rules, directories, store_below(sources.base, store_root))
        with TreeLister(sources, directories, selection) as lister:
            for directory in sources.directories:
                lister.start_git(directory)
            creation = _SnapshotCreation(files, store_root, sources, rules, directories, is_temporary=is_temporary)
            result = None if rules.rehash else creation.try_reuse(lister, now)
            if result is not None:
                return result
            with collector_paused():
                return creation.take(lister, selection, now, report)


def selects_any_file(roots: Sequence[Path], rules: SourceRules) -> bool:
    """Return whether a snapshot of the roots would contain any file.

    This needs no store. Raises the errors of `take_snapshot`.
    """
    sources = resolve_sources(roots, None)
    with DirectoryDescriptors(sources.base) as directories:
        selection = SelectionRules(rules, directories, None)
        with TreeLister(sources, directories, selection) as lister:
            return lister.lists_a_file()


class _SnapshotCreation:
    """The creation of one snapshot."""

    def __init__(
        self,
        files: StoreFiles,
        store_root: Path,
        sources: SourceRoots,
        rules: SourceRules,
        directories: DirectoryDescriptors,
        *,
        is_temporary: bool,
    ) -> None:
        self._files = files
        self._is_temporary = is_temporary
        self._store_root = store_root
        self._sources = sources
        self._directories = directories
        self._rehash = rules.rehash
        self._objects = ObjectStore(files, store_root / layout.OBJECTS)
        patterns = [[os.fsencode(pattern) for pattern in given] for given in (rules.include, rules.exclude)]
        self._source_key = msgspec.msgpack.encode((sources.base, sources, *patterns))
        self._cache_path = cache_path(store_root, self._source_key)
        self._cache = load_stat_cache(files, self._cache_path, self._source_key)

    def try_reuse(self, lister: TreeLister, now: Callable[[], float]) -> SnapshotResult | None:
        """Return a snapshot made from the stat cache, without listing the tree in full.

        Return None if this is not possible: the list of paths or the rules have changed since the last snapshot.
        """
        cache = self._cache
        if cache is None:
            return None
        for directory, mode, _ in cache.listings:
            if mode == MODE_GIT:
                lister.start_git(directory)
        # git lists in the background while the cached paths are compared, so both together take as long as the slower
        # one.
        changed = {*cache.iter_changed(self._sources.base), *cache.iter_racy()}
        if any(is_racy(status, cache.stamp_ns) or self._stat_path(path) != status for path, status in cache.rule_files):
            return None
        if any(lister.digest(directory, mode) != digest for directory, mode, digest in cache.listings):
            return None
        packs = self._objects.pack_sizes()
        if packs is None or not set(cache.packs) <= set(packs):
            return None
        if index_digest(self._files, self._store_root, cache.snapshot_id) != cache.index_digest:
            return None
        try:
            last = load_snapshot(self._files, self._store_root, cache.snapshot_id)
        except (UnknownId, StoreCorrupt):
            return None
        if changed:
            may_be_store = any(lister.lists_a_cache_tag(directory, mode) for directory, mode, _ in cache.listings)
            return None if may_be_store else self._splice_changes(cache, last, changed, now)
        skipped = [SkippedEntry(path, reason) for path, reason in cache.skipped]
        return self._make_result(last.document, 0, skipped, list(cache.notes), reused=True)

    def _splice_changes(
        self, cache: StatCache, last: Snapshot, changed: Collection[bytes], now: Callable[[], float]
    ) -> SnapshotResult | None:
        """Read the paths in `changed` again, and return the last snapshot with these changes.

        Return None if one of the changes affects other paths. The times of all other rows are before the stamp of the
        old cache, and so before the stamp of the new cache.
        """
        stamp_ns = make_stamp(self._files, self._cache_path, self._sources.base)
        if stamp_ns < cache.stamp_ns:  # The clock was set back.
            return None
        edits = RowEdits(cache)
        changes: dict[bytes, Entry | None] = {}
        rows: list[StatRow] = []
        with PackWriter(self._objects) as writer:
            for path in sort_by_directory(changed):
                before, status = edits.get(path), self._stat_path(path)
                if before is None or not is_regular_or_link(before):
                    return None
                row = (
                    capture_entry(self._directories, path, status, writer)
                    if status.mode
                    else StatRow(status, NO_KEY, 0)
                )
                if not is_regular_or_link(row):
                    return None
                rows.append(row)
                edits.put(path, row)
                if (entry := entry_from_row(path, row)) != entry_from_row(path, before):
                    changes[path] = entry
        try:
            index = splice_index(last.read_index(), changes)
        except (StoreCorrupt, ValueError):
            return None
        document = self._publish_index(index, cache.listings, now)
        self._write_stat_cache(
            msgspec.structs.replace(
                cache,
                stamp_ns=stamp_ns,
                racy=sum(is_racy(row.stat, stamp_ns) for row in rows),
                **msgspec.structs.asdict(edits.columns()),
            ),
            document,
        )
        skipped = [SkippedEntry(path, reason) for path, reason in cache.skipped]
        read_files = sum(stat.S_ISREG(row.stat.mode) for row in rows)
        return self._make_result(document, read_files, skipped, list(cache.notes), reused=False)

    def take(
        self,
        lister: TreeLister,
        rules: SelectionRules,
        now: Callable[[], float],
        report: Callable[[SnapshotProgress], None] | None,
    ) -> SnapshotResult:
        """List the tree, read changed files, seal objects, publish the snapshot, and save the stat cache."""
        stamp_ns = make_stamp(self._files, self._cache_path, self._sources.base)
        tree = lister.list_all()
        rows, read_files = self._read_rows(tree, report)
        entries = (entry_from_row(path, rows[path]) for path in sorted(rows))
        index = make_snapshot_index(encode_entry(entry) for entry in entries if entry is not None)
        document = self._publish_index(index, tree.listings, now)
        skipped = skipped_entries(rows)
        notes = [*tree.notes, *rules.notes, *content_notes(rows, skipped)]
        self._save_stat_cache(tree, rules, rows, document, stamp_ns, skipped, notes)
        return self._make_result(document, read_files, skipped, notes, reused=False)

    def _read_rows(
        self, tree: ListedTree, report: Callable[[SnapshotProgress], None] | None
    ) -> tuple[dict[bytes, StatRow], int]:
        """Return a row for every listed path, and the number of files that were read.

        A file is read unless the cache has a valid row for it. On return the objects of all rows are durable.
        """
        known = {} if self._cache is None or self._rehash else self._cache.safe_rows()
        rows: dict[bytes, StatRow] = {}
        read_files = bytes_read = 0
        with PackWriter(self._objects) as writer:
            for done, path in enumerate(sort_by_directory(tree.stats)):
                status = tree.stats[path]
                row = known.get(path)
                if path in tree.submodules:
                    rows[path] = StatRow(status, NO_KEY, 0 if _has_entries_below(tree, path) else FLAG_SUBMODULE)
                elif not (stat.S_ISREG(status.mode) or stat.S_ISLNK(status.mode)):
                    rows[path] = StatRow(status, NO_KEY, 0)
                elif row is not None and row.stat == status and self._objects.has_key(row.key):
                    rows[path] = row
                else:
                    rows[path] = capture_entry(self._directories, path, status, writer)
                    read_files += stat.S_ISREG(status.mode)
                    bytes_read += status.size
                if report is not None and done % REPORT_EVERY_FILES == 0:
                    report(SnapshotProgress(paths_done=done, paths=len(tree.stats), bytes_read=bytes_read))
        if report is not None:
            report(SnapshotProgress(paths_done=len(tree.stats), paths=len(tree.stats), bytes_read=bytes_read))
        return rows, read_files

    def _publish_index(
        self, index: SnapshotIndex, listings: Collection[tuple[bytes, str, bytes]], now: Callable[[], float]
    ) -> SnapshotDocument:
        source = SnapshotSource(
            base=display_path(self._sources.base),
            roots=tuple(display_path(root) for root in self._sources.roots),
            listing="+".join(sorted({mode for _, mode, _ in listings})) or "named",
        )
        created_at = datetime.fromtimestamp(now(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return publish_snapshot(self._files, self._store_root, index, source=source, created_at=created_at)

    def _save_stat_cache(
        self,
        tree: ListedTree,
        rules: SelectionRules,
        rows: dict[bytes, StatRow],
        document: SnapshotDocument,
        stamp_ns: int,
        skipped: list[SkippedEntry],
        notes: list[str],
    ) -> None:
        statuses = [row.stat for row in rows.values()] + list(rules.rule_files.values())
        columns = to_columns(rows)
        cache = StatCache(
            source=self._source_key,
            stamp_ns=stamp_ns,
            racy=sum(is_racy(status, stamp_ns) for status in statuses),
            snapshot_id="",
            index_digest="",
            packs=[],
            listings=tree.listings,
            rule_files=[(path, content) for path, content in sorted(rules.rule_files.items())],
            skipped=[(item.path, item.reason) for item in skipped],
            notes=notes,
            **msgspec.structs.asdict(columns),
        )
        self._write_stat_cache(cache, document)

    def _write_stat_cache(self, cache: StatCache, document: SnapshotDocument) -> None:
        """Write the stat cache. If a pack is known to be damaged, write it so that `try_reuse` never accepts it."""
        if self._is_temporary:
            return
        packs = self._objects.pack_sizes()
        cache = msgspec.structs.replace(
            cache,
            snapshot_id=document.snapshot_id,
            index_digest=index_digest(self._files, self._store_root, document.snapshot_id) or "",
            packs=packs if packs is not None else [("", 0)],
        )
        with contextlib.suppress(UnsupportedEntry):  # Without the stat cache, the next snapshot lists the tree in full.
            save_stat_cache(self._files, self._cache_path, cache)

    def _make_result(
        self,
        document: SnapshotDocument,
        read_files: int,
        skipped: list[SkippedEntry],
        notes: list[str],
        *,
        reused: bool,
    ) -> SnapshotResult:
        return SnapshotResult(
            snapshot_id=SnapshotId(document.snapshot_id),
            digest=Digest(document.digest),
            files=document.files,
            bytes=document.bytes,
            entries=document.entries,
            read_files=read_files,
            reused=reused,
            skipped=skipped,
            notes=notes,
            stat_cache="" if self._is_temporary else self._cache_path.name,
        )

    def _stat_path(self, path: bytes) -> FileStat:
        try:
            return stat_at(self._directories, path)
        except OSError as error:
            raise unreadable_error(path, error.strerror) from error


def _has_entries_below(tree: ListedTree, submodule: bytes) -> bool:
    """Return whether the listed tree has files in a submodule that is not checked out."""
    prefix = submodule + b"/"
    return any(path.startswith(prefix) and status.mode for path, status in tree.stats.items())
