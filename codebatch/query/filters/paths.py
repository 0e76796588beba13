"""Filters of paths: a gitignore pattern where there is one of `* ? [`, a file or directory where a `/` begins
the text, else a part of the path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.model.text.displayed_paths import paths_shown_as

if TYPE_CHECKING:
    from codebatch.model.globs import GlobSet

Paths = str | Sequence[str]
"""One text or several: a path is asked for if any of them asks for it."""

_OF_PATTERNS = frozenset("*?[")
_WILD = str.maketrans("*?/ ", "////")
_WRITTEN_OTHERWISE = frozenset('\\["')
"""What a pattern or JSON has another way than a path."""
_ESCAPED = str.maketrans({each: f"\\{each}" for each in "*?[\\"})


def is_pattern(text: str) -> bool:
    """Whether a text is a pattern."""
    return not _OF_PATTERNS.isdisjoint(text)


def text_of_path(path: bytes) -> str:
    """Return the text that asks for a file, or for all below a directory, and for nothing else."""
    text = "/" + path.decode("utf-8", "surrogateescape")
    return text.translate(_ESCAPED) if is_pattern(text) else text


class PathFilter:
    """The paths that some text, or any of several, asks for; all if the text is empty.

    A text with a wildcard is a pattern as in gitignore(5): of a directory that matches, all below is asked for. A text
    that begins with `/` asks for a file or directory, from the root of the project. Any other text asks for the paths
    that hold it, case ignored, be it as people are shown them.

    Raises InvalidInput for a pattern that matches nothing or takes back what another one says.
    """

    def __init__(self, wanted: Paths) -> None:
        self._texts = (wanted,) if isinstance(wanted, str) else tuple(wanted)
        self._tests = tuple(map(_test_of, self._texts))
        self._last = (b"", False)

    @property
    def part(self) -> bytes:
        """What each path that is asked for holds, case ignored, in small letters of ASCII; empty where none is known.

        Nothing of it is escaped where it is written as JSON.
        """
        if len(self._texts) != 1:
            return b""
        (text,) = self._texts
        if not (text.isascii() and text.isprintable()) or not _WRITTEN_OTHERWISE.isdisjoint(text):
            return b""
        parts = text.translate(_WILD).split("/") if is_pattern(text) else [text.strip("/")]
        return max(parts, key=len).lower().encode()

    def matches(self, path: bytes) -> bool:
        """Whether a path is asked for."""
        if path != self._last[0]:  # Records come file by file.
            self._last = (path, any(test(path) for test in self._tests))
        return self._last[1]


def _test_of(wanted: str) -> Callable[[bytes], bool]:
    if is_pattern(wanted):
        return _Pattern(wanted).matches
    if wanted.startswith("/"):
        return _is_at_or_below(wanted)
    as_shown = display_path(wanted.encode("utf-8", "surrogateescape"))  # Of what is typed byte by byte.
    parts = tuple(part.casefold() for part in (as_shown, *paths_shown_as(wanted)))

    def holds_part(path: bytes) -> bool:
        shown = display_path(path).casefold()
        return any(part in shown for part in parts)

    return holds_part


def _is_at_or_below(wanted: str) -> Callable[[bytes], bool]:
    tops = {each.encode("utf-8", "surrogateescape").strip(b"/") for each in (wanted, *paths_shown_as(wanted))}
    directories = tuple(top + b"/" if top else b"" for top in tops)
    return lambda path: path in tops or path.startswith(directories)


class _Pattern:
    def __init__(self, wanted: str) -> None:
        from codebatch.model.gitignore import mistake_of, parse_pattern
        from codebatch.model.globs import GlobSet  # 4 ms, with patterns, that all other filters do without

        if wanted.startswith("!"):
            hint = f"use: --where 'not glob(path, \"{wanted[1:]}\")'"
            raise InvalidInput(f"the pattern {wanted!r} contains only exclusions", hint=hint)
        if (mistake := mistake_of(wanted)) is not None:
            raise InvalidInput(f"the pattern {wanted!r} matches no path: {mistake.reason}", hint=mistake.hint)
        pattern = parse_pattern(wanted.encode("utf-8", "surrogateescape"), 1)
        assert pattern is not None, "it has no mistake"
        self._globs: GlobSet[bool] = GlobSet([pattern.glob], lambda matching: next(matching, None) is not None)
        self._directory_only = pattern.directory_only

    def matches(self, path: bytes) -> bool:
        slash = path.find(b"/")
        while slash >= 0:
            if self._globs.find(path[:slash]):
                return True
            slash = path.find(b"/", slash + 1)
        return not self._directory_only and bool(self._globs.find(path))
