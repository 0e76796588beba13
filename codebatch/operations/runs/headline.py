"""The most important results of a batch: likely bugs, code that is hard to change, duplicates and import cycles."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from codebatch.model.record import SEVERITIES
from codebatch.model.record_counts import add_counts
from codebatch.operations.hotspots.hotspots import Hotspot, find_hotspots
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.dependencies import list_relevant_cycles
from codebatch.operations.queries.duplicate_blocks import DuplicateBlock
from codebatch.operations.queries.duplicates import NO_DUPLICATES, find_copies
from codebatch.operations.queries.findings import RuleFindings, group_by_rule
from codebatch.query.answers.dependencies import Cycle
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.parsed_files import file_states

COMPLEXITY_MIN = 15
"""The minimum complexity of the functions in a headline: SonarSource's limit for cognitive complexity.

In languages without cognitive complexity, it is applied to cyclomatic complexity. For this, McCabe's limit is 10, or 15
with a justification.
"""
ROWS_PER_SECTION_MAX = 8
"""Maximum number of rows of each kind in a headline."""
_DUPLICATES_READ_MAX = 8 * ROWS_PER_SECTION_MAX
"""Number of duplicate blocks to read, because several blocks can be in the same two files."""

_LIKELY_BUG_SEVERITIES = ("error", "warning")


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """The most important results of a batch, with the total number of each kind.

    - `findings`: errors and warnings, by rule.
    - `minor_findings`: the number of findings of each lower severity.
    - `hotspots`: functions that are complex and often changed.
    - `duplicates`: duplicate blocks, at most one for each pair of files, with two locations each.
    - `cycles`: import cycles.
    - `partially_parsed`, `with_syntax_errors`: numbers of files.
    - `unparsed`: the number of files that were not parsed, by language. Binary, huge and minified files are counted by
      class.
    - `history_note`: what is unknown about the git history, if a later call may know more; otherwise empty.
    """

    findings: tuple[RuleFindings, ...] = ()
    findings_count: int = 0
    minor_findings: dict[str, int] = {}
    hotspots: tuple[Hotspot, ...] = ()
    duplicates: tuple[DuplicateBlock, ...] = ()
    duplicates_count: int = 0
    duplicates_count_is_upper_bound: bool = False
    cycles: tuple[Cycle, ...] = ()
    cycles_count: int = 0
    partially_parsed: int = 0
    with_syntax_errors: int = 0
    unparsed: dict[str, int] = {}
    history_note: str = ""


def make_headline(question: BatchQuery) -> Headline:
    """Return the headline of a batch from the results that exist so far. Raises StoreCorrupt.

    Non-production files are left out. But if the project consists only of such files, for example of tests, they are
    included.
    """
    records = question.records
    states = file_states(records.files)
    likely_bugs = RecordFilter(kinds=("diagnostic",), severities=_LIKELY_BUG_SEVERITIES)
    bugs = group_by_rule(records.iter_by_path(records.task_names, likely_bugs), question.non_production_files)
    severities = add_counts(map(records.counts, records.task_names)).severities
    copies = NO_DUPLICATES
    if "duplicates" in records.task_names:
        copies = find_copies(question, limit=_DUPLICATES_READ_MAX).result
    cycles = list_relevant_cycles(question) if "dependencies" in records.task_names else []
    hard_functions, history_note = _find_hard_functions(question)
    return Headline(
        findings=tuple(
            msgspec.structs.replace(rule, findings=rule.findings[:ROWS_PER_SECTION_MAX])
            for rule in bugs[:ROWS_PER_SECTION_MAX]
        ),
        findings_count=sum(rule.count for rule in bugs),
        minor_findings={
            severity: severities[severity]
            for severity in SEVERITIES
            if severity not in _LIKELY_BUG_SEVERITIES and severity in severities
        },
        hotspots=hard_functions,
        history_note=history_note,
        duplicates=tuple(_one_for_each_pair(copies.blocks)[:ROWS_PER_SECTION_MAX]),
        duplicates_count=copies.count,
        duplicates_count_is_upper_bound=copies.count_is_upper_bound,
        cycles=tuple(cycles[:ROWS_PER_SECTION_MAX]),
        cycles_count=len(cycles),
        partially_parsed=states.partial,
        with_syntax_errors=states.broken,
        unparsed=dict(sorted(states.unparsed.items(), key=lambda pair: (-pair[1], pair[0]))),
    )


def _find_hard_functions(question: BatchQuery) -> tuple[tuple[Hotspot, ...], str]:
    """Return the functions that are complex and often changed, and a note about missing git history.

    If no language of the batch has cognitive complexity, return the functions with the highest cyclomatic complexity.
    """
    if "analyze" not in question.records.task_names:
        return (), ""
    ranking = find_hotspots(question, least=COMPLEXITY_MIN, limit=ROWS_PER_SECTION_MAX).result
    if not (ranking.rows or ranking.excluded):
        ranking = find_hotspots(question, "complexity", least=COMPLEXITY_MIN, limit=ROWS_PER_SECTION_MAX).result
    return ranking.rows, ranking.churn_note if ranking.is_history_cut else ""


def _one_for_each_pair(blocks: Iterable[DuplicateBlock]) -> list[DuplicateBlock]:
    """Return for each pair of files the first duplicate block in both. Each block has only its first two locations."""
    by_pair: dict[tuple[bytes, ...], DuplicateBlock] = {}
    for block in blocks:
        shortened = msgspec.structs.replace(block, locations=block.locations[:2])
        by_pair.setdefault(tuple(place.path_bytes for place in shortened.locations), shortened)
    return list(by_pair.values())
