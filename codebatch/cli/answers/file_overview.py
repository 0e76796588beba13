"""The overview of a file that `inspect FILE` prints."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch.cli.output.terminal import printable_line
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.file_overview import Overview, OverviewFinding
from codebatch.query.fields import JsonRecord

_TAB_COLUMNS = 4
_SOURCE_COLUMNS_MAX = 100


def overview_lines(overview: Overview) -> Iterator[str]:
    """Yield the lines of an overview."""
    yield "  ".join([display_path(overview.path), *_description_lines(overview)])
    ranks = list(_rank_texts(overview))
    if ranks:
        yield f"  {', '.join(ranks)}"
    if overview.hardest:
        yield "  hardest   " + "  ".join(
            f"{function.cognitive} {function.symbol}:{function.line}" for function in overview.hardest
        )
    if overview.severities:
        yield "  findings  " + ", ".join(count_text(count, severity) for severity, count in overview.severities.items())
    for function in overview.findings:
        yield from _finding_lines(function)
    remaining = sum(overview.severities.values()) - len(overview.findings)
    if remaining > 0:
        yield f"    {remaining:,} more: --kinds diagnostic"
    kinds = ", ".join(f"{kind} ({count:,})" for kind, count in overview.kinds.items())
    if kinds:
        yield f"  show more with --all, or with --kinds and one of: {kinds}"


def _description_lines(overview: Overview) -> Iterator[str]:
    about: JsonRecord = overview.about or {}
    if "lang" in about:
        yield str(about["lang"])
    if about.get("class") not in (None, "text"):
        yield str(about["class"])
    if "code" in overview.numbers:
        yield count_text(overview.numbers["code"], "code line")
    elif isinstance(lines := about.get("lines"), int):
        yield count_text(lines, "line")
    if overview.numbers.get("classes"):
        yield count_text(overview.numbers["classes"], "class", "classes")
    if overview.numbers.get("functions"):
        yield count_text(overview.numbers["functions"], "function")
    if about.get("parse") in ("errors", "partial"):
        yield "partially parsed"


def _rank_texts(overview: Overview) -> Iterator[str]:
    numbers = overview.numbers
    if "cognitive" in numbers:
        rank = f" ({_ordinal(overview.rank)} of {(overview.about or {}).get('lang')})" if overview.rank else ""
        yield f"complexity {numbers['cognitive']:,}{rank}"
    if "duplicated_lines" in numbers:
        yield f"{count_text(numbers['duplicated_lines'], 'duplicated line')}"
    if "dependents" in numbers or overview.dependents_in_all:
        more = "+" if overview.dependents_partial else ""
        direct = f"{numbers.get('dependents', 0):,}{more} direct"
        count = overview.dependents_in_all
        in_all = "" if count is None else f"{count:,}+ dependents" if more else count_text(count, "dependent")
        yield f"{in_all}, {direct}" if in_all else f"{direct} dependents"
    elif overview.dependents_partial:
        yield "dependents unknown"
    if "cycle" in numbers:
        yield f"in an import cycle of {numbers['cycle']:,} files"


def _finding_lines(finding: OverviewFinding) -> Iterator[str]:
    diagnostic = finding.diagnostic
    where = f"{diagnostic['line']}:{diagnostic['column']}"
    yield f"    {where} {diagnostic['severity']} {diagnostic['code']} {diagnostic['message']}"
    if finding.source is None:
        return
    first, last = _displayed_columns(diagnostic, len(finding.source.text))
    start = max(first - _SOURCE_COLUMNS_MAX // 2, 0) if first > _SOURCE_COLUMNS_MAX else 0
    text = finding.source.text.removesuffix("\r")[start : start + _SOURCE_COLUMNS_MAX]
    before, marked = text[: first - start], printable_line(text[first - start : last - start])
    expanded_line = printable_line(before.expandtabs(_TAB_COLUMNS))
    indent = len(expanded_line) - len(expanded_line.lstrip())
    yield f"      | {printable_line(text.expandtabs(_TAB_COLUMNS))[indent:]}"
    yield f"      | {' ' * (len(expanded_line) - indent)}{'^' * max(len(marked), 1)}"


def _displayed_columns(diagnostic: JsonRecord, length: int) -> tuple[int, int]:
    """Return the columns of a finding in its line, counted from 0: its start and its end."""
    first, last = diagnostic["column"], diagnostic["end_column"]
    assert isinstance(first, int)
    assert isinstance(last, int)
    first = min(max(first - 1, 0), length)
    is_one_line = diagnostic["end_line"] == diagnostic["line"]
    return first, min(max(last - 1, first), length) if is_one_line else length


def _ordinal(number: int) -> str:
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number:,}{'th' if 10 <= number % 100 < 20 else ends.get(number % 10, 'th')}"
