"""Where things of two trees stand: what is said of each pair of files, and which of several of one name is which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from codebatch.model.record import Located

R = TypeVar("R", bound=Located)

# How far behind the line where something stands the lines are that must be one, pass by pass.
_LINES_OF_HEADS = ((0, 1), (1,), (0,))


class FileMap(Protocol):
    """Which file of the old tree is which of the new one, by paths that these trees have."""

    def new_path(self, old: bytes) -> bytes | None:
        """Where a file of the old tree is in the new one; None where it is gone."""

    def old_path(self, new: bytes) -> bytes | None:
        """Where a file of the new tree was in the old one; None where it was not."""

    def lines(self, side: Literal["old", "new"], path: bytes, its_other: bytes) -> Sequence[int] | None:
        """Which line of a file of one tree is which of one of the other, as `lines.pair_lines` has it.

        None where a text is lost.
        """


class FilePlaces(NamedTuple, Generic[R]):
    """What is said of a file of both trees, or of one of them: then the other path is None, and nothing is said."""

    old_path: bytes | None
    new_path: bytes | None
    old: Sequence[R]
    new: Sequence[R]
    files: FileMap

    def lines(self) -> Sequence[int] | None:
        """Which line of the old file is which of the new one, None where that is not known."""
        if self.old_path is None or self.new_path is None:
            return None
        return self.files.lines("old", self.old_path, self.new_path)


def iter_files(
    old: Mapping[bytes, Sequence[R]], new: Mapping[bytes, Sequence[R]], files: FileMap
) -> Iterator[FilePlaces[R]]:
    """What is said of each file by path, the new one where it has one."""
    found = [_of_old(path, said, new, files) for path, said in old.items()]
    met = {each.new_path for each in found}
    found += (FilePlaces(files.old_path(path), path, (), said, files) for path, said in new.items() if path not in met)
    return iter(sorted(found, key=lambda each: (each.new_path or each.old_path or b"", each.new_path is None)))


def _of_old(path: bytes, said: Sequence[R], new: Mapping[bytes, Sequence[R]], files: FileMap) -> FilePlaces[R]:
    its_other = files.new_path(path)
    return FilePlaces(path, its_other, said, () if its_other is None else new.get(its_other, ()), files)


def pair_places(
    old: Sequence[int],
    new: Sequence[int],
    paired_lines: Callable[[], Sequence[int] | None],
    *,
    are_heads: bool = False,
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Pair things by their lines, 1-based, which ascend: those on lines that are one, then the rest in their order.

    Of `are_heads` first come those whose next lines are one too, or these alone: of two like heads a body says whose it
    is. Given are the places of pairs, and of what is left on each side. `paired_lines`, None where a text is lost, is
    asked only where there are several on a side.
    """
    pairs: list[tuple[int, int]] = []
    left, right = [*range(len(old))], [*range(len(new))]
    paired = (paired_lines() or ()) if old and new and len(old) + len(new) > 2 else ()
    for offsets in _LINES_OF_HEADS if are_heads else ((0,),):
        pairs += _on_one_line([(place, old[place]) for place in left], [(at, new[at]) for at in right], paired, offsets)
        ours, theirs = {one for one, _ in pairs}, {other for _, other in pairs}
        left = [place for place in left if place not in ours]
        right = [place for place in right if place not in theirs]
    pairs += zip(left, right, strict=False)
    return sorted(pairs), left[len(right) :], right[len(left) :]


def _on_one_line(
    old: Sequence[tuple[int, int]], new: Sequence[tuple[int, int]], paired: Sequence[int], offsets: Sequence[int]
) -> list[tuple[int, int]]:
    """Places, each given with its line, of which the lines so far behind are one."""
    there: dict[int, list[int]] = defaultdict(list)
    for place, line in reversed(new):
        there[line].append(place)
    found = []
    for place, line in old:
        lines = {
            paired[line - 1 + offset] + 1 - offset if 0 <= line - 1 + offset < len(paired) else 0 for offset in offsets
        }
        its_other = lines.pop() if len(lines) == 1 else 0
        if its_other > 0 and its_other in there and there[its_other]:
            found.append((place, there[its_other].pop()))
    return found
