"""Tracebacks of failed tasks, shortened for people, with equal failures grouped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from codebatch.query.fields import JsonRecord

_FRAME_PREFIX = '  File "'
_INTERNAL_PATHS = ("/codebatch/", "/codebatch_workers/", "/msgspec/")


class ParsedTraceback(NamedTuple):
    """A parsed traceback: the lines of the exception, and the frames of the task's own code.

    Frames of codebatch before the first frame of the task are left out. A frame is a text of one or more lines.
    """

    exception_lines: tuple[str, ...]
    frames: tuple[str, ...]


def parse_traceback(evidence: str) -> ParsedTraceback:
    """Parse a traceback. If the text is not a traceback, return all its lines as the exception, without frames."""
    lines = evidence.strip().splitlines()
    starts = [index for index, line in enumerate(lines) if line.startswith(_FRAME_PREFIX)]
    if not starts:
        return ParsedTraceback(tuple(lines), ())
    end = next((index for index in range(starts[-1] + 1, len(lines)) if not lines[index].startswith(" ")), len(lines))
    frames = [lines[start:stop] for start, stop in zip(starts, [*starts[1:], end], strict=True)]
    while len(frames) > 1 and any(part in frames[0][0] for part in _INTERNAL_PATHS):
        frames.pop(0)
    return ParsedTraceback(
        tuple(lines[end:]), tuple(line for frame in frames for line in frame if line.startswith(" "))
    )


def group_equal_failures(failures: Iterable[JsonRecord]) -> Iterator[tuple[JsonRecord, int]]:
    """Yield one failure of each group with the size of the group.

    Failures are grouped by task, reason, frames and exception type.
    """
    groups: dict[tuple[object, ...], list[JsonRecord]] = {}
    for failure in failures:
        raised = parse_traceback(str(failure.get("evidence") or ""))
        kind = (
            raised.exception_lines[0].partition(":")[0]
            if raised.frames and raised.exception_lines
            else raised.exception_lines
        )
        groups.setdefault((failure.get("task"), failure.get("reason"), raised.frames, kind), []).append(failure)
    for group in groups.values():
        yield group[0], len(group)
