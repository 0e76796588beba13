"""Search for the line of a finding in the other batch, and for a comment there that suppresses the finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from codebatch.compare.matching.finding_pairs import ReportedFinding
from codebatch.compare.matching.lines import NO_LINE
from codebatch.compare.matching.trees import Side, TreeComparison, opposite_side
from codebatch.compare.rules import has_suppression_comments
from codebatch.errors import CodebatchError
from codebatch.plugins.worker_services import absence_services

# A function that returns the contexts of a file by its path: values from the snapshot that results may depend on.
ContextsReader = Callable[[bytes], Mapping[str, bytes]]

# The maximum number of lines in which an edited line is searched.
_COMPARED_LINES_MAX = 200


class MatchedLine(NamedTuple):
    """The location of a line in the other batch.

    `line` is its number from 1, or 0 if the other batch does not have the line. `is_same` is set if the line is
    unchanged.
    """

    line: int
    is_same: bool


_NO_MATCHED_LINE = MatchedLine(0, False)


def matching_lines(
    trees: TreeComparison, side: Side, path: bytes, matching_path: bytes, lines: Iterable[int]
) -> list[MatchedLine]:
    """Return the locations of lines of a file in the matching file of the other batch. Raises StoreCorrupt.

    Lines are numbered from 1. An edited line is searched between the two unchanged lines around it. Its location is the
    first line there that begins with its text. So a line is found even if a suppression comment was appended.
    """
    paired = trees.matching_lines(side, path, matching_path)
    if paired is None:
        return [_NO_MATCHED_LINE for _ in lines]
    edited: _UnmatchedLines | None = None
    places = []
    for line in lines:
        if not 0 < line <= len(paired):
            places.append(_NO_MATCHED_LINE)
        elif paired[line - 1] != NO_LINE:
            places.append(MatchedLine(paired[line - 1] + 1, True))
        else:
            if edited is None:
                own_lines, matching_file_lines = (
                    trees.file_lines(side, path),
                    trees.file_lines(opposite_side(side), matching_path),
                )
                edited = _UnmatchedLines(paired, own_lines, matching_file_lines)
            places.append(MatchedLine(edited.edited_line(line), False))
    return places


def find_suppressed(
    trees: TreeComparison,
    side: Side,
    path: bytes,
    matching_path: bytes,
    unmatched: Sequence[ReportedFinding],
    places: Sequence[MatchedLine],
    contexts_of: ContextsReader,
) -> list[bool]:
    """Return for each finding of a file whether a comment suppresses it in the other batch.

    `places` are the locations of the findings in the other batch. Raises StoreCorrupt.
    """
    other = opposite_side(side)
    content = (
        None
        if trees.object_digest(side, path) == trees.object_digest(other, matching_path)
        else trees.content(other, matching_path)
    )
    if content is None or not has_suppression_comments(content):
        return [False] * len(unmatched)
    line_codes = [(place.line, finding.about.code) for place, finding in zip(places, unmatched, strict=True)]
    try:
        return absence_services().are_suppressed(matching_path, content, contexts_of(matching_path), line_codes)
    except CodebatchError:  # The file can no longer be parsed.
        return [False] * len(unmatched)


class _UnmatchedLines:
    """The lines of a file that have no equal line in the matching file of the other batch.

    Results are cached, because neighbouring lines are queried in sequence.
    """

    def __init__(self, paired: Sequence[int], old: Sequence[bytes], new: Sequence[bytes]) -> None:
        self._paired = paired
        self._own_lines = old
        self._other_lines = new
        self._edited_lines: dict[int, int] = {}
        self._cached_lines = lru_cache(1)(self._stripped_lines)

    def edited_line(self, line: int) -> int:
        """Return the number that an edited line has in the other file, or 0 if it is not found.

        Lines are numbered from 1.
        """
        if line not in self._edited_lines:
            self._edited_lines[line] = self._find_edited_line(line)
        return self._edited_lines[line]

    def _find_edited_line(self, line: int) -> int:
        # If the content became unreadable after its lines were matched, the file has no lines here.
        text = b"".join(self._own_lines[line - 1].split()) if line <= len(self._own_lines) else b""
        if not text:
            return 0
        paired = self._paired
        before = next(
            (
                position
                for position in reversed(paired[max(line - _COMPARED_LINES_MAX + 1, 0) : line - 1])
                if position != NO_LINE
            ),
            -1,
        )
        behind = next(
            (position for position in paired[line : line + _COMPARED_LINES_MAX] if position != NO_LINE),
            before + _COMPARED_LINES_MAX,
        )
        candidates = self._cached_lines(before + 1, min(behind, before + _COMPARED_LINES_MAX))
        return next((position for position, text_without_space in candidates if text_without_space.startswith(text)), 0)

    def _stripped_lines(self, start: int, end: int) -> list[tuple[int, bytes]]:
        """Return lines [start, end) of the other file, counted from 0.

        Each has its number, counted from 1, and its text without white space.
        """
        return [
            (position, b"".join(line.split())) for position, line in enumerate(self._other_lines[start:end], start + 1)
        ]
