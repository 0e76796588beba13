"""`inspect FILE`: a file on one screen."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch.cli.output.terminal import printable
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_of
from codebatch.operations.queries.file_overview import Overview, OverviewFinding
from codebatch.query.fields import JsonRecord

_TAB_COLUMNS = 4
_SOURCE_COLUMNS = 100


def overview_lines(found: Overview) -> Iterator[str]:
    """A file for people."""
    yield "  ".join([display_path(found.path), *_about(found)])
    standing = list(_standing(found))
    if standing:
        yield f"  {', '.join(standing)}"
    if found.hardest:
        yield "  hardest   " + "  ".join(f"{each.cognitive} {each.symbol}:{each.line}" for each in found.hardest)
    if found.severities:
        yield "  findings  " + ", ".join(count_of(count, severity) for severity, count in found.severities.items())
    for each in found.findings:
        yield from _finding(each)
    left = sum(found.severities.values()) - len(found.findings)
    if left > 0:
        yield f"    {left:,} more: --kinds diagnostic"
    kinds = ", ".join(f"{kind} ({count:,})" for kind, count in found.kinds.items())
    if kinds:
        yield f"  show more with --all, or with --kinds and one of: {kinds}"


def _about(found: Overview) -> Iterator[str]:
    about: JsonRecord = found.about or {}
    if "lang" in about:
        yield str(about["lang"])
    if about.get("class") not in (None, "text"):
        yield str(about["class"])
    if "code" in found.numbers:
        yield count_of(found.numbers["code"], "code line")
    elif isinstance(lines := about.get("lines"), int):
        yield count_of(lines, "line")
    if found.numbers.get("classes"):
        yield count_of(found.numbers["classes"], "class", "classes")
    if found.numbers.get("functions"):
        yield count_of(found.numbers["functions"], "function")
    if about.get("parse") in ("errors", "partial"):
        yield "partially parsed"


def _standing(found: Overview) -> Iterator[str]:
    numbers = found.numbers
    if "cognitive" in numbers:
        rank = f" ({_ordinal(found.rank)} of {(found.about or {}).get('lang')})" if found.rank else ""
        yield f"complexity {numbers['cognitive']:,}{rank}"
    if "duplicated_lines" in numbers:
        yield f"{count_of(numbers['duplicated_lines'], 'duplicated line')}"
    if "dependents" in numbers or found.dependents_in_all:
        more = "+" if found.dependents_partial else ""
        in_all = "" if found.dependents_in_all is None else f" ({found.dependents_in_all:,}{more} including indirect)"
        direct = numbers.get("dependents", 0)
        yield f"{direct:,}+ dependents{in_all}" if more else f"{count_of(direct, 'dependent')}{in_all}"
    elif found.dependents_partial:
        yield "dependents unknown"
    if "cycle" in numbers:
        yield f"in an import cycle of {numbers['cycle']:,} files"


def _finding(found: OverviewFinding) -> Iterator[str]:
    each = found.diagnostic
    yield f"    {each['line']}:{each['column']} {each['severity']} {each['code']} {each['message']}"
    if found.source is None:
        return
    first, last = _columns(each, len(found.source.text))
    start = max(first - _SOURCE_COLUMNS // 2, 0) if first > _SOURCE_COLUMNS else 0
    text = found.source.text.removesuffix("\r")[start : start + _SOURCE_COLUMNS]
    before, marked = text[: first - start], printable(text[first - start : last - start])
    shown = printable(before.expandtabs(_TAB_COLUMNS))
    indent = len(shown) - len(shown.lstrip())
    yield f"      | {printable(text.expandtabs(_TAB_COLUMNS))[indent:]}"
    yield f"      | {' ' * (len(shown) - indent)}{'^' * max(len(marked), 1)}"


def _columns(diagnostic: JsonRecord, length: int) -> tuple[int, int]:
    """From where to where of its line a finding is, from 0."""
    first, last = diagnostic["column"], diagnostic["end_column"]
    assert isinstance(first, int)
    assert isinstance(last, int)
    first = min(max(first - 1, 0), length)
    is_one_line = diagnostic["end_line"] == diagnostic["line"]
    return first, min(max(last - 1, first), length) if is_one_line else length


def _ordinal(number: int) -> str:
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number:,}{'th' if 10 <= number % 100 < 20 else ends.get(number % 10, 'th')}"
