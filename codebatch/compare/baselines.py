"""Baselines: known findings, in a file that is stored with the code.

Each line is a JSON object {tool, code, path, scope, hash, ordinal}. `path_b64` replaces `path` if the path is not
UTF-8. `hash` is the hash of the finding's line of code without white space. `ordinal` numbers findings whose other
members are equal. Lines are sorted and unique, so git's `merge=union` merges two branches correctly.

Lines of the baseline are matched with findings in three passes. `ordinal` is never compared. The first pass requires
all other members to be equal. In the second pass, `scope` may differ, in the third pass `path`. Equal lines and
findings are matched in order.
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
_CONFLICT_MARKERS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")

BaselinePass = Literal["all", "scope", "path"]


class BaselineEntry(NamedTuple):
    """A known finding in a baseline."""

    tool: str
    code: str
    path: bytes
    scope: str
    hash: str
    ordinal: int


class BaselineEntryPair(NamedTuple):
    """The indexes of a matched baseline line and finding, and the pass that matched them."""

    line: int
    finding_index: int
    by: BaselinePass


class BaselineError(ValueError):
    """An invalid line of a baseline. `line` is its number, from 1. The message is a predicate for "line N …"."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
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
    """Return the baseline entries of findings, in the same order. Each finding is given with its path."""
    ordinals: dict[Hashable, int] = defaultdict(int)
    entries = []
    for path, finding in findings:
        key = finding.tool, finding.code, path, finding.scope, line_hash(finding.text)
        entries.append(BaselineEntry(*key, ordinals[key]))
        ordinals[key] += 1
    return entries


def line_hash(text: bytes) -> str:
    """Return the hash of a line. `text` is the line without white space."""
    return digest_bytes(text)[:HASH_DIGITS]


def encode_baseline(entries: Iterable[BaselineEntry]) -> bytes:
    """Encode baseline entries as sorted, unique lines."""
    return b"".join(sorted({_encode_line(entry) for entry in entries}))


def decode_baseline(data: bytes) -> list[BaselineEntry]:
    """Decode a baseline. Return its entries, sorted and unique. Empty lines are skipped. Raises BaselineError."""
    entries = set()
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            entries.add(_decode_line(number, line))
    return sorted(entries)


def match_baseline(lines: Sequence[BaselineEntry], entries: Sequence[BaselineEntry]) -> list[BaselineEntryPair]:
    """Match lines of a baseline with findings. Each line and each finding is in at most one pair."""
    old_entries, new_entries = dict(enumerate(lines)), dict(enumerate(entries))
    pairs: list[BaselineEntryPair] = []
    for by, key in _KEYS_BY_PASS.items():
        findings_by_key: dict[Hashable, list[int]] = defaultdict(list)
        for index, entry in new_entries.items():
            findings_by_key[key(entry)].append(index)
        for candidates in findings_by_key.values():
            candidates.reverse()
        for index, entry in list(old_entries.items()):
            candidates = findings_by_key.get(key(entry), [])
            if candidates:
                match = candidates.pop()
                del old_entries[index], new_entries[match]
                pairs.append(BaselineEntryPair(index, match, by))
    return pairs


_KEYS_BY_PASS: dict[BaselinePass, Callable[[BaselineEntry], Hashable]] = {
    "all": lambda entry: (entry.tool, entry.code, entry.hash, entry.path, entry.scope),
    "scope": lambda entry: (entry.tool, entry.code, entry.hash, entry.path),
    "path": lambda entry: (entry.tool, entry.code, entry.hash, entry.scope),
}


def _encode_line(entry: BaselineEntry) -> bytes:
    path, path_b64 = path_fields(entry.path)
    line = _BaselineLine(
        tool=entry.tool,
        code=entry.code,
        path=path,
        path_b64=path_b64,
        scope=entry.scope,
        hash=entry.hash,
        ordinal=entry.ordinal,
    )
    return msgspec.json.encode(line) + b"\n"


def _decode_line(number: int, line: bytes) -> BaselineEntry:
    if line.startswith(_CONFLICT_MARKERS):
        raise BaselineError(number, "is a merge conflict marker")
    try:
        decoded = _decoder.decode(line)
        path = path_from_fields(decoded.path, decoded.path_b64)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BaselineError(number, f"is not a valid line of a baseline: {error}") from error
    return BaselineEntry(decoded.tool, decoded.code, path, decoded.scope, decoded.hash, decoded.ordinal)


_decoder = msgspec.json.Decoder(_BaselineLine)
