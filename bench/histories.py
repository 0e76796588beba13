"""Two commits of a repository: their trees, and the lines that git matches between them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_QUOTED = re.compile(rb'\\([0-7]{3}|["\\abfnrtv])')
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Two commits of a repository. `repository` is a git directory; `old` and `new` name commits as git does."""

    repository: Path
    old: str
    new: str

    @property
    def name(self) -> str:
        """The label of this history in the rows of a report."""
        return f"{self.repository.parent.name or self.repository.name} {self.old}..{self.new}"

    def git(self, *arguments: str) -> bytes:
        """Run git and return its output. Raises CalledProcessError."""
        return subprocess.run(["git", *self.command(*arguments)[1:]], check=True, capture_output=True).stdout

    def command(self, *arguments: str) -> list[str]:
        """Return a command line that calls git on the repository."""
        return ["git", "--git-dir", str(self.repository), *arguments]

    def diff(self, algorithm: Literal["histogram", "myers"]) -> list[str]:
        """Return the command line of the diff that matches lines."""
        how = ("-M", "-l0", f"--diff-algorithm={algorithm}", "-U0", "--no-color", "--no-ext-diff")
        return self.command("diff", *how, self.old, self.new)

    def write_tree(self, commit: str, root: Path) -> None:
        """Write the files of a commit. Raises CalledProcessError."""
        archive = subprocess.Popen(self.command("archive", commit), stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", str(root)], stdin=archive.stdout, check=True)
        if archive.wait():
            raise subprocess.CalledProcessError(archive.returncode, archive.args)


class LineMap:
    """The place in the new tree of each unchanged line of the old tree.

    It is computed from diffs by several algorithms of git. If they disagree about a line, its place is unknown.
    """

    def __init__(self, *diffs: bytes) -> None:
        self._files = [{old: (new, hunks) for old, new, hunks in _files_of(diff) if old} for diff in diffs]

    def renamed(self) -> Mapping[bytes, bytes]:
        """Map the old path of each renamed file to its new path."""
        return {old: new for old, (new, _) in self._files[0].items() if new and new != old}

    def place(self, path: bytes, line: int) -> tuple[bytes, int] | None:
        """Return the current place of a line, or None if the line was changed or its place is unknown."""
        places = {_place(files, path, line) for files in self._files}
        return places.pop() if len(places) == 1 else None


_Hunk = tuple[int, int, int, int]


_Files = Mapping[bytes, tuple[bytes | None, Sequence[_Hunk]]]


def _place(files: _Files, path: bytes, line: int) -> tuple[bytes, int] | None:
    if path not in files:
        return path, line
    new, hunks = files[path]
    if new is None:
        return None
    shift = 0
    for start, count, _, other_count in hunks:
        if line < start + (count == 0):
            break
        if line < start + count:
            return None
        shift += other_count - count
    return new, line + shift


def _files_of(diff: bytes) -> Iterator[tuple[bytes | None, bytes | None, Sequence[_Hunk]]]:
    for file_diff in re.split(rb"^diff --git ", diff, flags=re.MULTILINE)[1:]:
        head, *_ = re.split(rb"^@@ ", file_diff, maxsplit=1, flags=re.MULTILINE)
        old, new = _paths(head)
        hunks = []
        for match in _HUNK.finditer(file_diff) if b"\n@@ " in file_diff else ():
            if file_diff[: match.start()].endswith(b"\n"):
                start, count, other, other_count = (int(number or 1) for number in match.groups(b"1"))
                hunks.append((start, count, other, other_count))
        yield old, new, hunks


def _paths(head: bytes) -> tuple[bytes | None, bytes | None]:
    lines = head.split(b"\n")
    path_by_marker = dict(line.split(b" ", 1) for line in lines[1:] if line.startswith((b"--- ", b"+++ ")))
    if b"---" in path_by_marker:
        return _path(path_by_marker[b"---"]), _path(path_by_marker[b"+++"])
    moved = {line.split(b" ")[1]: line.split(b" ", 2)[2] for line in lines if line.startswith(b"rename ")}
    if moved:
        return _unquoted(moved[b"from"]), _unquoted(moved[b"to"])
    # If only the mode changed, or the file is binary or empty, the header has one path twice and no line names it.
    path = _path(lines[0][: len(lines[0]) // 2])
    is_new, is_gone = (any(line.startswith(word) for line in lines) for word in (b"new file", b"deleted file"))
    return None if is_new else path, None if is_gone else path


def _path(name: bytes) -> bytes | None:
    unquoted = _unquoted(name.rstrip(b"\t"))
    return None if unquoted == b"/dev/null" else unquoted.partition(b"/")[2]


def _unquoted(name: bytes) -> bytes:
    if not name.startswith(b'"'):
        return name
    return _QUOTED.sub(
        lambda match: _ESCAPES.get(match[1], match[1]) if len(match[1]) == 1 else bytes([int(match[1], 8)]), name[1:-1]
    )
