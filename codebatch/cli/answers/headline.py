"""What `run` says first, on one screen: likely bugs, what is hard to change, copies, import cycles; what is next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import msgspec
from msgspec import UNSET

from codebatch.cli.answers.finding_lines import place_of, source_lines
from codebatch.cli.output.widths import fitted, fitted_path, without_same_directory
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_of
from codebatch.operations.hotspots.hotspots import Hotspot
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.duplicate_blocks import DuplicateBlock
from codebatch.operations.queries.findings import RuleFindings
from codebatch.operations.queries.source_text import source_texts
from codebatch.operations.runs.headline import Headline
from codebatch.query.answers.dependencies import Cycle
from codebatch.query.fields import record_path

FINDINGS = "codebatch findings"
HOTSPOTS = "codebatch hotspots"
COPIES = "codebatch duplicates"
CYCLES = "codebatch graph --cycles"
PARTIAL = "codebatch files --parse partial"
UNPARSED = "codebatch files --parse skipped --parse unsupported"

_UNPARSED_SHOWN = 3
_SOURCES = 2
"""So many findings are shown with their source."""


class _Section(msgspec.Struct, frozen=True):
    title: str
    number: int
    command: str
    lines: Iterable[str]
    shown: int


def headline_lines(
    found: Headline, question: BatchQuery, suggest: Callable[[str], str], width: int | None
) -> Iterator[str]:
    """The headline for people; nothing where there is nothing to say. `suggest` has commands as they are typed here."""

    def with_command(told: str, command: str) -> str:
        """A line that ends with a command, where there is room for all of it."""
        whole = suggest(f"{told}: {command}")
        return fitted(told, width) if fitted(whole, width) != whole else whole

    for section in _sections(found, question, width):
        if section.number:
            yield with_command(section.title, section.command)
            yield from islice(section.lines, section.shown)
    if found.partially_parsed:
        yield with_command(f"{count_of(found.partially_parsed, 'file')} could only be parsed partially", PARTIAL)
    if found.unparsed:
        told = f"{count_of(sum(found.unparsed.values()), 'file')} not parsed"
        whole = suggest(f"{told} ({_unparsed(found.unparsed)}): {UNPARSED}")
        yield whole if fitted(whole, width) == whole else with_command(told, UNPARSED)
    if found.minor_findings:
        told = ", ".join(f"{count:,} {severity}" for severity, count in found.minor_findings.items())
        yield with_command(
            f"{count_of(sum(found.minor_findings.values()), 'minor finding')} hidden ({told})", f"{FINDINGS} --all"
        )


def next_command(found: Headline) -> str | None:
    """The command that has most to say, None where none has."""
    counts = {
        FINDINGS: found.findings_count,
        _hotspots(found): len(found.hotspots),
        COPIES: found.duplicates_count,
        CYCLES: found.cycles_count,
        f"{FINDINGS} --all": sum(found.minor_findings.values()),
    }
    return next((command for command, count in counts.items() if count), None)


def _sections(found: Headline, question: BatchQuery, width: int | None) -> tuple[_Section, ...]:
    # What is not there leaves its room to the others.
    free = not found.findings_count
    return (
        _Section(
            f"Likely bugs ({found.findings_count:,})",
            found.findings_count,
            FINDINGS,
            _bug_lines(found.findings, question, width),
            8,
        ),
        _Section(
            "Hard to change",
            len(found.hotspots),
            _hotspots(found),
            _hard_lines(found.hotspots, width),
            7 if free else 4,
        ),
        _Section(
            f"Duplicate blocks ({found.duplicates_count:,})",
            found.duplicates_count,
            COPIES,
            _copy_lines(found.duplicates, width),
            4 if free else 2,
        ),
        _Section(
            f"Import cycles ({found.cycles_count:,})",
            found.cycles_count,
            CYCLES,
            _cycle_lines(found.cycles, width),
            3 if free else 1,
        ),
    )


def _unparsed(counts: Mapping[str, int]) -> str:
    """What was not parsed: what a person would have parsed first, then what there is most of."""
    ranked = sorted(counts, key=lambda each: each not in ("huge", "minified"))
    told = [f"{counts[each]:,} {each}" for each in ranked[:_UNPARSED_SHOWN]]
    more = len(ranked) - _UNPARSED_SHOWN
    return ", ".join([*told, f"{sum(counts[each] for each in ranked[-more:]):,} of other kinds"] if more > 0 else told)


def _hotspots(found: Headline) -> str:
    """The command that ranks functions as the headline does."""
    is_cognitive = not found.hotspots or found.hotspots[0].cognitive is not UNSET
    return HOTSPOTS if is_cognitive else f"{HOTSPOTS} --by complexity"


def _bug_lines(rules: Iterable[RuleFindings], question: BatchQuery, width: int | None) -> Iterator[str]:
    rules = tuple(rules)
    sources = source_texts(question, [rule.findings[0] for rule in rules[:_SOURCES]])
    for place, rule in enumerate(rules):
        first, more = rule.findings[0], rule.count - 1
        told = f"{rule.severity} {rule.code} {first['message']}"
        told = f": {told} (and {more:,} more)" if more else f": {told}"
        yield fitted(f"  {fitted_path(place_of(first), width and width // 2, 2)}{told}", width)
        if place < _SOURCES:
            yield from source_lines(first, sources[place], width)


def _hard_lines(functions: Iterable[Hotspot], width: int | None) -> Iterator[str]:
    functions = tuple(functions)
    has_history = any(each.commits_per_year is not None for each in functions)
    yield fitted(f"  complexity  {'commits/yr  ' if has_history else ''}dependents", width)
    for each in functions:
        used = _users(each)
        changes = (
            f"{'?' if each.commits_per_year is None else f'{each.commits_per_year:,}':>10}  " if has_history else ""
        )
        told = f"  {_complexity(each):>10,}  {changes}{used:>9}  {each.symbol} "
        where = f"{record_path(msgspec.to_builtins(each))}:{each.line}"
        yield fitted(f"{told}{fitted_path(where, width, len(told))}", width)


def _users(function: Hotspot) -> str:
    """Return how many files depend on that of a function; with a plus if others may use it without an import."""
    if not function.dependents:
        return "?" if function.dependents is None else "-"
    if function.dependents_partial is True:
        return f"{function.dependents:,}+ files"
    return count_of(function.dependents, "file")


def _complexity(function: Hotspot) -> int:
    return function.cognitive or function.complexity or 0


def _copy_lines(copies: Iterable[DuplicateBlock], width: int | None) -> Iterator[str]:
    for each in copies:
        more = f" and {each.copies - 2:,} more" if each.copies > 2 else ""
        places = [f"{display_path(place.path_bytes)}:{place.line}" for place in each.locations[:2]]
        first, *others = without_same_directory(places)
        told = f"  {each.lines:,} lines  "
        half = None if width is None else (width + len(told)) // 2
        told += fitted_path(first, half, len(told))
        for other in others:
            told += f" = {fitted_path(other, width, len(told) + 3)}"
        yield fitted(f"{told}{more}", width)


def _cycle_lines(cycles: Iterable[Cycle], width: int | None) -> Iterator[str]:
    for each in cycles:
        way = " -> ".join(without_same_directory(list(each.shortest)))
        yield fitted(f"  {len(each.files):,} files  {way}; cut at {each.cut.source}:{each.cut.line}", width)
