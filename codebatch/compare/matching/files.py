"""Matching of the files of two trees: by path, by content, or by common lines.

1. Files with equal paths match.
2. Files with equal content match, those with the nearest paths first.
3. Files with common lines match, if they have the same extension, or the same name without the extension. The pair with
   the most common lines comes first. At least half of the lines of the longer file must be common. Of equally good
   pairs, the first by path is taken.

If the two trees are exchanged, the pairs are the same: the tree with the lesser paths is always matched against the
other tree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, islice, product
from typing import Literal, NamedTuple

from codebatch.compare.matching.findings import choose_disjoint
from codebatch.model.nearest_directories import common_length

FileMatchKind = Literal["path", "content", "lines"]

# The maximum number of files on each side whose lines are compared. The first files by path without a match are taken.
CANDIDATES_MAX = 2_000
# A line that occurs in more files than this, such as a bracket or a licence, is not used to find candidates.
_FILES_PER_LINE_MAX = 16
# The number of candidates whose lines are compared with the lines of a file. Those with the most rare lines in common
# are taken.
_CANDIDATES_COMPARED = 8

LineFrequencies = Mapping[bytes, int]


class FilePair(NamedTuple):
    """A file of the old tree and the matching file of the new tree. `how` is the way in which they match."""

    old: bytes
    new: bytes
    how: FileMatchKind


def pair_files(
    old: Mapping[bytes, str], new: Mapping[bytes, str], lines_of: Callable[[str], LineFrequencies]
) -> tuple[list[FilePair], bool]:
    """Match the files of two trees. `old` and `new` map paths to the digests of contents.

    Return the pairs, sorted by old path. Also return whether all files without a match were compared by lines.
    `lines_of` returns the number of occurrences of each line in a content, given its digest. It is called only for
    files that have no match by path or content.
    """
    pairs = [FilePair(path, path, "path") for path in old if path in new]
    removed = {path: digest for path, digest in sorted(old.items()) if path not in new}
    added = {path: digest for path, digest in sorted(new.items()) if path not in old}
    if list(removed.items()) <= list(added.items()):
        side_pairs, is_whole = _pair_sides(removed, added, lines_of)
        pairs += side_pairs
    else:
        side_pairs, is_whole = _pair_sides(added, removed, lines_of)
        pairs += (FilePair(other, one, how) for one, other, how in side_pairs)
    return sorted(pairs), is_whole


def _pair_sides(
    removed: dict[bytes, str], added: dict[bytes, str], lines_of: Callable[[str], LineFrequencies]
) -> tuple[list[FilePair], bool]:
    pairs = []
    for one, other in list(_pair_equal_contents(removed, added)):
        del removed[one], added[other]
        pairs.append(FilePair(one, other, "content"))
    if not (removed and added):
        return pairs, True
    is_whole = max(len(removed), len(added)) <= CANDIDATES_MAX
    pairs += (
        FilePair(*pair, "lines")
        for pair in _pair_similar_contents(_first_candidates(removed), _first_candidates(added), lines_of)
    )
    return pairs, is_whole


def _first_candidates(files: Mapping[bytes, str]) -> dict[bytes, str]:
    return dict(islice(files.items(), CANDIDATES_MAX))


def _pair_equal_contents(ones: Mapping[bytes, str], contents: Mapping[bytes, str]) -> Iterator[tuple[bytes, bytes]]:
    groups: dict[str, tuple[list[bytes], list[bytes]]] = defaultdict(lambda: ([], []))
    for side, files in enumerate((ones, contents)):
        for path, digest in files.items():
            groups[digest][side].append(path)
    for removed, added in groups.values():
        yield from _nearest_first(removed, added)


def _nearest_first(removed: Sequence[bytes], added: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Match paths of files with equal content, the nearest paths first.

    If there are too many pairs to compare, match files with the same name in sorted order, then the remaining files.
    """
    if len(removed) * len(added) <= CANDIDATES_MAX:
        ranked = sorted((-_nearness(*pair), *pair) for pair in product(removed, added))
        yield from choose_disjoint((one, other) for _, one, other in ranked)
        return
    remaining: tuple[list[bytes], list[bytes]] = ([], [])
    names: dict[bytes, tuple[list[bytes], list[bytes]]] = defaultdict(lambda: ([], []))
    for side, paths in enumerate((removed, added)):
        for path in paths:
            names[path.rpartition(b"/")[2]][side].append(path)
    for old_paths, new_paths in names.values():
        yield from zip(old_paths, new_paths, strict=False)
        remaining[0].extend(old_paths[len(new_paths) :])
        remaining[1].extend(new_paths[len(old_paths) :])
    yield from zip(sorted(remaining[0]), sorted(remaining[1]), strict=False)


def _nearness(one: bytes, other: bytes) -> int:
    """Return how near two paths are: the number of equal components at their beginnings and at their ends.

    Two paths with the same file name are nearer than two paths with different file names.
    """
    left_parts, right_parts = one.split(b"/"), other.split(b"/")
    equal_prefix = common_length(left_parts[:-1], right_parts[:-1])
    equal_suffix = common_length(left_parts[::-1], right_parts[::-1])
    return equal_prefix + equal_suffix + (len(left_parts) + len(right_parts) if equal_suffix else 0)


def _pair_similar_contents(
    removed: Mapping[bytes, str], added: Mapping[bytes, str], lines_of: Callable[[str], LineFrequencies]
) -> Iterator[tuple[bytes, bytes]]:
    contents = {digest: lines_of(digest) for digest in {*removed.values(), *added.values()}}
    totals = {digest: sum(lines.values()) for digest, lines in contents.items()}
    ranked = []
    for one, other in _iter_candidates(removed, added, contents):
        common = _count_common_lines(contents[removed[one]], contents[added[other]])
        longer = max(totals[removed[one]], totals[added[other]])
        if common * 2 >= longer > 0:
            ranked.append((-common, one, other))
    return choose_disjoint((one, other) for _, one, other in sorted(ranked))


def _iter_candidates(
    removed: Mapping[bytes, str], added: Mapping[bytes, str], contents: Mapping[str, LineFrequencies]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield pairs of a removed and an added file that may match. Pairs with the most rare lines in common come first.

    The two files have the same extension, or the same name without the extension.
    """
    files_with: dict[bytes, dict[bytes, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    for path, digest in added.items():
        for part in _name_and_extension(path):
            postings = files_with[part]
            for line in contents[digest]:
                postings[line].append(path)
    for one, digest in removed.items():
        common: Counter[bytes] = Counter()
        lines = contents[digest].keys()
        of_parts = [files_with[part] for part in _name_and_extension(one) if part in files_with]
        for line in {*chain.from_iterable(lines & postings.keys() for postings in of_parts)}:
            paths_with_line = (postings[line] for postings in of_parts if line in postings)
            for other in {
                *chain.from_iterable(paths for paths in paths_with_line if len(paths) <= _FILES_PER_LINE_MAX)
            }:
                common[other] += 1
        yield from (
            (one, other)
            for other, _ in nsmallest(_CANDIDATES_COMPARED, common.items(), key=lambda item: (-item[1], item[0]))
        )


def _name_and_extension(path: bytes) -> tuple[bytes, bytes]:
    """Return a file name up to its first dot and its extension, for example `a.` and `.gz` for `a.tar.gz`."""
    name = path.rpartition(b"/")[2]
    first, *extensions = name[1:].split(b".")
    return name[:1] + first + b".", b"." + b"".join(extensions[-1:])


def _count_common_lines(left: LineFrequencies, right: LineFrequencies) -> int:
    if len(right) < len(left):
        left, right = right, left
    return sum(min(times, right[line]) for line, times in left.items() if line in right)


def line_frequencies(content: bytes) -> Counter[bytes]:
    """Return the number of occurrences of each line in a content. Blank lines are not counted."""
    return Counter(filter(None, map(bytes.strip, content.split(b"\n"))))
