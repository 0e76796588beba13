"""What became of the files of two trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from codebatch.compare.differences import Change, TreeFile
from codebatch.compare.matching.files import FilePair
from codebatch.compare.states import State
from codebatch.model.entry import Entry, path_fields


def compare_files(
    old: Mapping[bytes, Entry], new: Mapping[bytes, Entry], moved: Iterable[FilePair]
) -> Iterator[Change]:
    """What became of each file, by path, the new one where it has one; of those given, which differ or are on one side.

    `moved` are those of two paths that are one. A file that moved and is not the same any more is `changed`.
    """
    its_old = {pair.new: pair.old for pair in moved}
    gone = old.keys() - new.keys() - {*its_old.values()}
    for path in sorted({*new, *gone}):
        one, other = old.get(its_old.get(path, path)), new.get(path)
        yield Change(
            _state(one, other), None if one is None else of_entry(one), None if other is None else of_entry(other)
        )


def _state(old: Entry | None, new: Entry | None) -> State:
    if old is None:
        return "added"
    if new is None:
        return "removed"
    if msgspec.structs.astuple(old)[1:] != msgspec.structs.astuple(new)[1:]:
        return "changed"
    return "unchanged" if old.path == new.path else "moved"


def of_entry(entry: Entry) -> TreeFile:
    """A file as a row tells it."""
    path, path_b64 = path_fields(entry.path)
    return TreeFile(path=path, path_b64=path_b64, size=entry.size, executable=entry.executable, object=entry.object)
