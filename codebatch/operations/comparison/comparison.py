"""Comparing two batches: the regressions and improvements of the later one (SPEC.md "Comparison")."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import get_args

import msgspec

from codebatch.compare.absence.reasons import AbsenceReasons
from codebatch.compare.batches import records_of, records_unlike
from codebatch.compare.differences import Change, Counts, Thing, place_of
from codebatch.compare.matching.finding_pairs import ReportedFinding, ToldByPath, match_findings
from codebatch.compare.matching.trees import TreeComparison
from codebatch.compare.records import COMPARED_KINDS, compare_kind, groups_of, is_missing
from codebatch.compare.states import State, state_of_new, state_of_old, state_of_pair
from codebatch.compare.tree_files import of_entry
from codebatch.errors import InvalidInput
from codebatch.model.record import Diagnostic, Duplicate
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.query.answers.counting import count_records
from codebatch.query.completeness import check_kinds, completeness, tasks_that_give
from codebatch.query.filters.arguments import refuse_unknown
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords
from codebatch.system.processes.garbage_collector import collector_paused

KINDS = ("diagnostic", *COMPARED_KINDS)
"""What can be compared."""

STATES: tuple[State, ...] = get_args(State)
CHANGED = tuple(state for state in STATES if state != "unchanged")

_ALL = RecordFilter()


class Comparison:
    """The changes between two batches. They are computed when they are first used.

    Example:

        changes = store.batch("latest").compare("latest~1").differences(("new",))
    """

    def __init__(
        self, old: Answer[None], new: Answer[None], kinds: Collection[str], asked: RecordFilter, task: str | None
    ) -> None:
        self.old = old
        self.new = new
        self.trees = TreeComparison(old.question.records, new.question.records)
        self.kinds = kinds
        self._asked = asked
        self._asks_all = asked == _ALL
        self._task = task

    @property
    def is_complete(self) -> bool:
        """Whether both batches, and all files that were read for the comparison, are complete."""
        return self.old.is_complete and self.new.is_complete and not self.trees.lost

    def differences(self, states: Collection[State] = CHANGED) -> Iterator[Change]:
        """Return the changes in the given states, sorted by record type, path and location.

        Removed records are sorted by their old location. If `unchanged` is among the states, unchanged findings are
        included. Raises InvalidInput or StoreCorrupt.
        """
        found = [each for each in chain.from_iterable(self._by_kind.values()) if each.state in states]
        found += self._untold() if "unchanged" in states else ()
        found.sort(key=place_of)
        return iter(found) if self._asks_all else filter(self._is_asked, found)

    @cached_property
    def counts(self) -> Counts:
        """The number of changes in each state. Raises InvalidInput or StoreCorrupt."""
        found: Counter[State] = Counter()
        for kind, every in self._by_kind.items():
            asked = every if self._asks_all else filter(self._is_asked, every)
            found.update([each.state for each in asked])
            told = [each for each in every if not is_missing(each.new)]
            if not self._asks_all:
                told = [each for each in told if self._passes(self.trees.new, each.new)]
            found["unchanged"] += self._count_beside(kind, told)
        return {state: found[state] for state in STATES}

    def _count_beside(self, kind: str, told: Sequence[Change]) -> int:
        """How much of a kind is in the new batch besides what is told, nothing of which was touched."""
        new, asked = self.trees.new, msgspec.structs.replace(self._asked, kinds=(kind,))
        names = new.choose_tasks(self._task)
        if kind == "file":
            every = len(new.items) if self._asks_all else sum(self._passes(new, of_entry(each)) for each in new.items)
            return every - len(told)
        if kind == "duplicate":
            return len(
                groups_of(new, names, asked) - {each.new.group for each in told if isinstance(each.new, Duplicate)}
            )
        return count_records(new, names, asked, "kind").total - len(told)

    def lines(self, path: bytes) -> Sequence[int] | None:
        """Return the pairs of matching lines of a file in the two batches.

        Return None if the file does not exist in one of the batches or its content is missing. Raises StoreCorrupt.
        """
        old = self.trees.old_path(path)
        return None if old is None else self.trees.lines("new", path, old)

    @cached_property
    def _by_kind(self) -> dict[str, list[Change]]:
        """All that is of items of which the two do not say the same, be it asked for or not."""
        return {kind: [*self._of_kind(kind)] for kind in sorted(self.kinds)}

    def _of_kind(self, kind: str) -> Iterator[Change]:
        return self._paired_diagnostics() if kind == "diagnostic" else compare_kind(self.trees, kind, self._tasks)

    def _is_asked(self, each: Change) -> bool:
        return self._asks_all or self._passes(self.trees.old, each.old) or self._passes(self.trees.new, each.new)

    def _passes(self, records: BatchRecords, record: Thing | None) -> bool:
        if record is None or self._asks_all:
            return record is not None
        return self._asked.matches(msgspec.to_builtins(record), records.languages_for(self._asked))

    def _paired_diagnostics(self) -> Iterator[Change]:
        with collector_paused():
            paired = match_findings(self.trees, *self._told)
        for pair in paired.pairs:
            old, new = pair.old.about, pair.new.about
            yield Change(state_of_pair(old, new, pair.by), old, new, pair.by)
        for told, reason in AbsenceReasons(self.trees, "old", paired.old, self._told[1]).found():
            is_gone = self.trees.new_path(told.path) is None
            yield Change(state_of_old(reason, is_file_gone=is_gone), told.about, None, reason=reason)
        for told, reason in AbsenceReasons(self.trees, "new", paired.new, self._told[0]).found():
            yield Change(state_of_new(reason), None, told.about, reason=reason)

    def _untold(self) -> Iterator[Change]:
        """The findings of items of which the two say the same."""
        for task in self._tasks if "diagnostic" in self.kinds else ():
            told = self._told[1]
            for path, found in records_of(self.trees.new, task, Diagnostic).items():
                if all(each.task != task for each in told.get(path, ())):
                    yield from (Change("unchanged", about, about, "line") for about in found)

    @cached_property
    def _told(self) -> tuple[ToldByPath, ToldByPath]:
        """The findings of both at the paths of which a task does not say the same."""
        told: tuple[dict[bytes, list[ReportedFinding]], dict[bytes, list[ReportedFinding]]] = (
            defaultdict(list),
            defaultdict(list),
        )
        for task in self._tasks:
            sides = records_unlike(self.trees.old, self.trees.new, task, Diagnostic)
            for side, by_path in zip(told, sides, strict=True):
                for path, found in by_path.items():
                    side[path] += [ReportedFinding(path, task, about) for about in found]
        return told

    @property
    def _tasks(self) -> list[str]:
        """Those of either batch that are asked for."""
        every = dict.fromkeys((*self.trees.old.task_names, *self.trees.new.task_names))
        return [task for task in every if self._task in (None, task)]


def kinds_of(asked: RecordFilter) -> tuple[str, ...]:
    """The kinds that a filter names, be it by asking for what one kind alone has; diagnostics where it names none."""
    return asked.named_kinds or ("diagnostic",)


def of_files_alone(kinds: Collection[str]) -> bool:
    """Whether what is compared is in snapshots, without any batch."""
    return {*kinds} == {"file"}


def compare(
    old: BatchQuery,
    new: BatchQuery,
    kinds: Collection[str] = ("diagnostic",),
    *,
    asked: RecordFilter | None = None,
    task: str | None = None,
) -> Comparison:
    """Compare two batches, the later one `new`, for some kinds of records. Raises InvalidInput or StoreCorrupt.

    The result has the rows of which either record passes the filter. Call `refuse_strangers` before using it.
    """
    refuse_unknown("kind", kinds, KINDS)
    asked = (asked or RecordFilter()).check()
    return Comparison(_stand(old, kinds, task), _stand(new, kinds, task), kinds, asked, task)


def refuse_strangers(comparison: Comparison) -> None:
    """Raise InvalidInput if the batches are of different projects.

    That is so if their trees have no file in common and they are not of commits of one work tree.
    """
    old, new = comparison.old.question.batch, comparison.new.question.batch
    are_of_one_work_tree = old.about.sources == new.about.sources and bool(old.about.commit and new.about.commit)
    if comparison.trees.are_strangers and not are_of_one_work_tree:
        raise InvalidInput(
            f"{old.id} and {new.id} are of different projects: they have no file path and no file content in common",
            hint="list batches with their sources: codebatch batch list",
        )


def _stand(question: BatchQuery, kinds: Collection[str], task: str | None) -> Answer[None]:
    """How complete a batch is for what is compared."""
    records = question.records
    names = records.choose_tasks(task)
    kinds = [kind for kind in kinds if kind != "file"]
    check_kinds(lambda: question.catalogue, records, kinds)
    needed = () if not kinds else names if records.source.is_done else tasks_that_give(question.catalogue, names, kinds)
    return Answer(question=question, found=None, whole=completeness(records, needed))
