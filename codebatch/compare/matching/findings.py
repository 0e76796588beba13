"""Matching of the findings of two batches: by location, text or message.

Line numbers do not identify a finding, because edits above it change them. Two findings can match only if tool and rule
ID are equal. They are matched in these passes, each finding at most once:

    line      on lines that match by `lines.pair_lines`; nearest column first, then equal message
    text      on lines with equal text, ignoring white space: in the same scope, in order; then where a diff that
              ignores white space matches the lines (an indented block); then if the text is unique in the file
    message   in the same scope with equal message, ignoring numbers, in order
    once      findings that lint reports once per file or name, also at another line (`finding_pairs.py`)
    context   anywhere in the two batches: equal text and equal adjacent non-blank lines, if unique on both sides. At
              the edge of a moved block, these are two lines on one side, or one line and the name of the scope

The pass `context` matches findings of all files. The other passes match findings of matching files
(`files.pair_files`). The model is SonarQube ("issue tracking" in its documentation), extended by line matching and
scopes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Literal, NamedTuple, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)

MatchingPass = Literal["line", "text", "message", "once", "context"]

ADJACENT_LINES = 2
"""The maximum number of adjacent non-blank lines on each side that are compared."""
_NUMBER = re.compile(r"\d+")
# If more pairs of findings than this are possible on a line, its findings are matched in column order.
_PAIRS_MAX = 10_000


class MatchableFinding(NamedTuple):
    """The data by which a finding is matched.

    `line` is 1-based. `text` is the line of the finding. `before` and `behind` are the nearest non-blank lines, at most
    ADJACENT_LINES each, the nearest first. All texts are without white space. `scope` is the qualified name of the
    innermost symbol that encloses the line.
    """

    tool: str
    code: str
    line: int
    column: int
    message: str
    scope: str
    text: bytes
    before: tuple[bytes, ...]
    behind: tuple[bytes, ...]


class LocatedFinding(Protocol):
    """The data of a finding by which it is matched on a line. Both MatchableFinding and records have these members."""

    @property
    def tool(self) -> str:
        """The name of the tool."""

    @property
    def code(self) -> str:
        """The rule ID."""

    @property
    def line(self) -> int:
        """The line, from 1."""

    @property
    def column(self) -> int:
        """The column, from 1."""

    @property
    def message(self) -> str:
        """The message of the finding, as used for matching."""


class FindingPair(NamedTuple):
    """Two matching findings as indexes into the arguments, and the pass that matched them."""

    old: int
    new: int
    by: MatchingPass


class Pairing(NamedTuple):
    """The matching pairs, in order of the passes, and the indexes of the old and the new findings without a match."""

    pairs: list[FindingPair]
    old: list[int]
    new: list[int]


# A pass of matching. Its arguments are the unmatched findings of both sides by index. It returns pairs of indexes.
_Matcher = Callable[[Mapping[int, MatchableFinding], Mapping[int, MatchableFinding]], Iterable[tuple[int, int]]]


def pair_on_lines(
    old: Sequence[LocatedFinding], new: Sequence[LocatedFinding], paired_lines: Sequence[int]
) -> dict[int, int]:
    """Match findings on matching lines, the first pass of `pair_in_file`. Map old indexes to new indexes.

    This pass needs no texts, and it matches most findings.
    """
    return _match_on_lines(dict(enumerate(old)), dict(enumerate(new)), paired_lines)


def pair_in_file(
    old: Sequence[MatchableFinding],
    new: Sequence[MatchableFinding],
    paired_lines: Sequence[int] | None,
    pair_ignoring_space: Callable[[], Sequence[int]] = tuple,
) -> Pairing:
    """Match the findings of two matching files. `paired_lines` is the result of `lines.pair_lines` for the files.

    `pair_ignoring_space` returns the same for the files without white space. It is called only if findings with equal
    text are left. If the content of a file is lost, `paired_lines` is None, and only messages are matched.
    """
    if paired_lines is None:
        return _run_passes(old, new, [("message", _make_key_matcher(_message_key))])

    def by_line(
        left: Mapping[int, MatchableFinding], right: Mapping[int, MatchableFinding]
    ) -> Iterable[tuple[int, int]]:
        return _match_on_lines(left, right, paired_lines).items()

    def by_indented_line(
        left: Mapping[int, MatchableFinding], right: Mapping[int, MatchableFinding]
    ) -> Iterable[tuple[int, int]]:
        common = {*map(_unscoped_key, left.values())} & {*map(_unscoped_key, right.values())}
        return _match_on_lines(left, right, pair_ignoring_space()).items() if common else ()

    return _run_passes(
        old,
        new,
        [
            ("line", by_line),
            ("text", _make_key_matcher(_text_key)),
            ("text", by_indented_line),
            ("text", _make_unique_matcher(_unscoped_key)),
            ("message", _make_key_matcher(_message_key)),
        ],
    )


def pair_anywhere(old: Sequence[MatchableFinding], new: Sequence[MatchableFinding]) -> Pairing:
    """Match the unmatched findings of two batches by their line and the adjacent lines.

    Two findings match only if these texts occur once on each side.
    """
    return _run_passes(old, new, [("context", _make_unique_matcher(key)) for key in _CONTEXT_KEYS])


def _run_passes(
    old: Sequence[MatchableFinding], new: Sequence[MatchableFinding], matchers: Iterable[tuple[MatchingPass, _Matcher]]
) -> Pairing:
    left, right = _sort_by_location(old), _sort_by_location(new)
    pairs = []
    for by, matcher in matchers:
        for one, other in list(matcher(left, right)):
            pairs.append(FindingPair(one, other, by))
            del left[one], right[other]
    return Pairing(pairs, list(left), list(right))


def _sort_by_location(findings: Sequence[MatchableFinding]) -> dict[int, MatchableFinding]:
    """Return findings by index, sorted by line and column."""
    return dict(sorted(enumerate(findings), key=lambda item: (item[1].line, item[1].column)))


def _match_on_lines(
    left: Mapping[int, LocatedFinding], right: Mapping[int, LocatedFinding], paired_lines: Sequence[int]
) -> dict[int, int]:
    matches = _match_unmoved(left, right, paired_lines)
    matched_right = {*matches.values()}
    right_groups = _group_by_line({index: finding for index, finding in right.items() if index not in matched_right})
    left_groups = (
        _group_by_line({index: finding for index, finding in left.items() if index not in matches})
        if right_groups
        else {}
    )
    for (tool, code, line), ones in left_groups.items():
        paired_line = paired_lines[line - 1] if 0 < line <= len(paired_lines) else -1
        same_line = right_groups.get((tool, code, paired_line + 1), []) if paired_line >= 0 else []
        if len(ones) * len(same_line) > _PAIRS_MAX:
            ones.sort(key=lambda index: left[index].column)
            same_line.sort(key=lambda index: right[index].column)
            matches.update(zip(ones, same_line, strict=False))
        elif same_line:
            ranked = sorted(
                (abs(left[one].column - right[other].column), left[one].message != right[other].message, one, other)
                for one in ones
                for other in same_line
            )
            matches.update(choose_disjoint((one, other) for _, _, one, other in ranked))
    return matches


def _match_unmoved(
    left: Mapping[int, LocatedFinding], right: Mapping[int, LocatedFinding], paired_lines: Sequence[int]
) -> dict[int, int]:
    """Match findings in the same column of matching lines with equal message, if there is one on each side.

    No other match can be nearer. Nearly all findings match in this way.
    """
    lines = len(paired_lines)
    right_indexes = _unique_indexes(
        (finding.line, finding.column, finding.message, finding.code, finding.tool) for finding in right.values()
    )
    left_indexes = _unique_indexes(
        (paired_lines[finding.line - 1] + 1, finding.column, finding.message, finding.code, finding.tool)
        if 0 < finding.line <= lines
        else None
        for finding in left.values()
    )
    left_keys, right_keys = [*left], [*right]
    return {
        left_keys[index]: right_keys[right_indexes[key]]
        for key, index in left_indexes.items()
        if key in right_indexes and key and key[0] > 0
    }


def _unique_indexes(keys: Iterable[K]) -> dict[K, int]:
    """Return the index of each key that occurs exactly once in `keys`."""
    all_keys = [*keys]
    index_by_key = dict(zip(all_keys, count()))
    if len(index_by_key) < len(all_keys):
        for key in {key for index, key in enumerate(all_keys) if index_by_key[key] != index}:
            del index_by_key[key]
    return index_by_key


def _group_by_line(findings: Mapping[int, LocatedFinding]) -> dict[tuple[str, str, int], list[int]]:
    indexes: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for index, finding in findings.items():
        indexes[finding.tool, finding.code, finding.line].append(index)
    return indexes


def choose_disjoint(pairs: Iterable[tuple[K, K]]) -> Iterator[tuple[K, K]]:
    """Yield the pairs of which no side is in an earlier pair."""
    ones: set[K] = set()
    others: set[K] = set()
    for one, other in pairs:
        if one not in ones and other not in others:
            ones.add(one)
            others.add(other)
            yield one, other


def _text_key(finding: MatchableFinding) -> Hashable:
    return finding.tool, finding.code, finding.scope, finding.text


def _message_key(finding: MatchableFinding) -> Hashable:
    return finding.tool, finding.code, finding.scope, _NUMBER.sub("#", finding.message)


def _unscoped_key(finding: MatchableFinding) -> Hashable:
    """Return the key of a finding by its text alone, or None if its line is empty."""
    return (finding.tool, finding.code, finding.text) if finding.text else None


def _adjacent_lines_key(before: int, behind: int) -> Callable[[MatchableFinding], Hashable]:
    """Return the key of a finding by its text and numbers of adjacent lines, or None if there are fewer lines."""

    def key(finding: MatchableFinding) -> Hashable:
        if not finding.text or len(finding.before) < before or len(finding.behind) < behind:
            return None
        return finding.tool, finding.code, finding.text, finding.before[:before], finding.behind[:behind]

    return key


def _named_scope_key(before: int, behind: int) -> Callable[[MatchableFinding], Hashable]:
    """Return the key of a finding by its text, numbers of adjacent lines, and the name of its scope."""
    adjacent = _adjacent_lines_key(before, behind)

    def key(finding: MatchableFinding) -> Hashable:
        name, lines = finding.scope.rpartition(".")[2], adjacent(finding)
        return (name, lines) if name and lines is not None else None

    return key


def _context_key(finding: MatchableFinding) -> Hashable:
    """Return the key of a finding by the lines around it. At the start or the end of a file, a line can be missing."""
    return (finding.tool, finding.code, finding.text, finding.before[:1], finding.behind[:1]) if finding.text else None


_CONTEXT_KEYS = (
    _context_key,
    _adjacent_lines_key(2, 0),
    _adjacent_lines_key(0, 2),
    _named_scope_key(1, 0),
    _named_scope_key(0, 1),
)


def _make_key_matcher(key: Callable[[MatchableFinding], Hashable]) -> _Matcher:
    def matcher(
        left: Mapping[int, MatchableFinding], right: Mapping[int, MatchableFinding]
    ) -> Iterator[tuple[int, int]]:
        right_groups = _group_by_key(right, key)
        for value, ones in _group_by_key(left, key).items():
            yield from zip(ones, right_groups.get(value, ()), strict=False)

    return matcher


def _make_unique_matcher(key: Callable[[MatchableFinding], Hashable]) -> _Matcher:
    """Return a matcher of findings whose key is not None and occurs once on each side."""

    def matcher(
        left: Mapping[int, MatchableFinding], right: Mapping[int, MatchableFinding]
    ) -> Iterator[tuple[int, int]]:
        right_groups = _group_by_key(right, key)
        for value, ones in _group_by_key(left, key).items():
            candidates = right_groups.get(value, ())
            if len(ones) == len(candidates) == 1 and value is not None:
                yield ones[0], candidates[0]

    return matcher


def _group_by_key(findings: Mapping[int, MatchableFinding], key: Callable[[MatchableFinding], K]) -> dict[K, list[int]]:
    """Return the indexes of findings by key, in the order of the findings."""
    groups: dict[K, list[int]] = defaultdict(list)
    for index, finding in findings.items():
        groups[key(finding)].append(index)
    return groups
