"""Lines that a change added or modified, as reported by git.

git is run as repository.py describes, with all filters disabled (checkout.py).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from codebatch.git.ancestry import Repository, is_commit
from codebatch.git.checkout import filter_overrides
from codebatch.git.history import is_repository_top
from codebatch.git.repository import GitError, query_git

_DIFF_SECONDS_MAX = 120.0
_DIFF_ARGUMENTS = (
    "-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
    "--ignore-submodules=all", "--relative", "--src-prefix=a/", "--dst-prefix=b/", "-O/dev/null",
)  # fmt: skip
_HUNK_HEADER = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PATH_ESCAPE = re.compile(rb'\\([0-7]{3}|[abfnrtv"\\])')
_ESCAPED_BYTES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def touched_lines(repository: Repository, old: str, new: str | None) -> Mapping[bytes, list[range]]:
    """Map each file that differs from the commit `old` to its new or changed lines, counted from 1.

    Lines are numbered as in the commit `new`, or as in the work tree if `new` is None. Raises GitError.
    """
    lines_by_path: dict[bytes, list[range]] = defaultdict(list)
    for path, lines in _iter_hunks(_diff(repository, old, new, "-U0")):
        lines_by_path[path].append(lines)
    return dict(lines_by_path)


def changed_paths(repository: Repository, old: str, new: str | None) -> list[bytes]:
    """Return the files that differ between two commits, or from the work tree if `new` is None. Raises GitError."""
    untracked = b"" if new else repository.query("ls-files", "-z", "--others", "--exclude-standard", "--", ".")
    return (_diff(repository, old, new, "--name-only", "-z") + untracked).split(b"\0")[:-1]


def _diff(repository: Repository, old: str, new: str | None, *options: str) -> bytes:
    if not all(map(is_commit, filter(None, (old, new)))):
        raise GitError("the commits to compare are unknown")
    git, directory = repository
    is_top = is_repository_top(directory)
    commits = (old, new) if new else (old,)
    overrides = filter_overrides(git, directory, is_top=is_top)
    arguments = (*overrides, *_DIFF_ARGUMENTS, *options, *commits, "--", ".")
    return query_git(git, directory, arguments, _DIFF_SECONDS_MAX, is_top=is_top)


def _iter_hunks(diff: bytes) -> Iterator[tuple[bytes, range]]:
    path = b""
    lines = iter(diff.split(b"\n"))
    for line in lines:
        hunk = _HUNK_HEADER.match(line)
        if line.startswith(b"+++ "):
            path = _unquote_path(line[4:].removesuffix(b"\t")).removeprefix(b"b/")
        elif hunk is not None:
            removed, first, added = (1 if part is None else int(part) for part in hunk.groups())
            # Skip the content lines of the hunk, because content may look like a header.
            for _ in range(removed + added):
                next(lines, None)
            yield path, range(first, first + added)


def _unquote_path(path: bytes) -> bytes:
    """Return a path without the quoting of git, which quotes control characters, quotation marks and backslashes."""
    if not path.startswith(b'"'):
        return path
    return _PATH_ESCAPE.sub(lambda match: _unescape_byte(match[1]), path[1:-1])


def _unescape_byte(text: bytes) -> bytes:
    return bytes((int(text, 8) & 255,)) if text.isdigit() else _ESCAPED_BYTES.get(text, text)
