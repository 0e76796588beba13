"""The summary of a job in Markdown, of at most 1 MiB, because GitHub and Buildkite show none that is larger."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from codebatch.interchange.findings import ExportedFinding, ExportedFindings
from codebatch.interchange.locations import path_text, printable_text
from codebatch.model.record import SEVERITIES
from codebatch.model.text.quantities import count_text

SUMMARY_BYTES_MAX = 1 << 20
"""Maximum total size of all summaries of a step of GitHub, and of an annotation of Buildkite, in bytes."""
_RULES_SHOWN_MAX = 50
_FINDINGS_SHOWN_MAX = 1_000
"""Maximum number of findings that the summary lists one by one."""
_CELL_CHARACTERS_MAX = 200
"""Maximum number of characters of a text in a table cell."""
_MARKUP_CHARACTER = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>&@$:])")


def make_summary(exported: ExportedFindings, budget: int = SUMMARY_BYTES_MAX) -> bytes:
    """Return a summary of at most `budget` bytes: the number of findings of each rule, and the first findings."""
    displayed_count = min(len(exported.findings), _FINDINGS_SHOWN_MAX)
    while True:
        text = "".join(f"{line}\n" for line in _summary_lines(exported, displayed_count)).encode()
        if len(text) <= budget:
            return text
        if not displayed_count:
            return b""
        displayed_count //= 2


def _summary_lines(exported: ExportedFindings, displayed_count: int) -> Iterator[str]:
    findings = exported.findings
    yield f"## codebatch: {count_text(len(findings), 'finding')}"
    yield ""
    if exported.incomplete:
        yield f"**Incomplete:** {_escape_cell(exported.incomplete)}"
        yield ""
    if not findings:
        return
    yield from _rule_table(findings)
    if not displayed_count:
        return
    yield "| location | severity | rule | message |"
    yield "| --- | --- | --- | --- |"
    for finding in findings[:displayed_count]:
        about = finding.diagnostic
        cells = (f"{path_text(finding.path)}:{about.line}", about.severity, about.code, about.message)
        yield f"| {' | '.join(map(_escape_cell, cells))} |"
    if len(findings) > displayed_count:
        yield ""
        yield f"{len(findings) - displayed_count:,} more are not listed."


def _rule_table(findings: Sequence[ExportedFinding]) -> Iterator[str]:
    counts = Counter((SEVERITIES.index(finding.diagnostic.severity), finding.diagnostic.code) for finding in findings)
    ranked = sorted(counts.items(), key=lambda row: (row[0][0], -row[1], row[0][1]))
    yield "| severity | rule | findings |"
    yield "| --- | --- | ---: |"
    for (severity, code), count in ranked[:_RULES_SHOWN_MAX]:
        yield f"| {SEVERITIES[severity]} | {_escape_cell(code)} | {count:,} |"
    yield ""
    if len(ranked) > _RULES_SHOWN_MAX:
        yield f"{count_text(len(ranked) - _RULES_SHOWN_MAX, 'rule')} more."
        yield ""


def _escape_cell(text: str) -> str:
    """Return a text for a table cell: one line without Markdown or HTML, at most `_CELL_CHARACTERS_MAX` characters."""
    one_line = printable_text(" ".join(text.split()))
    cut = one_line if len(one_line) <= _CELL_CHARACTERS_MAX else one_line[:_CELL_CHARACTERS_MAX] + "…"
    return _MARKUP_CHARACTER.sub(r"\\\1", cut)
