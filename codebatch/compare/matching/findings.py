"""Which finding of one batch is which of another: by place, by what is written there, by what it says.

Line numbers are no identity: each edit above moves them. Among findings of one tool and code, each is paired once, by
the first of these passes that pairs it:

    line      on lines that are one by `lines.pair_lines`; the nearest column first, then the same message
    text      in the same scope on lines of the same text, white space aside, in their order
    message   in the same scope with the same message, numbers aside, in their order
    once      what lint tells once of a file, or of a name in it, be it told at another place (`told.py`)
    context   anywhere in the two batches: the same text between the same two written lines, once on both sides

All but the last are of two files that are one (`files.pair_files`), that one is of all that is left. SonarQube's passes
(its documentation, "issue tracking") are the model; the map of lines and the scope are what it lacks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Literal, NamedTuple, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)

Pass = Literal["line", "text", "message", "once", "context"]

_NUMBER = re.compile(r"\d+")
# Where a line holds more pairs than that, they are taken as they come.
_PAIRS_MAX = 10_000


class MatchableFinding(NamedTuple):
    """What pairs a finding. `line` is 1-based; `text`, `before`, `behind` are lines without their white space.

    `before` and `behind` are the nearest written lines around; `scope` is the innermost symbol's qualified name.
    """

    tool: str
    code: str
    line: int
    column: int
    message: str
    scope: str
    text: bytes
    before: bytes
    behind: bytes


class OnLine(Protocol):
    """What pairs a finding by its line: a `MatchableFinding`, or the record itself."""

    @property
    def tool(self) -> str:
        """Who found it."""

    @property
    def code(self) -> str:
        """The rule."""

    @property
    def line(self) -> int:
        """From 1."""

    @property
    def column(self) -> int:
        """From 1."""

    @property
    def message(self) -> str:
        """What it says."""


class FindingPair(NamedTuple):
    """Places of two findings in what was given, and what paired them."""

    old: int
    new: int
    by: Pass


class Pairing(NamedTuple):
    """What was paired, in the order of the passes, and the places of what was not."""

    pairs: list[FindingPair]
    old: list[int]
    new: list[int]


# A way to pair: of what is left on each side, by place, those that are one.
_Way = Callable[[Mapping[int, MatchableFinding], Mapping[int, MatchableFinding]], Iterable[tuple[int, int]]]


def pair_on_lines(old: Sequence[OnLine], new: Sequence[OnLine], paired_lines: Sequence[int]) -> dict[int, int]:
    """The first pass of `pair_in_file`, which nearly all are paired by, and which needs no text: new places by old."""
    return _on_one_line(dict(enumerate(old)), dict(enumerate(new)), paired_lines)


def pair_in_file(
    old: Sequence[MatchableFinding], new: Sequence[MatchableFinding], paired_lines: Sequence[int] | None
) -> Pairing:
    """Pair the findings of two files that are one; `paired_lines` as `lines.pair_lines` says of their texts.

    None where a text is lost: then what they say is all that pairs them.
    """
    if paired_lines is None:
        return _pair(old, new, {"message": _by(_message)})

    def by_line(
        left: Mapping[int, MatchableFinding], right: Mapping[int, MatchableFinding]
    ) -> Iterable[tuple[int, int]]:
        return _on_one_line(left, right, paired_lines).items()

    return _pair(old, new, {"line": by_line, "text": _by(_text), "message": _by(_message)})


def pair_anywhere(old: Sequence[MatchableFinding], new: Sequence[MatchableFinding]) -> Pairing:
    """Pair what is left of two batches by what stands around it, where that is there once on both sides."""
    return _pair(old, new, {"context": _once})


def _pair(old: Sequence[MatchableFinding], new: Sequence[MatchableFinding], ways: Mapping[Pass, _Way]) -> Pairing:
    left, right = _in_order(old), _in_order(new)
    pairs = []
    for by, way in ways.items():
        for one, other in list(way(left, right)):
            pairs.append(FindingPair(one, other, by))
            del left[one], right[other]
    return Pairing(pairs, list(left), list(right))


def _in_order(found: Sequence[MatchableFinding]) -> dict[int, MatchableFinding]:
    """Findings by their places, in the order of their lines and columns."""
    return dict(sorted(enumerate(found), key=lambda item: (item[1].line, item[1].column)))


def _on_one_line(
    left: Mapping[int, OnLine], right: Mapping[int, OnLine], paired_lines: Sequence[int]
) -> dict[int, int]:
    found = _unmoved(left, right, paired_lines)
    taken = {*found.values()}
    theirs = _by_line({place: each for place, each in right.items() if place not in taken})
    ours = _by_line({place: each for place, each in left.items() if place not in found}) if theirs else {}
    for (tool, code, line), ones in ours.items():
        its_other = paired_lines[line - 1] if 0 < line <= len(paired_lines) else -1
        others = theirs.get((tool, code, its_other + 1), []) if its_other >= 0 else []
        if len(ones) * len(others) > _PAIRS_MAX:
            ones.sort(key=lambda place: left[place].column)
            others.sort(key=lambda place: right[place].column)
            found.update(zip(ones, others, strict=False))
        elif others:
            found.update(
                _nearest(
                    (abs(left[one].column - right[other].column), left[one].message != right[other].message, one, other)
                    for one in ones
                    for other in others
                )
            )
    return found


def _unmoved(left: Mapping[int, OnLine], right: Mapping[int, OnLine], paired_lines: Sequence[int]) -> dict[int, int]:
    """Those that say the same in the same column of lines that are one, and are the only ones there that do.

    They are the nearest that there can be, and nearly all that there are.
    """
    lines = len(paired_lines)
    theirs = _alone((each.line, each.column, each.message, each.code, each.tool) for each in right.values())
    ours = _alone(
        (paired_lines[each.line - 1] + 1, each.column, each.message, each.code, each.tool)
        if 0 < each.line <= lines
        else None
        for each in left.values()
    )
    ones, others = [*left], [*right]
    return {ones[at]: others[theirs[said]] for said, at in ours.items() if said in theirs and said and said[0] > 0}


def _alone(keys: Iterable[K]) -> dict[K, int]:
    """Where each key is that is there once."""
    every = [*keys]
    found = dict(zip(every, count()))
    if len(found) < len(every):
        for key in {key for at, key in enumerate(every) if found[key] != at}:
            del found[key]
    return found


def _by_line(found: Mapping[int, OnLine]) -> dict[tuple[str, str, int], list[int]]:
    places: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for place, each in found.items():
        places[each.tool, each.code, each.line].append(place)
    return places


def _nearest(ranked: Iterable[tuple[int, bool, int, int]]) -> Iterator[tuple[int, int]]:
    ones: set[int] = set()
    others: set[int] = set()
    for _, _, one, other in sorted(ranked):
        if one not in ones and other not in others:
            ones.add(one)
            others.add(other)
            yield one, other


def _text(found: MatchableFinding) -> Hashable:
    return found.tool, found.code, found.scope, found.text


def _message(found: MatchableFinding) -> Hashable:
    return found.tool, found.code, found.scope, _NUMBER.sub("#", found.message)


def _context(found: MatchableFinding) -> Hashable:
    return found.tool, found.code, found.text, found.before, found.behind


def _by(key: Callable[[MatchableFinding], Hashable]) -> _Way:
    def way(left: Mapping[int, MatchableFinding], right: Mapping[int, MatchableFinding]) -> Iterator[tuple[int, int]]:
        theirs = _grouped(right, key)
        for value, ones in _grouped(left, key).items():
            yield from zip(ones, theirs.get(value, ()), strict=False)

    return way


def _once(left: Mapping[int, MatchableFinding], right: Mapping[int, MatchableFinding]) -> Iterator[tuple[int, int]]:
    theirs = _grouped(right, _context)
    for value, ones in _grouped(left, _context).items():
        others = theirs.get(value, ())
        if len(ones) == len(others) == 1 and left[ones[0]].text:
            yield ones[0], others[0]


def _grouped(found: Mapping[int, MatchableFinding], key: Callable[[MatchableFinding], K]) -> dict[K, list[int]]:
    """The places of findings with one key, in their order."""
    groups: dict[K, list[int]] = defaultdict(list)
    for index, each in found.items():
        groups[key(each)].append(index)
    return groups
