"""CODEOWNERS files, as GitHub reads them: patterns of paths, each with the owners of these paths.

The last pattern that matches a file decides, also if it names no owner. Patterns are those of gitignore(5), except
that a pattern ending with `/*` matches only files, and not the directories there with all files below them.
Negations are ignored. So are the headers of sections that GitLab adds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codebatch.model.gitignore import IgnorePattern, PatternList, parse_pattern

OWNERS_FILES = (b".github/CODEOWNERS", b"CODEOWNERS", b"docs/CODEOWNERS")
"""The places of the file. The first one that exists is read."""

# A pattern ends at the first space without a backslash before it.
_LINE = re.compile(rb"((?:\\.|[^\\\s])+)(\s.*)?\Z", re.DOTALL)


class CodeOwners:
    """The owners of files, by the lines of a CODEOWNERS file."""

    def __init__(self, data: bytes = b"") -> None:
        self._owners: dict[int, tuple[str, ...]] = {}
        of_files: list[IgnorePattern] = []
        of_trees: list[IgnorePattern] = []
        for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
            match = _LINE.match(line.strip())
            if match is None or match[1].startswith((b"#", b"!", b"[", b"^[")):
                continue
            pattern = parse_pattern(match[1], number)
            if pattern is not None:
                (of_files if match[1].endswith(b"/*") else of_trees).append(pattern)
                self._owners[number] = _parse_owners(match[2] or b"")
        self._of_files = PatternList("CODEOWNERS", b"", of_files)
        self._of_trees = PatternList("CODEOWNERS", b"", of_trees)

    def find(self, path: bytes) -> tuple[str, ...]:
        """Return the owners of a file in the order of the line. Empty: it has no owner."""
        deciding = [
            self._of_files.deciding_pattern(path, is_directory=False),
            self._of_trees.deciding_pattern(path, is_directory=False),
        ]
        while b"/" in path:
            path = path.rpartition(b"/")[0]
            deciding.append(self._of_trees.deciding_pattern(path, is_directory=True))
        line = max((pattern.line for pattern in deciding if pattern is not None), default=0)
        return self._owners.get(line, ())


def _parse_owners(text: bytes) -> tuple[str, ...]:
    words: Sequence[str] = text.decode("utf-8", "backslashreplace").split()
    end = next((at for at, word in enumerate(words) if word.startswith("#")), len(words))
    return tuple(words[:end])
