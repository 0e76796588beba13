"""Exports of a comparison: the regressions of the newer batch and its suppressed findings.

Only SARIF has suppressed findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from codebatch.compare.matching.lines import NO_LINE
from codebatch.compare.states import REGRESSION_STATES
from codebatch.interchange.findings import ExportedFinding
from codebatch.model.entry import path_fields
from codebatch.model.record import Diagnostic
from codebatch.model.text.quantities import count_text
from codebatch.operations.comparison.comparison import Comparison


def iter_regressions(comparison: Comparison) -> Iterator[ExportedFinding]:
    """Yield the regressions: new findings, and findings with a raised severity. Raises StoreCorrupt."""
    for change in comparison.differences(REGRESSION_STATES):
        if isinstance(change.new, Diagnostic):
            path = change.new.path_bytes
            yield ExportedFinding(
                change.new, path, change.state, is_changed=_is_changed_line(comparison.lines(path), change.new.line)
            )


def iter_suppressed(comparison: Comparison) -> Iterator[ExportedFinding]:
    """Yield suppressed findings at their location in the newer batch.

    Such a finding is hidden by a disabled rule or a suppression comment. If its line was edited, for example to add the
    comment, its line number is 0, which means the whole file. Raises StoreCorrupt.
    """
    for change in comparison.differences({"suppressed"}):
        if not isinstance(change.old, Diagnostic):
            continue
        old_path = change.old.path_bytes
        path = comparison.trees.new_path(old_path)
        if path is not None:
            line = _counterpart_line(comparison.trees.matching_lines("old", old_path, path), change.old.line)
            yield ExportedFinding(_move_to_line(change.old, path, line), path, change.state, reason=change.reason)


def iter_not_comparable(comparison: Comparison) -> Iterator[str]:
    """Yield a note with the number of findings that are omitted because they are not comparable.

    Raises StoreCorrupt.
    """
    count = sum(change.new is not None for change in comparison.differences({"not_comparable"}))
    if count:
        old, new = comparison.old.question.batch.id, comparison.new.question.batch.id
        skipped = f"{count_text(count, 'finding')} not comparable with the older batch"
        yield f"omitted: {skipped}; see: codebatch diff {old} {new} --state not_comparable"


def _is_changed_line(lines: Sequence[int] | None, line: int) -> bool:
    """Return whether a line of the newer file is new: the older file has no matching line.

    `lines` maps line indexes of the newer file to line indexes of the older file. None means that all lines are new.
    """
    return lines is None or _counterpart_line(lines, line) == 0


def _counterpart_line(lines: Sequence[int] | None, line: int) -> int:
    """Return the number of the line that `lines` maps a line to. Return 0 if the line has no match.

    Both line numbers are counted from 1.
    """
    has_counterpart = lines is not None and 0 < line <= len(lines) and lines[line - 1] != NO_LINE
    return lines[line - 1] + 1 if lines is not None and has_counterpart else 0


def _move_to_line(diagnostic: Diagnostic, path: bytes, line: int) -> Diagnostic:
    text, encoded = path_fields(path)
    end_line = diagnostic.end_line - diagnostic.line + line if line else 0
    return msgspec.structs.replace(diagnostic, path=text, path_b64=encoded, line=line, end_line=end_line)
