"""Selection of the edits that can be made, each in its place and all together.

All edits are tried together first. If they do not fit, those that cannot be made are left out, and the others are tried
again. If it is not certain which ones these are, a part of the edits is tried. Each trial parses the file, so their
number is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from codebatch_workers.syntax.patterns.edits import Edit, apply_edits, iter_copies, new_spans, root_of, text_of
from codebatch_workers.syntax.patterns.grouping import (
    GROUPED_KINDS,
    group_captures,
    group_operations,
    group_whole,
    is_grouped,
    is_one_expression,
    is_read_alike,
)
from codebatch_workers.syntax.patterns.language_patterns import LanguagePatterns
from codebatch_workers.syntax.patterns.literals import ends_in_heredoc, literal_reason
from codebatch_workers.syntax.patterns.places import AROUND, NOT_ONE, Misplaced, find_misplaced, place_reason
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.unseen_errors import error_spans

TRIALS_MAX = 200
_TRIALS_MIN = 20
_TRIAL_BYTES_MAX = 20 << 20
"""The number of bytes that all trials may parse, if there are more than the minimum of trials."""
UNGROUPED = "other code would split the matched code, and parentheses are not possible"
MISREAD = "the matched code would be read differently in its new place"
SYNTAX = "the new code would be a syntax error"
TOGETHER = "the edit does not fit together with other edits"
TOO_MANY = "other edits of the file do not fit, and it would take too long to find out whether this one does"

ErrorFinder = Callable[[SourceFile], Sequence[int]]
"""A function that returns the lines of the syntax errors in a file, by an exact parser of its language."""


class SelectedEdits(NamedTuple):
    """The edits of a pass.

    - `changed`: the file after the edits that can be made. `made`: these edits, perhaps with parentheses.
    - `left_out`: the start of each other edit, with the reason.
    """

    changed: SourceFile
    made: Sequence[Edit]
    left_out: Mapping[int, str]


def select_edits(file: SourceFile, edits: Sequence[Edit], find_errors: ErrorFinder | None = None) -> SelectedEdits:
    """Make as many edits as possible. They are sorted and do not overlap. Raises ValueError like `apply_edits`."""
    return _Selector(file, find_errors).select(edits)


class _GoodTrial(NamedTuple):
    """Edits that can be made together, the same in their final forms, and the file after them."""

    edits: Sequence[Edit]
    forms: Sequence[Edit]
    changed: SourceFile


class _Selector:
    def __init__(self, file: SourceFile, find_errors: ErrorFinder | None) -> None:
        self._file = file
        self._find_errors = find_errors
        self._has_parentheses = LanguagePatterns.of(file.language).has_parentheses
        self._trials_left = min(TRIALS_MAX, max(_TRIALS_MIN, _TRIAL_BYTES_MAX // (len(file.utf8) + 1)))
        self._has_tried = False
        self._good = _GoodTrial((), (), file)
        self._left_out: dict[int, str] = {}

    def select(self, edits: Sequence[Edit]) -> SelectedEdits:
        """Make as many edits as possible together. Leave out the others."""
        file = self._file
        possible = [edit for edit in edits if not self._leave_out(edit, place_reason(file, edit))]
        possible = [
            edit
            for edit in possible
            if not self._leave_out(edit, literal_reason(file, (edit.start, edit.end), text_of(file, edit.parts)))
        ]
        if not self._combine(self._possible_edits(possible)):
            self._good = _GoodTrial((), (), self._file)
        return SelectedEdits(self._good.changed, self._good.forms, self._left_out)

    def _leave_out(self, edit: Edit, reason: str | None) -> bool:
        """Leave out an edit if there is a reason. Return whether there is one."""
        if reason is not None:
            self._left_out[edit.start] = reason
        return reason is not None

    def _possible_edits(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        """Return the edits that can be made, alone or with some of the others. Leave out the others."""
        while edits:
            reasons, suspects, _ = self._try(edits)
            if not reasons and not suspects:
                break
            if not reasons:
                if len(suspects) == len(edits):
                    suspects = frozenset(range(len(edits) // 2))
                parts = [
                    [edit for number, edit in enumerate(edits) if (number in suspects) == is_suspect]
                    for is_suspect in (False, True)
                ]
                possible = [edit for part in parts for edit in self._possible_edits(part)]
                return sorted(possible, key=lambda edit: edit.start)
            for number, reason in reasons.items():
                self._leave_out(edits[number], reason)
            edits = [edit for number, edit in enumerate(edits) if number not in reasons]
        return edits

    def _combine(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        """Make edits that can be made alone. Return those that can be made together, and leave out the others."""
        if not edits or edits == self._good.edits or self._try(edits).is_empty:
            return edits
        if self._trials_left <= 0 or len(edits) == 1:
            good = {edit.start for edit in self._good.edits}
            return [edit for edit in edits if edit.start in good or not self._leave_out(edit, TOO_MANY)]
        first, second = self._combine(edits[: len(edits) // 2]), self._combine(edits[len(edits) // 2 :])
        both = [*first, *second]
        if not first or not second or self._try(both).is_empty:
            return both
        for edit in second:
            self._leave_out(edit, TOGETHER)
        return self._combine(first)

    def _try(self, edits: Sequence[Edit]) -> Misplaced:
        """Try to make some edits. Return those that cannot be made. If there is only one, it has a reason."""
        if self._trials_left <= 0:
            return Misplaced(dict.fromkeys(range(len(edits)), TOO_MANY))
        is_first, self._has_tried = not self._has_tried, True
        plain = apply_edits(self._file, edits)
        grouped = group_captures(self._file, plain, edits)
        has_errors = self._has_new_errors(plain)
        reason = UNGROUPED if self._has_parentheses or not has_errors else SYNTAX
        ungrouped = {number: reason for number, form in enumerate(grouped) if form is None}
        if ungrouped and (len(edits) == 1 or not has_errors):
            return Misplaced(ungrouped)
        forms = [form or edit for form, edit in zip(grouped, edits, strict=True)]
        changed = plain if forms == edits else apply_edits(self._file, forms)
        misplaced = self._examine(edits, forms, changed)
        certain = {n: reason for n, reason in misplaced.reasons.items() if not self._is_repairable(reason)}
        if misplaced.is_empty or certain:
            return Misplaced(certain)
        misplaced = misplaced._replace(suspects=misplaced.suspects | misplaced.reasons.keys())
        # Each of several errors needs trials of its own, except if all are repaired in the same way.
        if misplaced.suspicion != SYNTAX or is_first or len(edits) == 1:
            repaired = self._try_repairs(edits, forms, changed, misplaced)
            if repaired is not None:
                return repaired
        if len(edits) > 1:
            return Misplaced({}, misplaced.suspects)
        is_split = misplaced.suspicion == SYNTAX and forms != edits and not has_errors
        return Misplaced({0: misplaced.reasons.get(0, UNGROUPED if is_split else misplaced.suspicion)})

    def _is_repairable(self, reason: str) -> bool:
        return self._has_parentheses and reason in (AROUND, NOT_ONE)

    def _try_repairs(
        self, edits: Sequence[Edit], forms: Sequence[Edit], changed: SourceFile, misplaced: Misplaced
    ) -> Misplaced | None:
        """Try to make edits with more parentheses. Return the result if it is certain.

        `changed` is the file after the edits in their `forms`.
        """
        if not self._has_parentheses:
            return None
        reasons, suspects, suspicion = misplaced
        whole = [
            group_whole(form)
            if number in suspects
            and form.kind in GROUPED_KINDS
            and (suspicion == SYNTAX or reasons.get(number) == NOT_ONE or not is_grouped(root_of(changed), *span))
            else form
            for number, (form, span) in enumerate(zip(forms, new_spans(forms), strict=True))
        ]
        grouped = apply_edits(self._file, whole)
        lists = {
            number: reasons.get(number, NOT_ONE)
            for number, span in enumerate(new_spans(whole))
            if whole[number] != forms[number] and not is_one_expression(root_of(grouped), *span)
        }
        if not lists and self._examine(edits, whole, grouped).is_empty:
            return Misplaced()
        if lists and not self._has_new_errors(grouped):
            return Misplaced(lists)
        operations = [
            group_operations(self._file, edit) if number in suspects else form
            for number, (edit, form) in enumerate(zip(edits, forms, strict=True))
        ]
        if operations != forms and self._examine(edits, operations, apply_edits(self._file, operations)).is_empty:
            return Misplaced()
        return None

    def _examine(self, edits: Sequence[Edit], forms: Sequence[Edit], changed: SourceFile) -> Misplaced:
        """Return the edits that cannot be made in their `forms`. `changed` is the file after them."""
        self._trials_left -= 1
        misplaced = self._find_misplaced(changed, forms)
        if misplaced.is_empty:
            misplaced = Misplaced(self._find_misread(changed, forms))
        if misplaced.is_empty:
            self._good = _GoodTrial(edits, forms, changed)
        return misplaced

    def _find_misread(self, changed: SourceFile, forms: Sequence[Edit]) -> Mapping[int, str]:
        """Return the edits whose copied code would be read differently in its new place, with the reason."""
        grouped = group_captures(self._file, changed, forms)
        reasons = {number: UNGROUPED for number, form in enumerate(grouped) if form != forms[number]}
        for number, old, new in iter_copies(forms):
            reason = literal_reason(changed, new, text_of(self._file, [old]))
            if reason is None and not is_read_alike(self._file, old, changed, new):
                reason = MISREAD
            if reason is not None:
                reasons.setdefault(number, reason)
        for number, (_, end) in enumerate(new_spans(forms)):
            if ends_in_heredoc(changed, end) and changed.utf8[end:].partition(b"\n")[0].strip():
                reasons.setdefault(number, AROUND)
        return reasons

    def _find_misplaced(self, changed: SourceFile, edits: Sequence[Edit]) -> Misplaced:
        if self._has_new_errors(changed):
            return Misplaced({}, _edits_near(edits, error_spans(changed)), SYNTAX)
        misplaced = find_misplaced(self._file, changed, edits)
        if not misplaced.is_empty or self._find_errors is None:
            return misplaced
        lines = self._find_errors(changed)
        if len(lines) <= len(self._find_errors(self._file) if lines else ()):
            return misplaced
        starts = [*changed.line_starts, len(changed.utf8), len(changed.utf8)]
        spans = [(starts[line - 1], starts[line]) for line in lines if line < len(starts)]
        return Misplaced({}, _edits_near(edits, spans), SYNTAX)

    def _has_new_errors(self, changed: SourceFile) -> bool:
        return len(error_spans(changed)) > len(error_spans(self._file))


def _edits_near(edits: Sequence[Edit], spans: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Return the edits whose new code touches ranges of the new text. If there are none, return all."""
    near = {
        number
        for number, (start, end) in enumerate(new_spans(edits))
        for first, last in spans
        if start <= last + 1 and first <= end + 1
    }
    return frozenset(near or range(len(edits)))
