"""Comparison of the files of two trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from codebatch.compare.differences import Change, TreeFile
from codebatch.compare.matching.files import FilePair
from codebatch.compare.states import ChangeState
from codebatch.model.entry import Entry, path_fields


def compare_files(
    old: Mapping[bytes, Entry], new: Mapping[bytes, Entry], moved: Iterable[FilePair]
) -> Iterator[Change]:
    """Yield a change for each of the given files, sorted by path. For a moved file, its new path counts.

    `moved` are the matching files with different paths. The state of a file that moved and whose content differs is
    `changed`.
    """
    old_paths = {pair.new: pair.old for pair in moved}
    removed = old.keys() - new.keys() - {*old_paths.values()}
    for path in sorted({*new, *removed}):
        one, other = old.get(old_paths.get(path, path)), new.get(path)
        yield Change(
            _file_state(one, other),
            None if one is None else tree_file_from_entry(one),
            None if other is None else tree_file_from_entry(other),
        )


def _file_state(old: Entry | None, new: Entry | None) -> ChangeState:
    if old is None:
        return "added"
    if new is None:
        return "removed"
    if msgspec.structs.astuple(old)[1:] != msgspec.structs.astuple(new)[1:]:
        return "changed"
    return "unchanged" if old.path == new.path else "moved"


def tree_file_from_entry(entry: Entry) -> TreeFile:
    """Return a tree entry as a record."""
    path, path_b64 = path_fields(entry.path)
    return TreeFile(path=path, path_b64=path_b64, size=entry.size, executable=entry.executable, object=entry.object)
