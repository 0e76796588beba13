"""What matters most of a batch: likely bugs, what is hard to change, copies, import cycles."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from codebatch.application.findings import RuleFindings, by_rule
from codebatch.model.counts import add_counts
from codebatch.model.entry import display_path
from codebatch.model.record import SEVERITIES, Duplicate
from codebatch.query.decoding import decode_lines
from codebatch.query.dependencies import Cycle, Import, Imports, cycles
from codebatch.query.fields import typed
from codebatch.query.file_states import FileStates, file_states
from codebatch.query.filters import RecordFilter, path_bytes
from codebatch.query.records import BatchRecords

COMPLEXITY_MIN = 15
"""Functions of less are not hard to change: SonarSource's limit, who made cognitive complexity. Of languages without it
cyclomatic complexity counts, which McCabe would not have above 10, or 15 with a reason.
"""
EACH_MAX = 8
"""So many of each are in a headline."""

_LIKELY_BUGS = ("error", "warning")

# Of two digits and more: what has less is below the limit, and nearly all are.
_COMPLEX = re.compile(rb'"metric":"(cognitive|complexity)","value":[1-9][0-9]+,"symbol"')
_COGNITIVE = b'"metric":"cognitive"'


class HardFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function: its complexity by a metric, and how many files import its own."""

    path: str
    line: int
    symbol: str
    metric: str
    complexity: int
    dependents: int


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """A block of `lines` code lines that stands at several `places`, and the first two of these."""

    lines: int
    places: int
    path: str
    line: int
    other_path: str
    other_line: int


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """The first of what matters most in a batch, and how many there are of each.

    `bugs` are errors and warnings by rule (findings.py), `minor` counts what weighs less, by severity. `copies` are
    blocks of code that stand at several places, largest first, each told of once. `partial` files were understood in
    part, `broken` have syntax errors.
    """

    bugs: tuple[RuleFindings, ...] = ()
    bugs_count: int = 0
    minor: dict[str, int] = {}
    hard: tuple[HardFunction, ...] = ()
    hard_count: int = 0
    copies: tuple[Copy, ...] = ()
    copies_count: int = 0
    cycles: tuple[Cycle, ...] = ()
    cycles_count: int = 0
    partial: int = 0
    broken: int = 0


def headline(records: BatchRecords) -> Headline:
    """What there is to say first of a batch, as far as it is done. Raises StoreCorrupt."""
    states = file_states(records)
    asked = RecordFilter(kinds=("diagnostic",), severities=_LIKELY_BUGS)
    bugs = by_rule(records.iter_by_path(records.task_names, asked), states.apart)
    counted = add_counts(map(records.counts, records.task_names)).severities
    imports = list(Imports(records)) if "dependencies" in records.task_names else []
    hard = _hard_functions(records, imports, states)
    copies = _copies(records, states)
    tangled = [each for each in cycles(imports) if not all(path.encode() in states.apart for path in each.files)]
    return Headline(
        bugs=tuple(msgspec.structs.replace(rule, findings=rule.findings[:EACH_MAX]) for rule in bugs[:EACH_MAX]),
        bugs_count=sum(rule.count for rule in bugs),
        minor={each: counted[each] for each in SEVERITIES if each not in _LIKELY_BUGS and each in counted},
        hard=tuple(hard[:EACH_MAX]),
        hard_count=len(hard),
        copies=tuple(_one_for_each_pair(copies)[:EACH_MAX]),
        copies_count=len(copies),
        cycles=tuple(tangled[:EACH_MAX]),
        cycles_count=len(tangled),
        partial=states.partial,
        broken=states.broken,
    )


def _hard_functions(records: BatchRecords, imports: Iterable[Import], states: FileStates) -> list[HardFunction]:
    """The functions of which it is likeliest that somebody must understand them and cannot, outside of tests and the
    like.
    """
    importers = Counter(target for _, target in {(each.source, each.target) for each in imports})
    found = [
        HardFunction(
            path=metric.shown_path,
            line=metric.line,
            symbol=metric.symbol,
            metric=metric.metric,
            complexity=metric.value,
            dependents=importers[metric.path or ""],
        )
        for metric in _complex(records)
        if metric.path_bytes not in states.apart
    ]
    return sorted(found, key=lambda each: (-_weight(each), each.path, each.line))


def _weight(function: HardFunction) -> float:
    """Complexity, and as much again each time that the files which import the function's are twice as many."""
    return function.complexity * math.log2(2 + function.dependents)


class _Metric(msgspec.Struct, gc=False):
    metric: str
    value: int
    symbol: str
    line: int = 1
    path: str | None = None
    path_b64: str | None = None

    @property
    def path_bytes(self) -> bytes:
        return path_bytes({"path": self.path, "path_b64": self.path_b64})

    @property
    def shown_path(self) -> str:
        return display_path(self.path_bytes)


_decoder = msgspec.json.Decoder(_Metric)


def _complex(records: BatchRecords) -> Iterator[_Metric]:
    """The complexity of functions, where it is above the limit: cognitive, or cyclomatic where a file has no other."""
    for task in records.task_names:
        for piece in records.pieces(task, RecordFilter(kinds=("metric",)), ()):
            for block in records.read(piece):
                lines = b"\n".join(_complex_lines(block))
                yield from (each for each in decode_lines(_decoder, lines) if each.value >= COMPLEXITY_MIN)


def _complex_lines(block: bytes) -> Iterator[bytes]:
    has_cognitive: dict[bytes, bool] = {}
    for match in _COMPLEX.finditer(block):
        line = _line_at(block, match.start())
        if match[1] != b"cognitive":
            of_file = line.partition(b'"metric":')[0]
            if of_file not in has_cognitive:
                has_cognitive[of_file] = of_file + _COGNITIVE in block
            if has_cognitive[of_file]:
                continue
        yield line


def _line_at(block: bytes, place: int) -> bytes:
    end = block.find(b"\n", place)
    return block[block.rfind(b"\n", 0, place) + 1 : end if end >= 0 else len(block)]


def _copies(records: BatchRecords, states: FileStates) -> list[Copy]:
    """Blocks that stand at several places outside of tests and the like, largest first."""
    places: dict[str, list[Duplicate]] = {}
    for task in records.task_names:
        for record in records.iter_records(task, RecordFilter(kinds=("duplicate",))):
            if path_bytes(record) not in states.apart:
                about = typed(record, Duplicate)
                places.setdefault(about.group, []).append(about)
    found = [_copy(group) for group in places.values() if len(group) > 1]
    return sorted(found, key=lambda each: (-each.lines, -each.places, each.path, each.line))


def _copy(group: list[Duplicate]) -> Copy:
    first, second = group[:2]
    return Copy(
        lines=first.lines,
        places=len(group),
        path=display_path(first.path_bytes),
        line=first.line,
        other_path=display_path(second.path_bytes),
        other_line=second.line,
    )


def _one_for_each_pair(copies: Iterable[Copy]) -> list[Copy]:
    """Of the copies of two files in one another the first alone."""
    by_pair: dict[tuple[str, str], Copy] = {}
    for each in copies:
        by_pair.setdefault((each.path, each.other_path), each)
    return list(by_pair.values())
