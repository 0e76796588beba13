"""Findings that the task `lint` does not report in one batch although the code is the same, and the reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice

from codebatch.compare.absence.suppression_comments import ContextsReader, MatchedLine
from codebatch.compare.matching.finding_pairs import FindingsByPath, ReportedFinding
from codebatch.compare.matching.trees import Side, TreeComparison, opposite_side
from codebatch.compare.rules import LINT_TASK, has_foreign_suppressions, has_suppression_comments
from codebatch.compare.states import AbsenceReason
from codebatch.model.plan import PlannedTask
from codebatch.plugins.worker_services import FileFindings, absence_services, language_services

# The number of files in one request. Each request starts ruff twice, so requests are batched.
_FILES_CHECKED_MAX = 200


class UnreportedFindings:
    """Findings of one batch without a match in the other batch. `there` are the findings of the other batch, by path.

    After `compute_reasons`, `reasons` maps findings to reasons. It has each finding that the task `lint` did not report
    in the other batch although the code is the same.
    """

    def __init__(self, trees: TreeComparison, side: Side, other_findings: FindingsByPath) -> None:
        self.reasons: dict[ReportedFinding, AbsenceReason] = {}
        self._trees = trees
        self._side = side
        self._other_findings = other_findings
        self._places: dict[tuple[bytes, bytes], Mapping[ReportedFinding, MatchedLine]] = {}
        self._may_be_noted_or_broken: dict[tuple[bytes, bytes], bool] = {}

    def add(
        self,
        path: bytes,
        matching_path: bytes,
        places_by_finding: Mapping[ReportedFinding, MatchedLine],
        *,
        has_errors: bool,
    ) -> None:
        """Add findings of a file, each with its location in the matching file of the other batch. Raises StoreCorrupt.

        A finding on an edited line is ignored, unless the edit may have appended a suppression comment. `has_errors` is
        set if the matching file may have syntax errors.
        """
        other = opposite_side(self._side)
        is_same = self._trees.object_digest(self._side, path) == self._trees.object_digest(other, matching_path)
        if not places_by_finding or (path == matching_path and is_same):
            return
        content = self._trees.content(other, matching_path)
        is_for_ruff = any(finding.about.tool == "ruff" for finding in places_by_finding)
        may_be_noted = content is not None and is_for_ruff and has_foreign_suppressions(content)
        places = {
            finding: place
            for finding, place in places_by_finding.items()
            if place.line and (place.is_same or may_be_noted)
        }
        if content is not None and places and not has_suppression_comments(content):
            places = self._still_undecided(matching_path, places)
        if content is not None and places:
            self._places[path, matching_path] = places
            self._may_be_noted_or_broken[path, matching_path] = may_be_noted or has_errors

    def compute_reasons(self, task: PlannedTask | None, contexts_of: ContextsReader) -> None:
        """Determine the reasons for the added findings. Raises StoreCorrupt.

        `task` is the task `lint` of the other batch, or None. `contexts_of` returns the contexts of a file.
        """
        remaining = iter(self._places.items() if task is not None else ())
        while task is not None and (chunk := list(islice(remaining, _FILES_CHECKED_MAX))):
            requests = [self._make_request(*each, contexts_of(each[0][1])) for each in chunk]
            all_reasons = language_services().unreported_reasons(task.config, requests)
            for (_, places), reasons in zip(chunk, all_reasons, strict=True) if all_reasons else ():
                for (finding, place), reason in zip(places.items(), reasons, strict=True):
                    if reason == "suppressed" or (reason and place.is_same):
                        self.reasons[finding] = reason

    def _still_undecided(
        self, matching_path: bytes, places: Mapping[ReportedFinding, MatchedLine]
    ) -> dict[ReportedFinding, MatchedLine]:
        """Return the findings whose line lint may have checked or not, according to the findings that it reported.

        If all are decided, the file need not be parsed. Lint reports a limited number of findings of a rule in a file.
        If it reported fewer, it has reported all of them. If it reached the limit, it has not checked the lines after
        the last one.
        """
        lines: dict[tuple[str, str], list[int]] = defaultdict(list)
        for finding in self._other_findings.get(matching_path, ()):
            if finding.task == LINT_TASK and finding.about.tool != "ruff":
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
        self, paths: tuple[bytes, bytes], places: Mapping[ReportedFinding, MatchedLine], contexts: Mapping[str, bytes]
    ) -> FileFindings:
        content = self._trees.content(opposite_side(self._side), paths[1]) or b""
        expected_findings = [(place.line, *finding.code, finding.about.message) for finding, place in places.items()]
        return paths[1], content, contexts, expected_findings, self._may_be_noted_or_broken[paths]
