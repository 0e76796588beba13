"""Samples of changes for a review: spread over directories and over shapes of edits.

The shape of a change is what it replaces by what, each piece of text once. So if 1,000 files replace the same name,
and one file replaces something else, a sample has this file. Equal changes give equal samples.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from codebatch.model.change import ProposedChange, TreeChange
from codebatch.model.digest import Digest
from codebatch.operations.changes.patch import iter_text_edits

_WORD = re.compile(rb"\w+|\s+|[^\w\s]")
_SPACE = re.compile(rb"\s+")


def sample_changes(
    proposed: Sequence[ProposedChange], count: int, shape_of: Callable[[TreeChange], Hashable]
) -> list[ProposedChange]:
    """Return at most `count` changes, in their order. Each next one has the rarest shape, then directory, so far."""
    shapes: Counter[Hashable] = Counter()
    directories: Counter[bytes] = Counter()
    features = [(shape_of(each.change), each.change.path.rpartition(b"/")[0]) for each in proposed]

    def rank(at: int) -> tuple[int, int, int]:
        shape, directory = features[at]
        return shapes[shape], directories[directory], at

    heap = [rank(at) for at in range(len(proposed))]
    chosen: list[int] = []
    while heap and len(chosen) < count:
        known = heapq.heappop(heap)
        current = rank(known[2])
        if current != known:  # Ranks only grow, so the first that is current is the lowest.
            heapq.heappush(heap, current)
            continue
        chosen.append(known[2])
        shape, directory = features[known[2]]
        shapes[shape] += 1
        directories[directory] += 1
    return [proposed[at] for at in sorted(chosen)]


def edit_shape(change: TreeChange, read: Callable[[Digest], bytes]) -> Hashable:
    """Return the shape of a change. `read` returns a content.

    A created, a deleted and a binary file, a link, and a change of the executable bit have shapes of their own.
    """
    kind = (change.kind, change.before is None, change.after is None, change.was_executable != change.executable)
    if change.before is None or change.after is None or change.kind == "link":
        return kind
    old, new = read(change.before), read(change.after)
    if b"\0" in old or b"\0" in new:
        return (*kind, "binary")
    replaced = {pair for removed, added in iter_text_edits(old, new) for pair in _iter_replaced(removed, added)}
    return (*kind, frozenset(replaced))


def _iter_replaced(removed: bytes, added: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the texts that an edit replaces, each with its replacement."""
    old_lines, new_lines = removed.splitlines(), added.splitlines()
    if len(old_lines) == len(new_lines):
        for old, new in zip(old_lines, new_lines, strict=True):
            yield from _iter_replaced_words(_WORD.findall(old), _WORD.findall(new))
    else:
        yield from _iter_replaced_words(_WORD.findall(removed), _WORD.findall(added))


def _iter_replaced_words(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    if len(old) == len(new):
        yield from ((before, after) for before, after in zip(old, new, strict=True) if before != after)
        return
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    yield _joined(old[start : len(old) - end]), _joined(new[start : len(new) - end])


def _joined(words: Sequence[bytes]) -> bytes:
    return _SPACE.sub(b" ", b"".join(words))
