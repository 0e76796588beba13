"""Why tasks failed, for people: what was raised first, then where in the task, and equal failures once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from codebatch.query.fields import JsonRecord

_FRAME = '  File "'
_OF_OURS = ("/codebatch/", "/codebatch_workers/", "/msgspec/")


class Raised(NamedTuple):
    """A traceback taken apart: what was raised, and the frames from the task's own on, a line each or more."""

    what: tuple[str, ...]
    frames: tuple[str, ...]


def taken_apart(evidence: str) -> Raised:
    """A traceback, of which the last line is what was wanted; any other text is what was raised, whole."""
    lines = evidence.strip().splitlines()
    starts = [index for index, line in enumerate(lines) if line.startswith(_FRAME)]
    if not starts:
        return Raised(tuple(lines), ())
    end = next((index for index in range(starts[-1] + 1, len(lines)) if not lines[index].startswith(" ")), len(lines))
    frames = [lines[start:stop] for start, stop in zip(starts, [*starts[1:], end], strict=True)]
    while len(frames) > 1 and any(part in frames[0][0] for part in _OF_OURS):
        frames.pop(0)
    return Raised(tuple(lines[end:]), tuple(line for frame in frames for line in frame if line.startswith(" ")))


def alike(failures: Iterable[JsonRecord]) -> Iterator[tuple[JsonRecord, int]]:
    """Failures that differ in task, reason, place or kind of exception, each with how many there are like it."""
    groups: dict[tuple[object, ...], list[JsonRecord]] = {}
    for failure in failures:
        raised = taken_apart(str(failure.get("evidence") or ""))
        kind = raised.what[0].partition(":")[0] if raised.frames and raised.what else raised.what
        groups.setdefault((failure.get("task"), failure.get("reason"), raised.frames, kind), []).append(failure)
    for group in groups.values():
        yield group[0], len(group)
