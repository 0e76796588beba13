"""Matching of records of two trees by file. If several records of a file have the same name, lines distinguish them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from codebatch.model.record import BaseRecord

R = TypeVar("R", bound=BaseRecord)

# The passes of matching. Each lists offsets from the line of a record; in that pass, the lines at all these offsets
# must match.
_LINE_OFFSETS_TRIED = ((0, 1), (1,), (0,))


class FileMap(Protocol):
    """The matching files of two trees. Arguments must be paths that exist in their tree."""

    def new_path(self, old: bytes) -> bytes | None:
        """Return the path in the new tree of a file of the old tree, or None if it was removed."""

    def old_path(self, new: bytes) -> bytes | None:
        """Return the path in the old tree of a file of the new tree, or None if it was added."""

    def matching_lines(self, side: Literal["old", "new"], path: bytes, other: bytes) -> Sequence[int] | None:
        """Return the matching lines of two files, like `lines.pair_lines`. Return None if a content is lost."""


class FilePlaces(NamedTuple, Generic[R]):
    """The records of a file in both trees.

    If only one tree has the file, the path in the other tree is None, and there are no records of the other tree.
    """

    old_path: bytes | None
    new_path: bytes | None
    old: Sequence[R]
    new: Sequence[R]
    files: FileMap

    def matching_lines(self) -> Sequence[int] | None:
        """Return the matching lines of the old and the new file, or None if they are unknown."""
        if self.old_path is None or self.new_path is None:
            return None
        return self.files.matching_lines("old", self.old_path, self.new_path)


def iter_files(
    old: Mapping[bytes, Sequence[R]], new: Mapping[bytes, Sequence[R]], files: FileMap
) -> Iterator[FilePlaces[R]]:
    """Yield the records of each file, sorted by path. If a file was moved, its new path counts."""
    file_pairs = [_pair_old_file(path, records, new, files) for path, records in old.items()]
    new_paths = {file.new_path for file in file_pairs}
    file_pairs += (
        FilePlaces(files.old_path(path), path, (), records, files)
        for path, records in new.items()
        if path not in new_paths
    )
    return iter(sorted(file_pairs, key=lambda file: (file.new_path or file.old_path or b"", file.new_path is None)))


def _pair_old_file(
    path: bytes, records: Sequence[R], new: Mapping[bytes, Sequence[R]], files: FileMap
) -> FilePlaces[R]:
    other = files.new_path(path)
    return FilePlaces(path, other, records, () if other is None else new.get(other, ()), files)


def pair_places(
    old: Sequence[int],
    new: Sequence[int],
    paired_lines: Callable[[], Sequence[int] | None],
    *,
    are_heads: bool = False,
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Match records by their lines. Return the pairs of indexes, and the unmatched indexes of each side.

    Lines are 1-based and must ascend. Records on matching lines are matched first, then all others in order.

    With `are_heads`, lines are matched in three passes: first if the line and the next line match, then if only the
    next line matches, then if only the line matches. So if two functions begin with equal lines, their bodies decide.

    `paired_lines` is called only if a side has several records. It returns None if a content is lost.
    """
    pairs: list[tuple[int, int]] = []
    unpaired_old, unpaired_new = [*range(len(old))], [*range(len(new))]
    paired = (paired_lines() or ()) if old and new and len(old) + len(new) > 2 else ()
    for offsets in _LINE_OFFSETS_TRIED if are_heads else ((0,),):
        pairs += _pair_on_lines(
            [(index, old[index]) for index in unpaired_old],
            [(new_index, new[new_index]) for new_index in unpaired_new],
            paired,
            offsets,
        )
        paired_old, paired_new = {one for one, _ in pairs}, {other for _, other in pairs}
        unpaired_old = [index for index in unpaired_old if index not in paired_old]
        unpaired_new = [index for index in unpaired_new if index not in paired_new]
    pairs += zip(unpaired_old, unpaired_new, strict=False)
    return sorted(pairs), unpaired_old[len(unpaired_new) :], unpaired_new[len(unpaired_old) :]


def _pair_on_lines(
    old: Sequence[tuple[int, int]], new: Sequence[tuple[int, int]], paired: Sequence[int], offsets: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the pairs of records for which the lines at all `offsets` from their line match.

    Records are given as (index, line).
    """
    indexes_by_line: dict[int, list[int]] = defaultdict(list)
    for index, line in reversed(new):
        indexes_by_line[line].append(index)
    pairs = []
    for index, line in old:
        lines = {
            paired[line - 1 + offset] + 1 - offset if 0 <= line - 1 + offset < len(paired) else 0 for offset in offsets
        }
        other = lines.pop() if len(lines) == 1 else 0
        if other > 0 and other in indexes_by_line and indexes_by_line[other]:
            pairs.append((index, indexes_by_line[other].pop()))
    return pairs
