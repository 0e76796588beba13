"""The summary of a GitHub job: Markdown of at most 1 MiB, above which GitHub shows none at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from codebatch.exchange.findings import Outgoing
from codebatch.exchange.locations import printable_text, text_of
from codebatch.exchange.model import ExportedFindings
from codebatch.model.record import SEVERITIES
from codebatch.model.text.quantities import count_of

SUMMARY_BYTES_MAX = 1 << 20
"""Of a step, in all."""
_RULES_SHOWN = 50
_SHOWN = 1_000
"""Findings that are listed one by one."""
_CHARACTERS = 200
"""Of a text in the table."""
_MARKS = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>&@$:])")


def make_summary(told: ExportedFindings, budget: int = SUMMARY_BYTES_MAX) -> bytes:
    """What was found, as Markdown of at most so many bytes: how much of each rule, and the first findings."""
    shown = min(len(told.findings), _SHOWN)
    while True:
        text = "".join(f"{line}\n" for line in _lines(told, shown)).encode()
        if len(text) <= budget:
            return text
        if not shown:
            return b""
        shown //= 2


def _lines(told: ExportedFindings, shown: int) -> Iterator[str]:
    found = told.findings
    yield f"## codebatch: {count_of(len(found), 'finding')}"
    yield ""
    if told.incomplete:
        yield f"**Incomplete:** {_escaped(told.incomplete)}"
        yield ""
    if not found:
        return
    yield from _rules(found)
    if not shown:
        return
    yield "| location | severity | rule | message |"
    yield "| --- | --- | --- | --- |"
    for each in found[:shown]:
        about = each.found
        place = f"{text_of(each.path)}:{about.line}"
        yield f"| {_escaped(place)} | {about.severity} | {_escaped(about.code)} | {_escaped(about.message)} |"
    if len(found) > shown:
        yield ""
        yield f"{len(found) - shown:,} more are not listed."


def _rules(found: Sequence[Outgoing]) -> Iterator[str]:
    counts = Counter((SEVERITIES.index(each.found.severity), each.found.code) for each in found)
    ranked = sorted(counts.items(), key=lambda row: (row[0][0], -row[1], row[0][1]))
    yield "| severity | rule | findings |"
    yield "| --- | --- | ---: |"
    for (severity, code), count in ranked[:_RULES_SHOWN]:
        yield f"| {SEVERITIES[severity]} | {_escaped(code)} | {count:,} |"
    yield ""
    if len(ranked) > _RULES_SHOWN:
        yield f"{count_of(len(ranked) - _RULES_SHOWN, 'rule')} more."
        yield ""


def _escaped(text: str) -> str:
    """A text in a cell of a table, in which nothing is Markdown or HTML; of a long one the beginning."""
    one_line = printable_text(" ".join(text.split()))
    cut = one_line if len(one_line) <= _CHARACTERS else one_line[:_CHARACTERS] + "…"
    return _MARKS.sub(r"\\\1", cut)
