"""Why one batch need not have a finding that the other one has, though nobody made or mended it (states.Reason)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial

from codebatch.compare.absence.file_selection import FileSelectionDiff
from codebatch.compare.absence.suppression_comments import OtherLine, places_there, silenced
from codebatch.compare.absence.unreported import UnreportedFindings
from codebatch.compare.batches import read_items
from codebatch.compare.matching.finding_pairs import ReportedFinding, ToldByPath
from codebatch.compare.matching.trees import Side, TreeComparison, other_side
from codebatch.compare.rules import LINT, Switch, switch_of
from codebatch.compare.states import Reason
from codebatch.errors import StoreCorrupt
from codebatch.model.analysis.imports import way_of
from codebatch.model.entry import display_path
from codebatch.model.plan import PlannedTask
from codebatch.model.record import File, Located, Metric
from codebatch.query.sources.records import BatchRecords
from codebatch.scheduling.outcome_counts import OutcomeCounts

_PARSE = "parse"
_NONE: ToldByPath = {}
# In files of these classes few rules look, or none.
_PASSED_OVER = frozenset(("binary", "huge", "minified", "generated", "vendored"))


class AbsenceReasons:
    """Asked of all findings of one batch that are not in the other, of which `there` are those that the first has not
    just so; of other records by their tasks and `paths`.
    """

    def __init__(
        self,
        trees: TreeComparison,
        side: Side,
        left: Iterable[ReportedFinding] = (),
        there: ToldByPath = _NONE,
        *,
        paths: Iterable[bytes] = (),
    ) -> None:
        self._trees = trees
        self._side = side
        self._mine, self._other = BatchContext(trees.batch(side)), BatchContext(trees.batch(other_side(side)))
        self._files: dict[bytes, list[ReportedFinding]] = defaultdict(list)
        self._alike: dict[tuple[str, bytes], bool] = {}
        self._has_other: dict[str, bool] = {}
        self._withheld = UnreportedFindings(trees, side, there)
        self._choices = FileSelectionDiff(trees)
        for told in left:
            self._files[told.path].append(told)
        for path in dict.fromkeys((*self._files, *paths)):
            its_other = trees.path_in_other(side, path)
            if its_other is not None:
                self._mine.paths.append(path)
                self._other.paths.append(its_other)

    def found(self) -> list[tuple[ReportedFinding, Reason | None]]:
        """Of each finding the reason, None where there is none. Raises StoreCorrupt."""
        reasons: dict[ReportedFinding, Reason | None] = {}
        for path, left in self._files.items():
            its_other = self._trees.path_in_other(self._side, path)
            if not self._other.looks_at(path if its_other is None else its_other):
                reasons.update(dict.fromkeys(left, "path"))
            elif its_other is None:
                reasons.update(dict.fromkeys(left, self._why_alone(path)))
            else:
                reasons.update(self._of_file(path, its_other, left))
        self._withheld.ask(self._other.tasks.get(LINT), self._other.every_context)
        return [(told, self._withheld.reasons.get(told, reason)) for told, reason in reasons.items()]

    def of_task(self, task: str, record: Located) -> Reason | None:
        """Why a task need not say in the other batch what it says in this one. Raises StoreCorrupt."""
        path = record.path_bytes
        its_other = self._trees.path_in_other(self._side, path)
        if not self._other.looks_at(path if its_other is None else its_other):
            return "path"
        if its_other is None:
            return self._why_alone(path)
        if task not in self._other.records.task_names:
            return "task"
        if not self._other.has_result(task, its_other):
            return "failed"
        is_of_file = isinstance(record, Metric) and not record.symbol
        line = getattr(record, "line", 0)
        has_line = partial(self._trees.has_line, self._side, path, its_other, line)
        if self._is_passed_over(path, its_other, has_line):
            return "skipped"
        if self._is_broken(path, its_other) and (is_of_file or has_line()):
            return "partially_parsed"
        return "tool" if self._has_other_tool(task) else None

    def is_in_part(self, path: bytes) -> bool:
        """Whether a file is parsed in part in one of the batches, and as a whole in the other. Raises StoreCorrupt."""
        its_other = self._trees.path_in_other(self._side, path)
        mine, other = self._mine.file(path), None if its_other is None else self._other.file(its_other)
        return mine is not None and other is not None and (_is_broken(mine, other) or _is_broken(other, mine))

    def _why_alone(self, path: bytes) -> Reason | None:
        """Why a file of this batch may be in the other tree, though its snapshot has none that is this one."""
        if self._choices.is_left_out(other_side(self._side), path):
            return "excluded"
        return "lost" if self._trees.may_have_moved else None

    def _is_passed_over(self, path: bytes, its_other: bytes, has_line: Callable[[], bool]) -> bool:
        """Whether few look in the other batch at such a file, or others at a line that both have."""
        mine, other = self._mine.file(path), self._other.file(its_other)
        if mine is None or other is None:
            return False
        if _passes_over(other) and not _passes_over(mine):
            return True
        return mine.lang != other.lang and (other.parse == "unsupported" or has_line())

    def _is_broken(self, path: bytes, its_other: bytes) -> bool:
        mine, other = self._mine.file(path), self._other.file(its_other)
        return mine is not None and other is not None and _is_broken(other, mine)

    def _of_file(
        self, path: bytes, its_other: bytes, left: Sequence[ReportedFinding]
    ) -> Iterator[tuple[ReportedFinding, Reason | None]]:
        places = places_there(self._trees, self._side, path, its_other, [told.about.line for told in left])
        notes = silenced(self._trees, self._side, path, its_other, left, places, self._other.every_context)
        open_: dict[ReportedFinding, OtherLine] = {}
        for told, place, is_silenced in zip(left, places, notes, strict=True):
            if told.task not in self._other.records.task_names:
                yield told, "task"
            elif not self._other.has_result(told.task, its_other):
                yield told, "failed"
            elif self._is_off(told, its_other):
                yield told, "rule_off"
            elif is_silenced:
                yield told, "suppressed"
            elif self._is_passed_over(path, its_other, partial(getattr, place, "is_same")):
                yield told, "skipped"
            elif told.about.tool != "ruff" and place.is_same and self._is_broken(path, its_other):
                yield told, "partially_parsed"
            else:
                open_[told] = place
                yield told, self._otherwise(told, its_other, place)
        of_lint = {told: place for told, place in open_.items() if told.task == LINT}
        other = self._other.file(its_other)
        self._withheld.add(path, its_other, of_lint, has_errors=other is None or other.parse == "errors")

    def _is_off(self, told: ReportedFinding, its_other: bytes) -> bool:
        """Whether the rule that found something is off at the file in the other batch, or none there at all."""
        is_off = self._other.has_off(told.task, told.code, its_other)
        return self._mine.has_off(told.task, told.code, told.path) is not None if is_off is None else is_off

    def _otherwise(self, told: ReportedFinding, its_other: bytes, place: OtherLine) -> Reason | None:
        """Whether it was looked for by something else, or in another way."""
        if self._has_other_tool(told.task):
            return "tool"
        if not place.is_same:
            return None
        if (told.task, told.path) not in self._alike:
            mine, others = self._mine.needed_for(told.task), self._other.needed_for(told.task)
            self._alike[told.task, told.path] = all(
                way_of(task) == way_of(others[name]) for name, task in mine.items()
            ) and self._mine.contexts(told.task, told.path) == self._other.contexts(told.task, its_other)
        return None if self._alike[told.task, told.path] else "configuration"

    def _has_other_tool(self, task: str) -> bool:
        if task not in self._has_other:
            mine, others = self._mine.needed_for(task), self._other.needed_for(task)
            self._has_other[task] = any(_tool(each) != _tool(others.get(name)) for name, each in mine.items())
        return self._has_other[task]


class BatchContext:
    """What was done in a batch, and how. `paths` are those that are asked for."""

    def __init__(self, records: BatchRecords, paths: Iterable[bytes] = ()) -> None:
        self.records = records
        self.paths = list(paths)
        self._switches: dict[str, Switch | None] = {}
        self._needed: dict[str, dict[str, PlannedTask]] = {}
        self._done: dict[tuple[str, bytes], bool] = {}
        self._tallies: dict[str, OutcomeCounts] = {}

    def looks_at(self, path: bytes) -> bool:
        """Whether a path is of those that it is of."""
        paths = self.records.batch.about.paths
        return not paths or any(path == each or path.startswith(each + b"/") for each in paths)

    def has_result(self, task: str, path: bytes) -> bool:
        """Whether a task came to an end at a file, and did not fail."""
        if task not in self._tallies:
            self._tallies[task] = self.records.source.tally((task,))
        tally = self._tallies[task]
        if tally.planned == tally.results:
            return True
        if task in self.records.source.project_tasks:
            return False
        if (task, path) not in self._done:
            found = self.records.item_records(task, self._item(path))
            is_cancelled = not found and bool(tally.cancelled)
            is_failed = any(record["kind"] == "failure" for record in found or ())
            self._done[task, path] = not (found is None or is_cancelled or is_failed)
        return self._done[task, path]

    def has_off(self, task: str, code: tuple[str, str], path: bytes) -> bool | None:
        """Whether a task has a rule, given by tool and code, off at a path; None where it is none that could be."""
        if task not in self._switches:
            self._switches[task] = switch_of(self.tasks[task])
        is_off = self._switches[task]
        return None if is_off is None else is_off(path, *code)

    def file(self, path: bytes) -> File | None:
        """What a file is; None where no task tells that."""
        return self._files.get(path)

    def needed_for(self, task: str) -> dict[str, PlannedTask]:
        """A task with all that it needs."""
        if task not in self._needed:
            self._needed[task] = {name: self.tasks[name] for name in self.records.plan.needed_for(task)}
        return self._needed[task]

    def contexts(self, task: str, path: bytes) -> Mapping[str, bytes]:
        """What a task, and what it needs, is told of a file besides its content."""
        every = self.every_context(path)
        names = {name for each in self.needed_for(task).values() for name in each.contexts}
        return {name: every.get(name, b"") for name in names}

    def every_context(self, path: bytes) -> Mapping[str, bytes]:
        """What the plan tells of a file besides its content, as far as that is not empty."""
        return self.records.plan.context_of(self._item(path))

    @cached_property
    def tasks(self) -> dict[str, PlannedTask]:
        """The batch's tasks, by name."""
        return {task.name: task for task in self.records.plan.tasks}

    def _item(self, path: bytes) -> int:
        if path not in self._items:
            raise StoreCorrupt(f"a record refers to {display_path(path)}, which is not in {self.records.batch.id}")
        return self._items[path]

    @cached_property
    def _items(self) -> dict[bytes, int]:
        return self.records.find_items(sorted(self.paths))

    @cached_property
    def _files(self) -> dict[bytes, File]:
        if _PARSE not in self.records.task_names:
            return {}
        found = read_items(self.records, _PARSE, self._items.values(), File)
        return {path: files[0] for path, files in found.items()}


def _tool(task: PlannedTask | None) -> object:
    return None if task is None else (task.version, task.implementation_digest, task.tools)


def _passes_over(file: File) -> bool:
    """Whether a file is of a class in which few rules look, or could not be read as what it is."""
    return file.class_ in _PASSED_OVER or file.parse == "skipped"


def is_looked_at_in_part(file: File) -> bool:
    """Whether not all rules look at a file, or not at all of it."""
    return _passes_over(file) or file.parse in ("errors", "unsupported")


def _is_broken(file: File, other: File) -> bool:
    """Whether a file is parsed in part alone that the other is as a whole."""
    return file.parse in ("errors", "partial") and other.parse == "ok"
