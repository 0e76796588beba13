"""Filters of paths: gitignore patterns, paths from the root of the project, or substrings of paths.

A text that contains `*`, `?` or `[` is a pattern. A text that begins with `/` is a file or directory. Any other text is
a substring of a path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.model.gitignore import parse_pattern, pattern_mistake
from codebatch.model.globs import GlobSet
from codebatch.model.text.displayed_paths import paths_displayed_as

PathPatterns = str | Sequence[str]
"""One text or several. A path matches if it matches any of them."""

_WILDCARDS = frozenset("*?[")
_ESCAPED_WILDCARDS = str.maketrans({character: f"\\{character}" for character in "*?[\\"})


def is_pattern(text: str) -> bool:
    """Return whether a text is a pattern."""
    return not _WILDCARDS.isdisjoint(text)


def exact_path_pattern(path: bytes) -> str:
    """Return the filter text that matches only a file, or only a directory and everything below it."""
    text = "/" + path.decode("utf-8", "surrogateescape")
    return text.translate(_ESCAPED_WILDCARDS) if is_pattern(text) else text


class PathFilter:
    """A filter of paths by one text or several. A path must match one of the texts. An empty text matches all paths.

    - A text with a wildcard is a pattern as in gitignore(5). If it matches a directory, everything below matches too.
    - A text that begins with `/` is a file or directory, from the root of the project.
    - Any other text matches the paths that contain it, case ignored. Paths are also compared in display form.

    Raises InvalidInput for a pattern that matches nothing or contains only exclusions.
    """

    def __init__(self, paths: PathPatterns) -> None:
        self._texts = (paths,) if isinstance(paths, str) else tuple(paths)
        self._tests = tuple(map(_make_test, self._texts))
        self._last = (b"", False)

    @property
    def common_root(self) -> str:
        """The file or directory such that all matching paths are at or below it. Empty if no such path is known."""
        if len(self._texts) != 1 or not self._texts[0].startswith("/") or is_pattern(self._texts[0]):
            return ""
        text = self._texts[0].strip("/")
        return text if text.isascii() and text.isprintable() and "\\" not in text else ""

    def matches(self, path: bytes) -> bool:
        """Return whether a path matches."""
        if path != self._last[0]:  # Records of one file are adjacent, so the last result is reused.
            self._last = (path, any(test(path) for test in self._tests))
        return self._last[1]


def _make_test(pattern: str) -> Callable[[bytes], bool]:
    if is_pattern(pattern):
        return _PathPattern(pattern).matches
    if pattern.startswith("/"):
        return _is_at_or_below(pattern)
    # The text may be the path itself or the path in display form, so both are matched.
    displayed = display_path(pattern.encode("utf-8", "surrogateescape"))
    parts = tuple(part.casefold() for part in (displayed, *paths_displayed_as(pattern)))

    def holds_part(path: bytes) -> bool:
        displayed_path = display_path(path).casefold()
        return any(part in displayed_path for part in parts)

    return holds_part


def _is_at_or_below(pattern: str) -> Callable[[bytes], bool]:
    roots = {text.encode("utf-8", "surrogateescape").strip(b"/") for text in (pattern, *paths_displayed_as(pattern))}
    directories = tuple(root + b"/" if root else b"" for root in roots)
    return lambda path: path in roots or path.startswith(directories)


class _PathPattern:
    def __init__(self, text: str) -> None:
        if text.startswith("!"):
            hint = f"use: --where 'not glob(path, \"{text[1:]}\")'"
            raise InvalidInput(f"the pattern {text!r} contains only exclusions", hint=hint)
        if (mistake := pattern_mistake(text)) is not None:
            raise InvalidInput(f"the pattern {text!r} matches no path: {mistake.reason}", hint=mistake.hint)
        pattern = parse_pattern(text.encode("utf-8", "surrogateescape"), 1)
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
