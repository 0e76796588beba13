"""Which file of one tree is which of another: by path, by content, by their lines.

Files of the same path are one. Of what is only on one side, equal contents are one file that moved, the nearest paths
first; then, among files of one extension, or of one name but for it, the two that have the most lines in common, if
these are at least half of the longer one's. Of two pairs that are as good the one whose paths come first. Asked the
other way round the pairs are the same: of what is only on one side, that of the lesser paths is always paired with that
of the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, islice, product
from typing import Literal, NamedTuple

How = Literal["path", "content", "lines"]

# Of what is left on each side at most so many files are compared by their lines, the first ones by path.
CANDIDATES_MAX = 2_000
# A line that stands in more files than that, a bracket or a licence, says nothing of which is which.
_FILES_OF_A_LINE = 16
# So many files that have the most telling lines in common with one are compared with it as a whole.
_COMPARED = 8

Lines = Mapping[bytes, int]


class FilePair(NamedTuple):
    """A file of both trees, by its path in each."""

    old: bytes
    new: bytes
    how: How


def pair_files(
    old: Mapping[bytes, str], new: Mapping[bytes, str], lines_of: Callable[[str], Lines]
) -> tuple[list[FilePair], bool]:
    """Pair two trees, given as path -> digest of the content; sorted by the old path, and whether all were compared.

    `lines_of` a digest: how often each line is in it. It is asked only of files without a pair of the same content.
    """
    pairs = [FilePair(path, path, "path") for path in old if path in new]
    removed = {path: digest for path, digest in sorted(old.items()) if path not in new}
    added = {path: digest for path, digest in sorted(new.items()) if path not in old}
    if list(removed.items()) <= list(added.items()):
        found, is_whole = _pair_sides(removed, added, lines_of)
        pairs += found
    else:
        found, is_whole = _pair_sides(added, removed, lines_of)
        pairs += (FilePair(other, one, how) for one, other, how in found)
    return sorted(pairs), is_whole


def _pair_sides(
    gone: dict[bytes, str], come: dict[bytes, str], lines_of: Callable[[str], Lines]
) -> tuple[list[FilePair], bool]:
    pairs = []
    for one, other in list(_of_equal_content(gone, come)):
        del gone[one], come[other]
        pairs.append(FilePair(one, other, "content"))
    if not (gone and come):
        return pairs, True
    is_whole = max(len(gone), len(come)) <= CANDIDATES_MAX
    pairs += (FilePair(*pair, "lines") for pair in _of_like_lines(_first(gone), _first(come), lines_of))
    return pairs, is_whole


def _first(files: Mapping[bytes, str]) -> dict[bytes, str]:
    return dict(islice(files.items(), CANDIDATES_MAX))


def _of_equal_content(ones: Mapping[bytes, str], others: Mapping[bytes, str]) -> Iterator[tuple[bytes, bytes]]:
    groups: dict[str, tuple[list[bytes], list[bytes]]] = defaultdict(lambda: ([], []))
    for side, files in enumerate((ones, others)):
        for path, digest in files.items():
            groups[digest][side].append(path)
    for gone, come in groups.values():
        yield from _nearest_first(gone, come)


def _nearest_first(gone: Sequence[bytes], come: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Pair the paths of one content: where there are many, those of one name and then the rest, as they are sorted."""
    if len(gone) * len(come) <= CANDIDATES_MAX:
        yield from _best((-_nearness(*pair), *pair) for pair in product(gone, come))
        return
    left: tuple[list[bytes], list[bytes]] = ([], [])
    names: dict[bytes, tuple[list[bytes], list[bytes]]] = defaultdict(lambda: ([], []))
    for side, paths in enumerate((gone, come)):
        for path in paths:
            names[path.rpartition(b"/")[2]][side].append(path)
    for ours, theirs in names.values():
        yield from zip(ours, theirs, strict=False)
        left[0].extend(ours[len(theirs) :])
        left[1].extend(theirs[len(ours) :])
    yield from zip(sorted(left[0]), sorted(left[1]), strict=False)


def _nearness(one: bytes, other: bytes) -> int:
    """How many of the names in two paths are the same, from the front and from the end; the last one counts most."""
    ours, theirs = one.split(b"/"), other.split(b"/")
    ahead = _same(ours[:-1], theirs[:-1])
    behind = _same(ours[::-1], theirs[::-1])
    return ahead + behind + (len(ours) + len(theirs) if behind else 0)


def _same(ours: Sequence[bytes], theirs: Sequence[bytes]) -> int:
    return next(
        (index for index, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other),
        min(len(ours), len(theirs)),
    )


def _of_like_lines(
    gone: Mapping[bytes, str], come: Mapping[bytes, str], lines_of: Callable[[str], Lines]
) -> Iterator[tuple[bytes, bytes]]:
    contents = {digest: lines_of(digest) for digest in {*gone.values(), *come.values()}}
    totals = {digest: sum(lines.values()) for digest, lines in contents.items()}
    ranked = []
    for one, other in _candidates(gone, come, contents):
        common = _common(contents[gone[one]], contents[come[other]])
        longer = max(totals[gone[one]], totals[come[other]])
        if common * 2 >= longer > 0:
            ranked.append((-common, one, other))
    return _best(ranked)


def _candidates(
    gone: Mapping[bytes, str], come: Mapping[bytes, str], contents: Mapping[str, Lines]
) -> Iterator[tuple[bytes, bytes]]:
    """Pairs of one extension, or of one name but for it, that have the most telling lines in common."""
    files_with: dict[bytes, dict[bytes, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    for path, digest in come.items():
        for part in _name_and_extension(path):
            postings = files_with[part]
            for line in contents[digest]:
                postings[line].append(path)
    for one, digest in gone.items():
        met: Counter[bytes] = Counter()
        lines = contents[digest].keys()
        of_parts = [files_with[part] for part in _name_and_extension(one) if part in files_with]
        for line in {*chain.from_iterable(lines & postings.keys() for postings in of_parts)}:
            found = (postings[line] for postings in of_parts if line in postings)
            for other in {*chain.from_iterable(each for each in found if len(each) <= _FILES_OF_A_LINE)}:
                met[other] += 1
        yield from (
            (one, other) for other, _ in nsmallest(_COMPARED, met.items(), key=lambda item: (-item[1], item[0]))
        )


def _name_and_extension(path: bytes) -> tuple[bytes, bytes]:
    """`name.`, up to its first dot, and `.extension` of a path."""
    name = path.rpartition(b"/")[2]
    first, *rest = name[1:].split(b".")
    return name[:1] + first + b".", b"." + b"".join(rest[-1:])


def _common(ours: Lines, theirs: Lines) -> int:
    if len(theirs) < len(ours):
        ours, theirs = theirs, ours
    return sum(min(times, theirs[line]) for line, times in ours.items() if line in theirs)


def _best(ranked: Iterable[tuple[int, bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Each path once, the least rank first; of equal ranks the one whose paths come first."""
    ones: set[bytes] = set()
    others: set[bytes] = set()
    for _, one, other in sorted(ranked):
        if one not in ones and other not in others:
            ones.add(one)
            others.add(other)
            yield one, other


def counted_lines(content: bytes) -> Counter[bytes]:
    """How often each line is in a content; empty ones are not counted."""
    return Counter(filter(None, map(bytes.strip, content.split(b"\n"))))
