"""Algorithms that match the findings of two trees: those of other programs, to compare ours with."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from bench.histories import LineMap

_WINDOW = 100


class Found(NamedTuple):
    """A finding and its place in its tree."""

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
# Map the index of a finding of the new tree to the index of the matching finding of the old tree.
Matches = dict[int, int]
Key = Callable[[Found], Hashable]


class Sides(NamedTuple):
    """The findings of both trees, sorted by path and place, and the contents of their files."""

    old: Sequence[Found]
    new: Sequence[Found]
    old_tree: Tree
    new_tree: Tree


def by_place(sides: Sides) -> Matches:
    """Match findings with equal path, rule and line."""
    return _in_order(sides, [(_place, _place)])


def by_github(sides: Sides) -> Matches:
    """Match findings with equal path, rule and primaryLocationLineHash.

    That hash covers 100 characters from the start of the line, without blanks.
    """
    old, new = _Windows(sides.old_tree), _Windows(sides.new_tree)
    return _in_order(sides, [(old.key, new.key)])


def by_sonarqube(sides: Sides, lines: LineMap) -> Matches:
    """Match findings by SonarQube's passes, without its detection of moved blocks. Git's renames are followed."""
    renamed = lines.renamed()
    old, new = _LineHashes(sides.old_tree, renamed), _LineHashes(sides.new_tree, {})
    passes = ("line hash message", "line hash", "hash message", "line message", "hash")
    return _in_order(sides, [(old.key_of(names.split()), new.key_of(names.split())) for names in passes])


def _place(finding: Found) -> Hashable:
    return finding.path, finding.rule, finding.line


def _in_order(sides: Sides, passes: Sequence[tuple[Key, Key]]) -> Matches:
    """Match findings pass by pass.

    In each pass, findings with equal keys are matched in order; each is matched at most once.
    """
    matches: Matches = {}
    matched_old: set[int] = set()
    for old_key, new_key in passes:
        unmatched: dict[Hashable, list[int]] = defaultdict(list)
        for number in reversed(range(len(sides.old))):
            if number not in matched_old:
                unmatched[old_key(sides.old[number])].append(number)
        for number, finding in enumerate(sides.new):
            if number not in matches and (candidates := unmatched.get(new_key(finding))):
                matches[number] = candidates.pop()
                matched_old.add(matches[number])
    return matches


class _Windows:
    """GitHub's identity of a line, as in fingerprints.ts of codeql-action, but with characters instead of a hash."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._files: dict[bytes, list[tuple[bytes, int]]] = {}

    def key(self, finding: Found) -> Hashable:
        if finding.path not in self._files:
            self._files[finding.path] = self._windows(self._tree.get(finding.path, b""))
        windows = self._files[finding.path]
        return finding.path, finding.rule, windows[finding.line - 1] if finding.line <= len(windows) else None

    def _windows(self, content: bytes) -> list[tuple[bytes, int]]:
        stripped = [line.translate(None, b" \t\r") + b"\n" for line in content.split(b"\n")]
        text, starts = b"".join(stripped), [0]
        for line in stripped:
            starts.append(starts[-1] + len(line))
        occurrences: dict[bytes, int] = defaultdict(int)
        windows = []
        for start in starts[:-1]:
            window = text[start : start + _WINDOW]
            occurrences[window] += 1
            windows.append((window, occurrences[window]))
        return windows


class _LineHashes:
    def __init__(self, tree: Tree, renamed: Mapping[bytes, bytes]) -> None:
        self._tree = tree
        self._renamed = renamed
        self._files: dict[bytes, list[bytes]] = {}

    def key_of(self, names: Sequence[str]) -> Key:
        def key(finding: Found) -> Hashable:
            parts = {"line": finding.line, "message": finding.message, "hash": self._hash(finding)}
            path = self._renamed.get(finding.path, finding.path)
            return path, finding.rule, *(parts[name] for name in names)

        return key

    def _hash(self, finding: Found) -> bytes:
        if finding.path not in self._files:
            lines = self._tree.get(finding.path, b"").split(b"\n")
            self._files[finding.path] = [hashlib.md5(b"".join(line.split())).digest() for line in lines]
        hashes = self._files[finding.path]
        return hashes[finding.line - 1] if finding.line <= len(hashes) else b""
