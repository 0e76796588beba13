"""What lint does not tell in one batch on a line on which it told it in the other: asked where all else is alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice

from codebatch.compare.absence.suppression_comments import ContextsOf, OtherLine
from codebatch.compare.matching.finding_pairs import ReportedFinding, ToldByPath
from codebatch.compare.matching.trees import Side, TreeComparison, other_side
from codebatch.compare.rules import LINT, AskedFile, has_notes, has_notes_of_others, per_file_limits, why_untold
from codebatch.compare.states import Reason
from codebatch.model.plan import PlannedTask

# Files of which it is asked at once, for ruff is started twice each time.
_FILES_MAX = 200


class UnreportedFindings:
    """Findings of one batch are added that are not in the other; `reasons` are of those that are withheld there.

    `there` is what the other one tells of its files.
    """

    def __init__(self, trees: TreeComparison, side: Side, there: ToldByPath) -> None:
        self.reasons: dict[ReportedFinding, Reason] = {}
        self._trees = trees
        self._side = side
        self._there = there
        self._places: dict[tuple[bytes, bytes], Mapping[ReportedFinding, OtherLine]] = {}
        self._marked: dict[tuple[bytes, bytes], bool] = {}

    def add(
        self, path: bytes, its_other: bytes, found: Mapping[ReportedFinding, OtherLine], *, has_errors: bool
    ) -> None:
        """Add findings of a file, with their places in the file that it is in the other batch. Raises StoreCorrupt.

        One on a line that was touched is left out, unless a note may have come behind it. `has_errors`: that file may
        have syntax errors.
        """
        other = other_side(self._side)
        is_same = self._trees.object(self._side, path) == self._trees.object(other, its_other)
        if not found or (path == its_other and is_same):
            return
        content = self._trees.content(other, its_other)
        is_for_ruff = any(told.about.tool == "ruff" for told in found)
        may_be_noted = content is not None and is_for_ruff and has_notes_of_others(content)
        places = {told: place for told, place in found.items() if place.line and (place.is_same or may_be_noted)}
        if content is not None and places and not has_notes(content):
            places = self._undecided(its_other, places)
        if content is not None and places:
            self._places[path, its_other] = places
            self._marked[path, its_other] = may_be_noted or has_errors

    def ask(self, task: PlannedTask | None, contexts_of: ContextsOf) -> None:
        """Find out which of those that were added are withheld. Raises StoreCorrupt."""
        every = iter(self._places.items() if task is not None else ())
        while task is not None and (some := list(islice(every, _FILES_MAX))):
            asked = [self._asked(*each, contexts_of(each[0][1])) for each in some]
            for (_, places), answer in zip(some, why_untold(task, asked), strict=True):
                for (told, place), why in zip(places.items(), answer, strict=True):
                    if why == "suppressed" or (why and place.is_same):
                        self.reasons[told] = why

    def _undecided(
        self, its_other: bytes, places: Mapping[ReportedFinding, OtherLine]
    ) -> dict[ReportedFinding, OtherLine]:
        """Those of which it does not follow from what else their rule tells of the file, which need not be parsed then.

        A rule that tells less than it may has told all; one that tells no more has not looked behind that.
        """
        lines: dict[tuple[str, str], list[int]] = defaultdict(list)
        for told in self._there.get(its_other, ()):
            if told.task == LINT and told.about.tool != "ruff":
                lines[told.code].append(told.about.line)
        left = {}
        for told, place in places.items():
            is_whole = told.code not in lines or len(lines[told.code]) < per_file_limits().findings_max
            if told.code not in lines or (not is_whole and place.line <= max(lines[told.code])):
                left[told] = place
            elif not is_whole and place.is_same:
                self.reasons[told] = "withheld"
        return left

    def _asked(
        self, paths: tuple[bytes, bytes], places: Mapping[ReportedFinding, OtherLine], contexts: Mapping[str, bytes]
    ) -> AskedFile:
        content = self._trees.content(other_side(self._side), paths[1]) or b""
        wanted = [(place.line, *told.code, told.about.message) for told, place in places.items()]
        return paths[1], content, contexts, wanted, self._marked[paths]
