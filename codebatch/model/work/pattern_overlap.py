"""Overlap of the patterns of two tasks: whether one task may write files that the other reads."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch.model.gitignore import parse_arguments


class FilePatterns:
    """A list of patterns of gitignore(5), each of which may be a plain path."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._patterns = parse_arguments(texts, "")

    def shared_pattern(self, written: FilePatterns) -> str | None:
        """Return a pattern that overlaps the patterns of `written`, or None.

        Each pattern of one list is taken as a path and matched with the patterns of the other list. The patterns in
        `written` are taken as paths first. The first that matches is returned.
        """
        for text in written._texts:
            if text in self._texts or self._match_path(text):
                return text
        return next((text for text in self._texts if written._match_path(text)), None)

    def _match_path(self, text: str) -> bool:
        """Return whether the patterns match a path or one of the path's parents.

        The last pattern that matches decides. If this pattern is negated (`!`), the result is false.
        """
        parts = text.strip("/").encode("utf-8", "surrogateescape").split(b"/")
        for count in range(len(parts), 0, -1):
            is_directory = count < len(parts) or text.endswith("/")
            pattern = self._patterns.deciding_pattern(b"/".join(parts[:count]), is_directory=is_directory)
            if pattern is not None:
                return not pattern.negated
        return False
