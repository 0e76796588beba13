"""Findings that lint does not report in one batch although the code is the same, and the reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice

from codebatch.compare.absence.suppression_comments import ContextsOf, OtherLine
from codebatch.compare.matching.finding_pairs import ReportedFinding, ToldByPath
from codebatch.compare.matching.trees import Side, TreeComparison, other_side
from codebatch.compare.rules import LINT, has_notes, has_notes_of_others
from codebatch.compare.states import Reason
from codebatch.model.plan import PlannedTask
from codebatch.plugins.worker_services import FindingsOfFile, absence_services, language_services

# The number of files in one request. Each request starts ruff twice, so requests are batched.
_FILES_MAX = 200


class UnreportedFindings:
    """The findings of one batch without a match in the other. `there` are the findings of the other batch, by path.

    After `ask`, `reasons` has the reason for each finding that lint of the other batch did not report although the code
    is the same.
    """

    def __init__(self, trees: TreeComparison, side: Side, there: ToldByPath) -> None:
        self.reasons: dict[ReportedFinding, Reason] = {}
        self._trees = trees
        self._side = side
        self._there = there
        self._places: dict[tuple[bytes, bytes], Mapping[ReportedFinding, OtherLine]] = {}
        self._may_be_noted_or_broken: dict[tuple[bytes, bytes], bool] = {}

    def add(
        self, path: bytes, its_other: bytes, places_by_finding: Mapping[ReportedFinding, OtherLine], *, has_errors: bool
    ) -> None:
        """Add findings of a file, each with its location in the matching file of the other batch. Raises StoreCorrupt.

        A finding on an edited line is ignored, unless the edit may have appended a suppression comment. `has_errors` is
        set if the other file may have syntax errors.
        """
        other = other_side(self._side)
        is_same = self._trees.object(self._side, path) == self._trees.object(other, its_other)
        if not places_by_finding or (path == its_other and is_same):
            return
        content = self._trees.content(other, its_other)
        is_for_ruff = any(finding.about.tool == "ruff" for finding in places_by_finding)
        may_be_noted = content is not None and is_for_ruff and has_notes_of_others(content)
        places = {
            finding: place
            for finding, place in places_by_finding.items()
            if place.line and (place.is_same or may_be_noted)
        }
        if content is not None and places and not has_notes(content):
            places = self._still_undecided(its_other, places)
        if content is not None and places:
            self._places[path, its_other] = places
            self._may_be_noted_or_broken[path, its_other] = may_be_noted or has_errors

    def ask(self, task: PlannedTask | None, contexts_of: ContextsOf) -> None:
        """Determine the reasons for the added findings. Raises StoreCorrupt."""
        remaining = iter(self._places.items() if task is not None else ())
        while task is not None and (chunk := list(islice(remaining, _FILES_MAX))):
            requests = [self._make_request(*each, contexts_of(each[0][1])) for each in chunk]
            all_reasons = language_services().why_untold(task.config, requests)
            for (_, places), reasons in zip(chunk, all_reasons, strict=True) if all_reasons else ():
                for (finding, place), reason in zip(places.items(), reasons, strict=True):
                    if reason == "suppressed" or (reason and place.is_same):
                        self.reasons[finding] = reason

    def _still_undecided(
        self, its_other: bytes, places: Mapping[ReportedFinding, OtherLine]
    ) -> dict[ReportedFinding, OtherLine]:
        """Return the findings for which the other findings of the file do not show whether lint checked them.

        If there are none, the file need not be parsed. Lint reports a limited number of findings of a rule in a file.
        If there are fewer findings of the rule, lint has reported all of them. Otherwise, lint has not checked the
        lines after the last one.
        """
        lines: dict[tuple[str, str], list[int]] = defaultdict(list)
        for finding in self._there.get(its_other, ()):
            if finding.task == LINT and finding.about.tool != "ruff":
                lines[finding.code].append(finding.about.line)
        undecided = {}
        *_, findings_max = absence_services().per_file_limits()
        for finding, place in places.items():
            is_whole = finding.code not in lines or len(lines[finding.code]) < findings_max
            if finding.code not in lines or (not is_whole and place.line <= max(lines[finding.code])):
                undecided[finding] = place
            elif not is_whole and place.is_same:
                self.reasons[finding] = "unknown"
        return undecided

    def _make_request(
        self, paths: tuple[bytes, bytes], places: Mapping[ReportedFinding, OtherLine], contexts: Mapping[str, bytes]
    ) -> FindingsOfFile:
        content = self._trees.content(other_side(self._side), paths[1]) or b""
        wanted = [(place.line, *finding.code, finding.about.message) for finding, place in places.items()]
        return paths[1], content, contexts, wanted, self._may_be_noted_or_broken[paths]
