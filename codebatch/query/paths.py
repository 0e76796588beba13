"""Which paths are asked for: a gitignore pattern where there is one of `* ? [`, else a part of the path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.model.shown_paths import paths_shown_as

if TYPE_CHECKING:
    from codebatch.model.globs import GlobSet

_OF_PATTERNS = frozenset("*?[")
_WILD = str.maketrans("*?/ ", "////")
_WRITTEN_OTHERWISE = frozenset('\\["')
"""What a pattern or JSON has another way than a path."""


class PathFilter:
    """The paths that some text asks for: all where it is empty, and those that hold it, case ignored, where it is no
    pattern, be it as people are shown it. A pattern that a directory matches asks for all below it, as in gitignore(5).

    Raises InvalidInput for a pattern that matches nothing or takes back what another one says.
    """

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        as_shown = display_path(wanted.encode("utf-8", "surrogateescape"))  # Of what is typed byte by byte.
        self._parts = tuple(part.casefold() for part in (as_shown, *paths_shown_as(wanted)))
        self._globs: GlobSet[bool] | None = None
        if _OF_PATTERNS & set(wanted):
            from codebatch.model.globs import GlobSet  # 4 ms, with patterns, that all other filters do without
            from codebatch.model.patterns import mistake_of, parse_pattern

            if wanted.startswith("!"):
                hint = f"""ask: --where 'not glob(path, "{wanted[1:]}")'"""
                raise InvalidInput(f"the pattern {wanted!r} takes back what none has said", hint=hint)
            if (mistake := mistake_of(wanted)) is not None:
                raise InvalidInput(f"the pattern {wanted!r} matches no path: {mistake.reason}", hint=mistake.hint)
            pattern = parse_pattern(wanted.encode("utf-8", "surrogateescape"), 1)
            assert pattern is not None, "it has no mistake"
            self._globs = GlobSet([pattern.glob], lambda matching: next(matching, None) is not None)
            self._directory_only = pattern.directory_only
        self._last = (b"", False)

    @property
    def part(self) -> bytes:
        """What each path that is asked for holds, case ignored, in small letters of ASCII; empty where none is known.

        Nothing of it is escaped where it is written as JSON.
        """
        is_plain = self._wanted.isascii() and self._wanted.isprintable()
        if not is_plain or not _WRITTEN_OTHERWISE.isdisjoint(self._wanted):
            return b""
        parts = [self._wanted] if self._globs is None else self._wanted.translate(_WILD).split("/")
        return max(parts, key=len).lower().encode()

    def matches(self, path: bytes) -> bool:
        """Whether a path is asked for."""
        if path != self._last[0]:  # Records come file by file.
            self._last = (path, self._decide(path))
        return self._last[1]

    def _decide(self, path: bytes) -> bool:
        if self._globs is None:
            shown = display_path(path).casefold()
            return any(part in shown for part in self._parts)
        slash = path.find(b"/")
        while slash >= 0:
            if self._globs.find(path[:slash]):
                return True
            slash = path.find(b"/", slash + 1)
        return not self._directory_only and self._globs.find(path)
