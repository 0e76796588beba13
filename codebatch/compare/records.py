"""Comparison of all records except findings. Records of different tasks or kinds are never compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from codebatch.compare.absence.file_selection import FileSelectionDiff
from codebatch.compare.absence.reasons import AbsenceReasons
from codebatch.compare.batches import differing_records, read_items
from codebatch.compare.differences import Change, ComparedRecord
from codebatch.compare.duplicates import compare_duplicates
from codebatch.compare.edges import compare_edges
from codebatch.compare.matching.trees import Side, TreeComparison
from codebatch.compare.metrics import SYNTAX_TREE_METRICS, ImplicitZeroMetric, compare_metrics
from codebatch.compare.moved_functions import MeasuredFunction
from codebatch.compare.states import AbsenceReason
from codebatch.compare.symbols import compare_symbols
from codebatch.compare.tree_files import compare_files
from codebatch.model.record import Duplicate, Edge, Metric, Symbol
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords

_RecordComparer = Callable[[TreeComparison, str], Iterator[Change]]


def compare_kind(trees: TreeComparison, kind: str, tasks: Iterable[str]) -> Iterator[Change]:
    """Yield the changes of records of a kind, for some tasks.

    Unchanged records are included if they had to be read. Records of kind `file` come from the snapshots, not from
    tasks. Raises StoreCorrupt.
    """
    if kind == "file":
        selections = FileSelectionDiff(trees)
        for row in compare_files(*trees.differing_files, trees.moved_files):
            side: Side = "new" if row.new is None else "old"
            only_record = row.old if row.new is None else row.new if row.old is None else None
            is_left_out = only_record is not None and selections.is_excluded_by(side, only_record.path_bytes)
            yield row._replace(state="not_comparable", reason="not_checked") if is_left_out else row
        return
    for task in tasks:
        yield from _with_reasons(trees, task, list(_COMPARERS_BY_KIND[kind](trees, task)))


def _with_reasons(trees: TreeComparison, task: str, rows: Sequence[Change]) -> Iterator[Change]:
    """Yield the changes. If a change is not comparable, yield it with this state and a reason.

    A change is not comparable if the record may be missing for a reason other than a change of the source. A metric is
    also not comparable if the file was only partially parsed in one batch.
    """
    removed = [record for row in rows if row.old and is_absent_record(row.new) for record in _both_locations(row.old)]
    added = [record for row in rows if row.new and is_absent_record(row.old) for record in _both_locations(row.new)]
    both = [row.old for row in rows if row.old and _depends_on_syntax_tree(row)]
    removed_reasons = AbsenceReasons(trees, "old", paths=[record.path_bytes for record in (*removed, *both)])
    added_reasons = AbsenceReasons(trees, "new", paths=[record.path_bytes for record in added])
    for row in rows:
        reason: AbsenceReason | None = None
        if row.old and is_absent_record(row.new):
            reason = next(
                filter(
                    None, (removed_reasons.task_absence_reason(task, record) for record in _both_locations(row.old))
                ),
                None,
            )
        elif row.new and is_absent_record(row.old):
            reason = next(
                filter(None, (added_reasons.task_absence_reason(task, record) for record in _both_locations(row.new))),
                None,
            )
        elif row.old and _depends_on_syntax_tree(row) and removed_reasons.is_partially_parsed_once(row.old.path_bytes):
            reason = "not_checked"
        if reason is None:
            yield row
        else:
            old, new = (None if is_absent_record(record) else record for record in (row.old, row.new))
            yield row._replace(state="not_comparable", old=old, new=new, reason=reason)


def _both_locations(compared: ComparedRecord) -> list[ComparedRecord]:
    """Return a record in a list. For a duplicate block, add a copy at its other location."""
    if not isinstance(compared, Duplicate):
        return [compared]
    other = replace(compared, path=compared.other_path, path_b64=compared.other_path_b64, line=compared.other_line)
    return [compared, other] if compared.other_path or compared.other_path_b64 else [compared]


def _depends_on_syntax_tree(row: Change) -> bool:
    """Return whether a change is a worsened or improved metric that is computed from the syntax tree."""
    return (
        row.state in ("worsened", "improved") and isinstance(row.old, Metric) and row.old.metric in SYNTAX_TREE_METRICS
    )


def _compare_metrics(trees: TreeComparison, task: str) -> Iterator[Change]:
    return compare_metrics(
        *differing_records(trees.old, trees.new, task, Metric), trees, _FunctionBodies(trees).read_body
    )


class _FunctionBodies:
    """The lines of functions below their names. Symbol records have the last line of each function."""

    def __init__(self, trees: TreeComparison) -> None:
        self._trees = trees
        self._ends: dict[tuple[Side, bytes], dict[str, list[Symbol]]] = {}

    def read_body(self, function: MeasuredFunction) -> Sequence[bytes]:
        """Return the lines of a function below its name, without white space. They are empty if unknown."""
        side, place = function.side, (function.side, function.path)
        if place not in self._ends:
            records = self._trees.batch_records(side)
            items = records.find_items([function.path]).values() if "symbols" in records.task_names else ()
            self._ends[place] = defaultdict(list)
            for symbol in chain(*read_items(records, "symbols", items, Symbol).values()) if items else ():
                self._ends[place][symbol.qualified].append(symbol)
        around = (each for each in self._ends[place][function.symbol] if each.line <= function.line <= each.end_line)
        innermost = max(around, key=lambda symbol: symbol.line, default=None)
        if innermost is None:
            return ()
        lines = self._trees.file_lines(side, function.path)[function.line : innermost.end_line]
        return [text for line in lines if (text := b"".join(line.split()))]


def _compare_symbols(trees: TreeComparison, task: str) -> Iterator[Change]:
    def written(side: Side, symbol: Symbol) -> bytes:
        lines = trees.file_lines(side, symbol.path_bytes)[max(symbol.line - 1, 0) : symbol.end_line]
        return b"".join(b"".join(lines).split())

    return compare_symbols(*differing_records(trees.old, trees.new, task, Symbol), trees, written)


_COMPARERS_BY_KIND: Mapping[str, _RecordComparer] = {
    "metric": _compare_metrics,
    "symbol": _compare_symbols,
    "edge": lambda trees, task: compare_edges(*differing_records(trees.old, trees.new, task, Edge), trees),
    "duplicate": lambda trees, task: compare_duplicates(
        *differing_records(trees.old, trees.new, task, Duplicate), trees
    ),
}
COMPARED_KINDS = (*_COMPARERS_BY_KIND, "file")


def is_absent_record(compared: ComparedRecord | None) -> bool:
    """Return whether a batch has no such record. A metric that is implicitly 0 has none."""
    return compared is None or isinstance(compared, ImplicitZeroMetric)


def matching_groups(records: BatchRecords, tasks: Iterable[str], record_filter: RecordFilter) -> set[str]:
    """Return the duplicate groups with at least one record that passes a filter. Raises StoreCorrupt."""
    return {
        str(record["group"])
        for task in tasks
        for record in records.iter_records(task, record_filter, is_auxiliary=True)
    }
