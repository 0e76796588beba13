"""What became of what two batches tell besides findings: read for each task, and compared kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from codebatch.compare.absence.file_selection import FileSelectionDiff
from codebatch.compare.absence.reasons import AbsenceReasons
from codebatch.compare.batches import records_unlike
from codebatch.compare.differences import Change, Thing
from codebatch.compare.duplicates import compare_copies
from codebatch.compare.edges import compare_edges
from codebatch.compare.matching.trees import Side, TreeComparison
from codebatch.compare.metrics import OF_TREES, ImplicitZeroMetric, compare_metrics
from codebatch.compare.states import Reason
from codebatch.compare.symbols import compare_symbols
from codebatch.compare.tree_files import compare_files
from codebatch.model.record import Duplicate, Edge, Metric, Symbol
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords

_Compare = Callable[[TreeComparison, str], Iterator[Change]]


def compare_kind(trees: TreeComparison, kind: str, tasks: Iterable[str]) -> Iterator[Change]:
    """What became of the records of a kind that some tasks give, and of equal ones that were read.

    Files are those of the snapshots. Raises StoreCorrupt.
    """
    if kind == "file":
        choices = FileSelectionDiff(trees)
        for row in compare_files(*trees.unlike, trees.moved):
            side: Side = "new" if row.new is None else "old"
            alone = row.old if row.new is None else row.new if row.old is None else None
            is_left_out = alone is not None and choices.is_left_out(side, alone.path_bytes)
            yield row._replace(state="not_comparable", reason="excluded") if is_left_out else row
        return
    for task in tasks:
        yield from _with_reasons(trees, task, list(_BY_TASK[kind](trees, task)))


def _with_reasons(trees: TreeComparison, task: str, rows: Sequence[Change]) -> Iterator[Change]:
    """Rows as they are, but what need not be on the other side is not comparable where it is missing there.

    So is a number of a function, or the greatest one of a file, where one of the two is of a part of the file alone.
    """
    gone = [each for row in rows if row.old and is_missing(row.new) for each in _places(row.old)]
    come = [each for row in rows if row.new and is_missing(row.old) for each in _places(row.new)]
    both = [row.old for row in rows if row.old and _is_of_tree(row)]
    of_gone = AbsenceReasons(trees, "old", paths=[each.path_bytes for each in (*gone, *both)])
    of_come = AbsenceReasons(trees, "new", paths=[each.path_bytes for each in come])
    for row in rows:
        reason: Reason | None = None
        if row.old and is_missing(row.new):
            reason = next(filter(None, (of_gone.of_task(task, each) for each in _places(row.old))), None)
        elif row.new and is_missing(row.old):
            reason = next(filter(None, (of_come.of_task(task, each) for each in _places(row.new))), None)
        elif row.old and _is_of_tree(row) and of_gone.is_in_part(row.old.path_bytes):
            reason = "partially_parsed"
        if reason is None:
            yield row
        else:
            old, new = (None if is_missing(each) else each for each in (row.old, row.new))
            yield row._replace(state="not_comparable", old=old, new=new, reason=reason)


def _places(thing: Thing) -> list[Thing]:
    """A record, and where it is of a copied block, that block at its other place."""
    if not isinstance(thing, Duplicate):
        return [thing]
    other = replace(thing, path=thing.other_path, path_b64=thing.other_path_b64, line=thing.other_line)
    return [thing, other] if thing.other_path or thing.other_path_b64 else [thing]


def _is_of_tree(row: Change) -> bool:
    """Tell whether a number worsened or improved that follows from the file's tree."""
    return row.state in ("worsened", "improved") and isinstance(row.old, Metric) and row.old.metric in OF_TREES


def _metrics(trees: TreeComparison, task: str) -> Iterator[Change]:
    return compare_metrics(*records_unlike(trees.old, trees.new, task, Metric), trees)


def _symbols(trees: TreeComparison, task: str) -> Iterator[Change]:
    def written(side: Side, symbol: Symbol) -> bytes:
        lines = trees.lines_of(side, symbol.path_bytes)[max(symbol.line - 1, 0) : symbol.end_line]
        return b"".join(b"".join(lines).split())

    return compare_symbols(*records_unlike(trees.old, trees.new, task, Symbol), trees, written)


def _edges(trees: TreeComparison, task: str) -> Iterator[Change]:
    return compare_edges(*records_unlike(trees.old, trees.new, task, Edge), trees)


def _copies(trees: TreeComparison, task: str) -> Iterator[Change]:
    return compare_copies(*records_unlike(trees.old, trees.new, task, Duplicate), trees)


_BY_TASK: Mapping[str, _Compare] = {"metric": _metrics, "symbol": _symbols, "edge": _edges, "duplicate": _copies}
COMPARED_KINDS = (*_BY_TASK, "file")


def is_missing(thing: Thing | None) -> bool:
    """Whether the batch has no record of it."""
    return thing is None or isinstance(thing, ImplicitZeroMetric)


def groups_of(records: BatchRecords, tasks: Iterable[str], asked: RecordFilter) -> set[str]:
    """The groups of copies of which a record is asked for. Raises StoreCorrupt."""
    return {str(each["group"]) for task in tasks for each in records.iter_records(task, asked, is_beside=True)}
