"""Reasons, other than changes of the source, why one batch lacks a finding of the other (`states.Reason`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from codebatch.compare.absence.file_selection import FileSelectionDiff
from codebatch.compare.absence.suppression_comments import MatchedLine, find_suppressed, matching_lines
from codebatch.compare.absence.unreported import UnreportedFindings
from codebatch.compare.batches import read_items
from codebatch.compare.matching.finding_pairs import FindingsByPath, ReportedFinding
from codebatch.compare.matching.trees import Side, TreeComparison, opposite_side
from codebatch.compare.rules import LINT_TASK, make_rule_switch
from codebatch.compare.states import AbsenceReason
from codebatch.errors import StoreCorrupt
from codebatch.model.analysis.imports import task_configuration
from codebatch.model.entry import display_path
from codebatch.model.plan import PlannedTask
from codebatch.model.record import BaseRecord, File, Metric
from codebatch.plugins.worker_services import RuleSwitch
from codebatch.query.sources.records import BatchRecords
from codebatch.scheduling.outcome_counts import OutcomeCounts

_PARSE_TASK = "parse"
_NO_REASONS: FindingsByPath = {}
# Only few rules, or none, check files of these classes.
_RARELY_CHECKED_CLASSES = frozenset(("binary", "huge", "minified", "generated", "vendored"))


class Absence(NamedTuple):
    """A finding that the other batch lacks, and the reason. If a change of the source removed the finding, it is None.

    `is_suppressed` is set if a comment in the other batch suppresses the finding, or if its rule is off there.
    """

    finding: ReportedFinding
    reason: AbsenceReason | None
    is_suppressed: bool


class AbsenceReasons:
    """The reasons why the other batch lacks records of one batch (`side`).

    For findings, `left` are the findings of this batch without a match. `there` are the findings of the other batch by
    path, in files whose findings differ. For records that are not findings, `paths` are the paths of their files.
    """

    def __init__(
        self,
        trees: TreeComparison,
        side: Side,
        unmatched: Iterable[ReportedFinding] = (),
        other_findings: FindingsByPath = _NO_REASONS,
        *,
        paths: Iterable[bytes] = (),
    ) -> None:
        self._trees = trees
        self._side = side
        self._own_batch, self._other_batch = (
            BatchContext(trees.batch_records(side)),
            BatchContext(trees.batch_records(opposite_side(side))),
        )
        self._files: dict[bytes, list[ReportedFinding]] = defaultdict(list)
        self._is_way_equal: dict[tuple[str, bytes], bool] = {}
        self._has_other: dict[str, bool] = {}
        self._rules_off: set[ReportedFinding] = set()
        self._unreported = UnreportedFindings(trees, side, other_findings)
        self._selections = FileSelectionDiff(trees)
        for finding in unmatched:
            self._files[finding.path].append(finding)
        for path in dict.fromkeys((*self._files, *paths)):
            matching_path = trees.matching_path(side, path)
            if matching_path is not None:
                self._own_batch.paths.append(path)
                self._other_batch.paths.append(matching_path)

    def absences(self) -> list[Absence]:
        """Return each unmatched finding with the reason why the other batch lacks it. Raises StoreCorrupt."""
        reasons: dict[ReportedFinding, AbsenceReason | None] = {}
        for path, unmatched in self._files.items():
            matching_path = self._trees.matching_path(self._side, path)
            reason = self._missing_file_reason(path, matching_path)
            if reason is not None or matching_path is None:
                reasons.update(dict.fromkeys(unmatched, reason))
            else:
                reasons.update(self._file_reasons(path, matching_path, unmatched))
        self._unreported.compute_reasons(self._other_batch.tasks.get(LINT_TASK), self._other_batch.every_context)
        reasons.update(self._unreported.reasons)
        return [
            Absence(finding, reason, is_suppressed=reason == "suppressed" or finding in self._rules_off)
            for finding, reason in reasons.items()
        ]

    def task_absence_reason(self, task: str, record: BaseRecord) -> AbsenceReason | None:
        """Return the reason why the other batch has no such record of a task. Raises StoreCorrupt.

        None means that only an edit of the files can explain it.
        """
        path = record.path_bytes
        matching_path = self._trees.matching_path(self._side, path)
        reason = self._missing_file_reason(path, matching_path)
        if reason is not None or matching_path is None:
            return reason
        is_of_file = isinstance(record, Metric) and not record.symbol
        has_line = partial(self._trees.has_line, self._side, path, matching_path, getattr(record, "line", 0))
        if not self._other_batch.has_result(task, matching_path) or self._is_skipped(path, matching_path, has_line):
            return "not_checked"
        if self._is_unparsed_in_other(path, matching_path) and (is_of_file or has_line()):
            return "not_checked"
        return "configuration" if self._has_tool_changed(task) else None

    def is_partially_parsed_once(self, path: bytes) -> bool:
        """Return whether a file is partially parsed in one batch and fully parsed in the other. Raises StoreCorrupt."""
        matching_path = self._trees.matching_path(self._side, path)
        mine, other = (
            self._own_batch.file(path),
            None if matching_path is None else self._other_batch.file(matching_path),
        )
        return (
            mine is not None
            and other is not None
            and (_is_only_one_broken(mine, other) or _is_only_one_broken(other, mine))
        )

    def _missing_file_reason(self, path: bytes, matching_path: bytes | None) -> AbsenceReason | None:
        """Return the reason why the other batch may lack a file although the file existed, or None.

        `matching_path` is the path of the matching file in the other batch, or None if no file matches.
        """
        if not self._other_batch.covers(path if matching_path is None else matching_path):
            return "not_checked"
        if matching_path is None and self._selections.is_excluded_by(opposite_side(self._side), path):
            return "not_checked"
        return "unknown" if matching_path is None and self._trees.may_have_moved else None

    def _is_skipped(self, path: bytes, matching_path: bytes, has_line: Callable[[], bool]) -> bool:
        """Return whether the other batch checks a finding's file with fewer rules or with other rules.

        Files of some classes are checked with fewer rules, files of another language with other rules. A different
        language counts in two cases: both files have the line of the finding, or the other language is not supported.
        """
        mine, other = self._own_batch.file(path), self._other_batch.file(matching_path)
        if mine is None or other is None:
            return False
        if _is_rarely_checked(other) and not _is_rarely_checked(mine):
            return True
        return mine.lang != other.lang and (other.parse == "unsupported" or has_line())

    def _is_unparsed_in_other(self, path: bytes, matching_path: bytes) -> bool:
        mine, other = self._own_batch.file(path), self._other_batch.file(matching_path)
        return mine is not None and other is not None and _is_only_one_broken(other, mine)

    def _file_reasons(
        self, path: bytes, matching_path: bytes, unmatched: Sequence[ReportedFinding]
    ) -> Iterator[tuple[ReportedFinding, AbsenceReason | None]]:
        places = matching_lines(
            self._trees, self._side, path, matching_path, [finding.about.line for finding in unmatched]
        )
        suppressions = find_suppressed(
            self._trees, self._side, path, matching_path, unmatched, places, self._other_batch.every_context
        )
        unexplained: dict[ReportedFinding, MatchedLine] = {}
        for finding, place, is_suppressed in zip(unmatched, places, suppressions, strict=True):
            if not self._other_batch.has_result(finding.task, matching_path):
                yield finding, "not_checked"
            elif self._is_rule_off(finding, matching_path):
                self._rules_off.add(finding)
                yield finding, "configuration"
            elif is_suppressed:
                yield finding, "suppressed"
            elif self._is_skipped(path, matching_path, partial(getattr, place, "is_same")) or (
                finding.about.tool != "ruff" and place.is_same and self._is_unparsed_in_other(path, matching_path)
            ):
                yield finding, "not_checked"
            else:
                unexplained[finding] = place
                yield finding, "configuration" if self._has_line_changed(finding, matching_path, place) else None
        lint_places = {finding: place for finding, place in unexplained.items() if finding.task == LINT_TASK}
        other = self._other_batch.file(matching_path)
        self._unreported.add(path, matching_path, lint_places, has_errors=other is None or other.parse == "errors")

    def _is_rule_off(self, finding: ReportedFinding, matching_path: bytes) -> bool:
        """Return whether the rule of a finding is off for the file in the other batch.

        A rule that only the configuration of this batch knows counts as off in the other batch.
        """
        is_off = self._other_batch.is_rule_off(finding.task, finding.code, matching_path)
        return (
            self._own_batch.is_rule_off(finding.task, finding.code, finding.path) is not None
            if is_off is None
            else is_off
        )

    def _has_line_changed(self, finding: ReportedFinding, matching_path: bytes, place: MatchedLine) -> bool:
        """Return whether the other batch used another version of the tool.

        If the line of a finding is unchanged, another configuration of the tool counts too.
        """
        if self._has_tool_changed(finding.task) or not place.is_same:
            return self._has_tool_changed(finding.task)
        if (finding.task, finding.path) not in self._is_way_equal:
            own_tasks, other_tasks = (
                self._own_batch.needed_for(finding.task),
                self._other_batch.needed_for(finding.task),
            )
            self._is_way_equal[finding.task, finding.path] = all(
                task_configuration(task) == task_configuration(other_tasks[name]) for name, task in own_tasks.items()
            ) and self._own_batch.contexts(finding.task, finding.path) == self._other_batch.contexts(
                finding.task, matching_path
            )
        return not self._is_way_equal[finding.task, finding.path]

    def _has_tool_changed(self, task: str) -> bool:
        if task not in self._has_other:
            own_tasks, other_tasks = self._own_batch.needed_for(task), self._other_batch.needed_for(task)
            self._has_other[task] = any(
                _tool_versions(planned) != _tool_versions(other_tasks.get(name)) for name, planned in own_tasks.items()
            )
        return self._has_other[task]


class BatchContext:
    """The tasks and files of a batch. `paths` are the paths of the files that will be queried."""

    def __init__(self, records: BatchRecords, paths: Iterable[bytes] = ()) -> None:
        self.records = records
        self.paths = list(paths)
        self._rule_switches: dict[str, RuleSwitch | None] = {}
        self._needed_tasks: dict[str, dict[str, PlannedTask]] = {}
        self._result_items: dict[tuple[str, bytes], bool] = {}
        self._tallies: dict[str, OutcomeCounts] = {}

    def covers(self, path: bytes) -> bool:
        """Return whether the batch covers a path.

        If a batch is restricted to paths, it covers only these paths and everything below them.
        """
        paths = self.records.batch.about.paths
        return not paths or any(path == scope or path.startswith(scope + b"/") for scope in paths)

    def has_result(self, task: str, path: bytes) -> bool:
        """Return whether the batch has a result of a task for a file. A failure is not a result."""
        if task not in self.records.task_names:
            return False
        if task not in self._tallies:
            self._tallies[task] = self.records.source.count_outcomes((task,))
        tally = self._tallies[task]
        if tally.planned == tally.results:
            return True
        if task in self.records.source.project_tasks:
            return False
        if (task, path) not in self._result_items:
            item_records = self.records.item_records(task, self._item_of_path(path))
            is_failed = any(record["kind"] == "failure" for record in item_records or ())
            self._result_items[task, path] = item_records is not None and not is_failed
        return self._result_items[task, path]

    def is_rule_off(self, task: str, code: tuple[str, str], path: bytes) -> bool | None:
        """Return whether the configuration of a task turns off a rule for a path.

        Return None if the configuration does not know the rule. `code` is the tool and the rule ID.
        """
        if task not in self._rule_switches:
            self._rule_switches[task] = make_rule_switch(self.tasks[task])
        is_off = self._rule_switches[task]
        return None if is_off is None else is_off(path, *code)

    def file(self, path: bytes) -> File | None:
        """Return the `file` record of a path, or None if there is none."""
        return self._files.get(path)

    def needed_for(self, task: str) -> dict[str, PlannedTask]:
        """Return a task and all tasks that it needs, by name."""
        if task not in self._needed_tasks:
            self._needed_tasks[task] = {name: self.tasks[name] for name in self.records.plan.needed_for(task)}
        return self._needed_tasks[task]

    def contexts(self, task: str, path: bytes) -> Mapping[str, bytes]:
        """Return the contexts of a file that a task, or a task that it needs, uses.

        A context is a value computed from the snapshot that a task's result may depend on (SPEC.md "Context").
        """
        every_context = self.every_context(path)
        names = {name for planned in self.needed_for(task).values() for name in planned.contexts}
        return {name: every_context.get(name, b"") for name in names}

    def every_context(self, path: bytes) -> Mapping[str, bytes]:
        """Return the contexts of a file, except empty ones."""
        return self.records.plan.item_contexts(self._item_of_path(path))

    @cached_property
    def tasks(self) -> dict[str, PlannedTask]:
        """The tasks of the batch, by name."""
        return {task.name: task for task in self.records.plan.tasks}

    def _item_of_path(self, path: bytes) -> int:
        if path not in self._items:
            raise StoreCorrupt(
                f"a record refers to file {display_path(path)}, which is not in batch {self.records.batch.id}"
            )
        return self._items[path]

    @cached_property
    def _items(self) -> dict[bytes, int]:
        return self.records.find_items(sorted(self.paths))

    @cached_property
    def _files(self) -> dict[bytes, File]:
        if _PARSE_TASK not in self.records.task_names:
            return {}
        files_by_path = read_items(self.records, _PARSE_TASK, self._items.values(), File)
        return {path: files[0] for path, files in files_by_path.items()}


def _tool_versions(task: PlannedTask | None) -> object:
    return None if task is None else (task.version, task.implementation_digest, task.tools)


def _is_rarely_checked(file: File) -> bool:
    """Return whether a file is checked by few rules: because of its class, or because it was not parsed."""
    return file.class_ in _RARELY_CHECKED_CLASSES or file.parse == "skipped"


def is_partially_checked(file: File) -> bool:
    """Return whether some rules do not check a file, or check only a part of it."""
    return _is_rarely_checked(file) or file.parse in ("errors", "unsupported")


def _is_only_one_broken(file: File, other: File) -> bool:
    """Return whether a file is partially parsed and the matching file of the other batch is fully parsed."""
    return file.parse in ("errors", "partial") and other.parse == "ok"
