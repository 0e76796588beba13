"""The first screen of `run`: likely bugs, hotspots, duplicate blocks, import cycles, and the next command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import msgspec
from msgspec import UNSET

from codebatch.cli.answers.finding_lines import location_text, source_lines
from codebatch.cli.output.widths import fit_line, fit_path, hide_repeated_directories
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.hotspots.hotspots import Hotspot
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.duplicate_blocks import DuplicateBlock
from codebatch.operations.queries.findings import RuleFindings
from codebatch.operations.queries.source_text import source_texts
from codebatch.operations.runs.headline import Headline
from codebatch.query.answers.dependencies import Cycle
from codebatch.query.fields import record_path

FINDINGS_COMMAND = "codebatch findings"
HOTSPOTS_COMMAND = "codebatch hotspots"
DUPLICATES_COMMAND = "codebatch duplicates"
CYCLES_COMMAND = "codebatch graph --cycles"
PARTIAL_FILES_COMMAND = "codebatch files --parse partial"
UNPARSED_FILES_COMMAND = "codebatch files --parse skipped --parse unsupported"

_UNPARSED_SHOWN_MAX = 3
_FINDINGS_WITH_SOURCE_MAX = 2
"""Number of findings that are shown with their source."""


class _Section(msgspec.Struct, frozen=True):
    title: str
    number: int
    command: str
    lines: Iterable[str]
    displayed_count: int


def headline_lines(
    headline: Headline, question: BatchQuery, suggest: Callable[[str], str], width: int | None
) -> Iterator[str]:
    """Yield the lines of the first screen. If there is nothing to show, yield none.

    `suggest` adds options such as `--store` to the commands in a text (`CommandContext.suggest`).
    """

    def with_command(text: str, command: str) -> str:
        """Return a line that ends with a command. If the line would be too long, leave out the command."""
        complete = suggest(f"{text}: {command}")
        return fit_line(text, width) if fit_line(complete, width) != complete else complete

    for section in _headline_sections(headline, question, width):
        if section.number:
            yield with_command(section.title, section.command)
            yield from islice(section.lines, section.displayed_count)
    if headline.partially_parsed:
        yield with_command(
            f"{count_text(headline.partially_parsed, 'file')} could only be parsed partially", PARTIAL_FILES_COMMAND
        )
    if headline.unparsed:
        text = f"{count_text(sum(headline.unparsed.values()), 'file')} not parsed"
        complete = suggest(f"{text} ({_unparsed_text(headline.unparsed)}): {UNPARSED_FILES_COMMAND}")
        yield complete if fit_line(complete, width) == complete else with_command(text, UNPARSED_FILES_COMMAND)
    if headline.minor_findings:
        text = ", ".join(f"{count:,} {severity}" for severity, count in headline.minor_findings.items())
        yield with_command(
            f"{count_text(sum(headline.minor_findings.values()), 'minor finding')} hidden ({text})",
            f"{FINDINGS_COMMAND} --all",
        )


def next_command(headline: Headline) -> str | None:
    """Return the command that shows the first topic with results, or None if no topic has results."""
    counts = {
        FINDINGS_COMMAND: headline.findings_count,
        _hotspots_title(headline): len(headline.hotspots),
        DUPLICATES_COMMAND: headline.duplicates_count,
        CYCLES_COMMAND: headline.cycles_count,
        f"{FINDINGS_COMMAND} --all": sum(headline.minor_findings.values()),
    }
    return next((command for command, count in counts.items() if count), None)


def _headline_sections(headline: Headline, question: BatchQuery, width: int | None) -> tuple[_Section, ...]:
    # If there are no findings, the other sections may have more lines.
    free = not headline.findings_count
    return (
        _Section(
            f"Likely bugs ({headline.findings_count:,})",
            headline.findings_count,
            FINDINGS_COMMAND,
            _bug_lines(headline.findings, question, width),
            8,
        ),
        _Section(
            "Hard to change",
            len(headline.hotspots),
            _hotspots_title(headline),
            _hotspot_lines(headline.hotspots, width),
            7 if free else 4,
        ),
        _Section(
            f"Duplicate blocks ({'at most ' * headline.duplicates_count_is_upper_bound}{headline.duplicates_count:,})",
            headline.duplicates_count,
            DUPLICATES_COMMAND,
            _duplicate_lines(headline.duplicates, width),
            4 if free else 2,
        ),
        _Section(
            f"Import cycles ({headline.cycles_count:,})",
            headline.cycles_count,
            CYCLES_COMMAND,
            _cycle_lines(headline.cycles, width),
            3 if free else 1,
        ),
    )


def _unparsed_text(counts: Mapping[str, int]) -> str:
    """Return as text how many files were not parsed, for each reason.

    Reasons that a user can remove come first, then the most frequent reasons.
    """
    ranked = sorted(counts, key=lambda reason: reason not in ("huge", "minified"))
    texts = [f"{counts[reason]:,} {reason}" for reason in ranked[:_UNPARSED_SHOWN_MAX]]
    more = len(ranked) - _UNPARSED_SHOWN_MAX
    return ", ".join(
        [*texts, f"{sum(counts[reason] for reason in ranked[-more:]):,} of other kinds"] if more > 0 else texts
    )


def _hotspots_title(headline: Headline) -> str:
    """Return the command that ranks functions by the same metric as this screen."""
    is_cognitive = not headline.hotspots or headline.hotspots[0].cognitive is not UNSET
    return HOTSPOTS_COMMAND if is_cognitive else f"{HOTSPOTS_COMMAND} --by complexity"


def _bug_lines(rules: Iterable[RuleFindings], question: BatchQuery, width: int | None) -> Iterator[str]:
    rules = tuple(rules)
    sources = source_texts(question, [rule.findings[0] for rule in rules[:_FINDINGS_WITH_SOURCE_MAX]])
    for place, rule in enumerate(rules):
        first, more = rule.findings[0], rule.count - 1
        text = f"{rule.severity} {rule.code} {first['message']}"
        text = f": {text} (and {more:,} more)" if more else f": {text}"
        yield fit_line(f"  {fit_path(location_text(first), width and width // 2, 2)}{text}", width)
        if place < _FINDINGS_WITH_SOURCE_MAX:
            yield from source_lines(first, sources[place], width)


def _hotspot_lines(functions: Iterable[Hotspot], width: int | None) -> Iterator[str]:
    functions = tuple(functions)
    has_history = any(function.commits_per_year is not None for function in functions)
    yield fit_line(f"  complexity  {'commits/yr  ' if has_history else ''}dependents", width)
    for function in functions:
        used = _dependents_text(function)
        changes = (
            f"{'?' if function.commits_per_year is None else f'{function.commits_per_year:,}':>10}  "
            if has_history
            else ""
        )
        text = f"  {function.cognitive or function.complexity or 0:>10,}  {changes}{used:>9}  {function.symbol} "
        where = f"{record_path(msgspec.to_builtins(function))}:{function.line}"
        yield fit_line(f"{text}{fit_path(where, width, len(text))}", width)


def _dependents_text(function: Hotspot) -> str:
    """Return as text how many files depend on the file of a function.

    A plus sign means that the number may be higher, because files can use this file without an import.
    """
    if not function.dependents:
        return "?" if function.dependents is None else "-"
    if function.dependents_partial is True:
        return f"{function.dependents:,}+ files"
    return count_text(function.dependents, "file")


def _duplicate_lines(copies: Iterable[DuplicateBlock], width: int | None) -> Iterator[str]:
    for block in copies:
        more = f" and {block.copies - 2:,} more" if block.copies > 2 else ""
        places = [f"{display_path(place.path_bytes)}:{place.line}" for place in block.locations[:2]]
        first, *further = hide_repeated_directories(places)
        text = f"  {block.lines:,} lines  "
        half = None if width is None else (width + len(text)) // 2
        text += fit_path(first, half, len(text))
        for path in further:
            text += f" = {fit_path(path, width, len(text) + 3)}"
        yield fit_line(f"{text}{more}", width)


def _cycle_lines(cycles: Iterable[Cycle], width: int | None) -> Iterator[str]:
    for cycle in cycles:
        cycle_text = " -> ".join(hide_repeated_directories(list(cycle.shortest)))
        yield fit_line(f"  {len(cycle.files):,} files  {cycle_text}; cut at {cycle.cut.source}:{cycle.cut.line}", width)
