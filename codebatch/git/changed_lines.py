"""Which lines a change touched, as git tells it. Asked as `git.py` asks, and without filters (`git_checkout.py`)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from codebatch.git.ancestry import Repository, is_commit
from codebatch.git.checkout import no_filters
from codebatch.git.history import begins_in
from codebatch.git.repository import GitError, ask_git

_ASKED_SECONDS = 120.0
_DIFF = (
    "-c", "core.quotePath=false", "diff", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
    "--ignore-submodules=all", "--relative", "--src-prefix=a/", "--dst-prefix=b/", "-O/dev/null",
)  # fmt: skip
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abfnrtv"\\])')
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def touched_lines(repository: Repository, old: str, new: str | None) -> Mapping[bytes, list[range]]:
    """Of each file that differs from a commit which lines are new or others, 1-based, in another, or else in the tree.

    Raises GitError.
    """
    if not all(map(is_commit, filter(None, (old, new)))):
        raise GitError("the commits to compare are unknown")
    git, directory = repository
    is_top = begins_in(directory)
    commits = (old, new) if new else (old,)
    asked = (*no_filters(git, directory, is_top=is_top), *_DIFF, *commits, "--", ".")
    found: dict[bytes, list[range]] = defaultdict(list)
    for path, lines in _parsed(ask_git(git, directory, asked, _ASKED_SECONDS, is_top=is_top)):
        found[path].append(lines)
    return dict(found)


def _parsed(diff: bytes) -> Iterator[tuple[bytes, range]]:
    path = b""
    lines = iter(diff.split(b"\n"))
    for line in lines:
        hunk = _HUNK.match(line)
        if line.startswith(b"+++ "):
            path = _unquoted(line[4:].removesuffix(b"\t")).removeprefix(b"b/")
        elif hunk is not None:
            gone, first, come = (1 if part is None else int(part) for part in hunk.groups())
            for _ in range(gone + come):  # What is in a file may look like a header.
                next(lines, None)
            yield path, range(first, first + come)


def _unquoted(path: bytes) -> bytes:
    """A path as it is; git quotes one that has control characters, quotation marks or backslashes."""
    if not path.startswith(b'"'):
        return path
    return _ESCAPE.sub(lambda found: _escaped(found[1]), path[1:-1])


def _escaped(text: bytes) -> bytes:
    return bytes((int(text, 8) & 255,)) if text.isdigit() else _ESCAPED.get(text, text)
