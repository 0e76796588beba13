"""A baseline: the findings that a team lives with, one a line of a file that stands beside the code.

A line is a JSON object {tool, code, path, scope, hash, ordinal}; `path_b64` stands for a path that is no UTF-8. `hash`
is of the text of the finding's line without white space, `ordinal` its number among the findings of which all else is
equal. Lines are sorted, and two that are equal are one: so two branches are joined by git's `merge=union`.

A finding is a line's by the first of these: all but the ordinal is equal; all but the scope; all but the path. Lines
and findings of which the same is equal are paired in their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from codebatch.compare.matching.findings import MatchableFinding
from codebatch.model.digest import digest_bytes
from codebatch.model.entry import path_fields, path_from_fields

HASH_DIGITS = 16
_MARKERS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")

Pass = Literal["all", "scope", "path"]


class BaselineEntry(NamedTuple):
    """What a baseline says of a finding."""

    tool: str
    code: str
    path: bytes
    scope: str
    hash: str
    ordinal: int


class BaselineEntryPair(NamedTuple):
    """Places of a line of a baseline and of a finding, and the pass that paired them."""

    line: int
    found: int
    by: Pass


class BaselineError(ValueError):
    """A line that is none of a baseline. `line` is its number, from 1; the text goes behind that."""

    def __init__(self, line: int, told: str) -> None:
        super().__init__(told)
        self.line = line


class _BaselineLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    tool: str
    code: str
    path: str | msgspec.UnsetType = msgspec.UNSET
    path_b64: str | msgspec.UnsetType = msgspec.UNSET
    scope: str
    hash: str
    ordinal: int


def baseline_entry(findings: Iterable[tuple[bytes, MatchableFinding]]) -> list[BaselineEntry]:
    """What a baseline says of findings, each with its path, in their order."""
    met: dict[Hashable, int] = defaultdict(int)
    found = []
    for path, each in findings:
        known = each.tool, each.code, path, each.scope, hash_of(each.text)
        found.append(BaselineEntry(*known, met[known]))
        met[known] += 1
    return found


def hash_of(text: bytes) -> str:
    """What a baseline has of a line, of which the text is given without white space."""
    return digest_bytes(text)[:HASH_DIGITS]


def encode_baseline(kept: Iterable[BaselineEntry]) -> bytes:
    """The lines of a baseline, sorted, each once."""
    return b"".join(sorted({_encoded(each) for each in kept}))


def decode_baseline(data: bytes) -> list[BaselineEntry]:
    """What a baseline says, sorted, each once; lines that are empty are passed over. Raises BaselineError."""
    found = set()
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            found.add(_decoded(number, line))
    return sorted(found)


def match_baseline(lines: Sequence[BaselineEntry], found: Sequence[BaselineEntry]) -> list[BaselineEntryPair]:
    """Which finding is which line's; each of them is paired once."""
    left, right = dict(enumerate(lines)), dict(enumerate(found))
    pairs: list[BaselineEntryPair] = []
    for by, key in _KEYS.items():
        theirs: dict[Hashable, list[int]] = defaultdict(list)
        for place, each in right.items():
            theirs[key(each)].append(place)
        for others in theirs.values():
            others.reverse()
        for place, each in list(left.items()):
            others = theirs.get(key(each), [])
            if others:
                its_other = others.pop()
                del left[place], right[its_other]
                pairs.append(BaselineEntryPair(place, its_other, by))
    return pairs


_KEYS: dict[Pass, Callable[[BaselineEntry], Hashable]] = {
    "all": lambda each: (each.tool, each.code, each.hash, each.path, each.scope),
    "scope": lambda each: (each.tool, each.code, each.hash, each.path),
    "path": lambda each: (each.tool, each.code, each.hash, each.scope),
}


def _encoded(kept: BaselineEntry) -> bytes:
    path, path_b64 = path_fields(kept.path)
    line = _BaselineLine(
        tool=kept.tool,
        code=kept.code,
        path=path,
        path_b64=path_b64,
        scope=kept.scope,
        hash=kept.hash,
        ordinal=kept.ordinal,
    )
    return msgspec.json.encode(line) + b"\n"


def _decoded(number: int, line: bytes) -> BaselineEntry:
    if line.startswith(_MARKERS):
        raise BaselineError(number, "is a merge conflict marker")
    try:
        read = _decoder.decode(line)
        path = path_from_fields(read.path, read.path_b64)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BaselineError(number, f"is not a valid line of a baseline: {error}") from error
    return BaselineEntry(read.tool, read.code, path, read.scope, read.hash, read.ordinal)


_decoder = msgspec.json.Decoder(_BaselineLine)
