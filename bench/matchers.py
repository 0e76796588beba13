"""Ways to say which finding of one tree is which of another: those of others, beside ours."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from bench.histories import LineMap

_WINDOW = 100


class Found(NamedTuple):
    """A finding, and where it is among those of its tree."""

    path: bytes
    line: int
    column: int
    tool: str
    code: str
    message: str

    @property
    def rule(self) -> tuple[str, str]:
        return self.tool, self.code


Tree = Mapping[bytes, bytes]
# Of a finding of the new tree, by its number, the number of that of the old one which it is.
Matches = dict[int, int]
Key = Callable[[Found], Hashable]


class Sides(NamedTuple):
    """The findings of both trees, in the order of path and place, and what is in their files."""

    old: Sequence[Found]
    new: Sequence[Found]
    old_tree: Tree
    new_tree: Tree


def by_place(sides: Sides) -> Matches:
    """Path, rule and line."""
    return _in_order(sides, [(_place, _place)])


def by_github(sides: Sides) -> Matches:
    """Path, rule and primaryLocationLineHash: the 100 characters from the line's beginning on, blanks left out."""
    old, new = _Windows(sides.old_tree), _Windows(sides.new_tree)
    return _in_order(sides, [(old.key, new.key)])


def by_sonarqube(sides: Sides, lines: LineMap) -> Matches:
    """SonarQube's passes without its detection of moved blocks; files that git calls renamed are one."""
    renamed = lines.renamed()
    old, new = _LineHashes(sides.old_tree, renamed), _LineHashes(sides.new_tree, {})
    passes = ("line hash message", "line hash", "hash message", "line message", "hash")
    return _in_order(sides, [(old.key_of(names.split()), new.key_of(names.split())) for names in passes])


def _place(found: Found) -> Hashable:
    return found.path, found.rule, found.line


def _in_order(sides: Sides, passes: Sequence[tuple[Key, Key]]) -> Matches:
    """Pass by pass, those of one key in their order, each once."""
    matches: Matches = {}
    taken: set[int] = set()
    for old_key, new_key in passes:
        there: dict[Hashable, list[int]] = defaultdict(list)
        for number in reversed(range(len(sides.old))):
            if number not in taken:
                there[old_key(sides.old[number])].append(number)
        for number, found in enumerate(sides.new):
            if number not in matches and (left := there.get(new_key(found))):
                matches[number] = left.pop()
                taken.add(matches[number])
    return matches


class _Windows:
    """What GitHub takes for a line: as codeql-action's fingerprints.ts, with another hash of the same characters."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._files: dict[bytes, list[tuple[bytes, int]]] = {}

    def key(self, found: Found) -> Hashable:
        if found.path not in self._files:
            self._files[found.path] = self._windows(self._tree.get(found.path, b""))
        windows = self._files[found.path]
        return found.path, found.rule, windows[found.line - 1] if found.line <= len(windows) else None

    def _windows(self, content: bytes) -> list[tuple[bytes, int]]:
        written = [line.translate(None, b" \t\r") + b"\n" for line in content.split(b"\n")]
        text, starts = b"".join(written), [0]
        for line in written:
            starts.append(starts[-1] + len(line))
        times: dict[bytes, int] = defaultdict(int)
        windows = []
        for start in starts[:-1]:
            window = text[start : start + _WINDOW]
            times[window] += 1
            windows.append((window, times[window]))
        return windows


class _LineHashes:
    def __init__(self, tree: Tree, renamed: Mapping[bytes, bytes]) -> None:
        self._tree = tree
        self._renamed = renamed
        self._files: dict[bytes, list[bytes]] = {}

    def key_of(self, names: Sequence[str]) -> Key:
        def key(found: Found) -> Hashable:
            parts = {"line": found.line, "message": found.message, "hash": self._hash(found)}
            path = self._renamed.get(found.path, found.path)
            return path, found.rule, *(parts[name] for name in names)

        return key

    def _hash(self, found: Found) -> bytes:
        if found.path not in self._files:
            lines = self._tree.get(found.path, b"").split(b"\n")
            self._files[found.path] = [hashlib.md5(b"".join(line.split())).digest() for line in lines]
        hashes = self._files[found.path]
        return hashes[found.line - 1] if found.line <= len(hashes) else b""
