"""Exports of two batches: the regressions of the later one, and for SARIF the findings suppressed there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from codebatch.compare.matching.lines import NOWHERE
from codebatch.compare.states import REGRESSIONS
from codebatch.exchange.findings import Outgoing
from codebatch.model.entry import path_fields
from codebatch.model.record import Diagnostic
from codebatch.model.text.quantities import count_of
from codebatch.operations.comparison.comparison import Comparison


def regressions(comparison: Comparison) -> Iterator[Outgoing]:
    """Yield new findings and those whose severity was raised. Raises StoreCorrupt."""
    for each in comparison.differences(REGRESSIONS):
        if isinstance(each.new, Diagnostic):
            path = each.new.path_bytes
            yield Outgoing(each.new, path, each.state, is_changed=_is_changed(comparison.lines(path), each.new.line))


def suppressed(comparison: Comparison) -> Iterator[Outgoing]:
    """The findings that a rule no longer looks for, or a note in the source silences, where they would be now.

    Where that line has been edited, as it is by a note, they are of their file alone: their line is 0. Raises
    StoreCorrupt.
    """
    for each in comparison.differences({"suppressed"}):
        if not isinstance(each.old, Diagnostic):
            continue
        old_path = each.old.path_bytes
        path = comparison.trees.new_path(old_path)
        if path is not None:
            line = _at(comparison.trees.lines("old", old_path, path), each.old.line)
            yield Outgoing(_moved(each.old, path, line), path, each.state, reason=each.reason)


def not_comparable(comparison: Comparison) -> Iterator[str]:
    """How many findings are left out since nobody knows whether they are new, in words. Raises StoreCorrupt."""
    count = sum(each.new is not None for each in comparison.differences({"not_comparable"}))
    if count:
        old, new = comparison.old.question.batch.id, comparison.new.question.batch.id
        told = f"{count_of(count, 'finding')} not comparable with the older batch"
        yield f"omitted: {told}; see: codebatch diff {old} {new} --state not_comparable"


def _is_changed(lines: Sequence[int] | None, line: int) -> bool:
    """Whether a line is none of the older file's; `lines` says which line is which."""
    return lines is None or _at(lines, line) == 0


def _at(lines: Sequence[int] | None, line: int) -> int:
    """Which line a line is in the other file, from 1; 0 where it is none."""
    is_known = lines is not None and 0 < line <= len(lines) and lines[line - 1] != NOWHERE
    return lines[line - 1] + 1 if lines is not None and is_known else 0


def _moved(found: Diagnostic, path: bytes, line: int) -> Diagnostic:
    text, encoded = path_fields(path)
    end_line = found.end_line - found.line + line if line else 0
    return msgspec.structs.replace(found, path=text, path_b64=encoded, line=line, end_line=end_line)
