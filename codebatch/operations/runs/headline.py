"""What matters most of a batch: likely bugs, what is hard to change, copies, import cycles."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from codebatch.model.record import SEVERITIES
from codebatch.model.record_counts import add_counts
from codebatch.operations.hotspots.hotspots import Hotspot, hotspots
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.dependencies import relevant_cycles
from codebatch.operations.queries.duplicate_blocks import DuplicateBlock
from codebatch.operations.queries.duplicates import DuplicateBlocks, find_copies
from codebatch.operations.queries.findings import RuleFindings, by_rule
from codebatch.query.answers.dependencies import Cycle
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.parsed_files import file_states

COMPLEXITY_MIN = 15
"""Functions of less are not hard to change: SonarSource's limit, who made cognitive complexity. Of languages without it
cyclomatic complexity counts, which McCabe would not have above 10, or 15 with a reason.
"""
EACH_MAX = 8
"""So many of each are in a headline."""
_COPIES_MAX = 8 * EACH_MAX
"""So many are looked at, of which some are in the same two files."""

_LIKELY_BUGS = ("error", "warning")


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """The most important results of a batch, with the total number of each kind.

    - `findings`: errors and warnings, by rule. `minor_findings` counts findings of lower severity.
    - `hotspots`: functions that are complex and often changed.
    - `duplicates`: duplicate blocks, at most one for each pair of files, with two locations each.
    - `cycles`: import cycles.
    - `partially_parsed`, `with_syntax_errors`: numbers of files.
    - `unparsed`: the number of files that were not parsed, by language, or by class if binary, huge or minified.
    - `history_note`: what is unknown about the git history, if a later call may know more; otherwise empty.
    """

    findings: tuple[RuleFindings, ...] = ()
    findings_count: int = 0
    minor_findings: dict[str, int] = {}
    hotspots: tuple[Hotspot, ...] = ()
    duplicates: tuple[DuplicateBlock, ...] = ()
    duplicates_count: int = 0
    cycles: tuple[Cycle, ...] = ()
    cycles_count: int = 0
    partially_parsed: int = 0
    with_syntax_errors: int = 0
    unparsed: dict[str, int] = {}
    history_note: str = ""


def headline(question: BatchQuery) -> Headline:
    """What there is to say first of a batch, as far as it is done. Raises StoreCorrupt.

    Of a directory of tests, say, where there is no other code, nothing stands apart.
    """
    records = question.records
    question.find_numbers(are_made=True)
    apart, states = question.apart, file_states(records.files)

    def is_apart(path: bytes) -> bool:
        return states.plain > 0 and apart.of(path) is not None

    asked = RecordFilter(kinds=("diagnostic",), severities=_LIKELY_BUGS)
    bugs = by_rule(records.iter_by_path(records.task_names, asked), apart)
    counted = add_counts(map(records.counts, records.task_names)).severities
    copies = DuplicateBlocks(blocks=(), count=0, excluded=0)
    if "duplicates" in records.task_names:
        copies = find_copies(question, limit=_COPIES_MAX, everything=not states.plain).found
    tangled = relevant_cycles(question) if "dependencies" in records.task_names else []
    hard, changes_told = _hard_functions(question, everything=not states.plain)
    return Headline(
        findings=tuple(msgspec.structs.replace(rule, findings=rule.findings[:EACH_MAX]) for rule in bugs[:EACH_MAX]),
        findings_count=sum(rule.count for rule in bugs),
        minor_findings={each: counted[each] for each in SEVERITIES if each not in _LIKELY_BUGS and each in counted},
        hotspots=hard,
        history_note=changes_told,
        duplicates=tuple(_one_for_each_pair(copies.blocks)[:EACH_MAX]),
        duplicates_count=copies.count,
        cycles=tuple(tangled[:EACH_MAX]),
        cycles_count=len(tangled),
        partially_parsed=states.partial,
        with_syntax_errors=states.broken,
        unparsed=dict(sorted(states.unparsed.items(), key=lambda each: (-each[1], each[0]))),
    )


def _hard_functions(question: BatchQuery, *, everything: bool) -> tuple[tuple[Hotspot, ...], str]:
    """The hottest functions; where no language of the batch has cognitive complexity, the most complex.

    With them what is not known of their changes yet.
    """
    if "analyze" not in question.records.task_names:
        return (), ""
    hottest = hotspots(question, least=COMPLEXITY_MIN, limit=EACH_MAX, everything=everything).found
    if not (hottest.rows or hottest.excluded):
        hottest = hotspots(question, "complexity", least=COMPLEXITY_MIN, limit=EACH_MAX, everything=everything).found
    return hottest.rows, hottest.churn_note if hottest.is_history_cut else ""


def _one_for_each_pair(blocks: Iterable[DuplicateBlock]) -> list[DuplicateBlock]:
    """Of the copies of two files in one another the first alone, with its first places."""
    by_pair: dict[tuple[bytes, ...], DuplicateBlock] = {}
    for each in blocks:
        shown = msgspec.structs.replace(each, locations=each.locations[:2])
        by_pair.setdefault(tuple(place.path_bytes for place in shown.locations), shown)
    return list(by_pair.values())
