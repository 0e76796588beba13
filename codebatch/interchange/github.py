"""Annotations of a GitHub workflow, and the summary of a job.

For each step of a workflow, GitHub shows at most ten annotations of each kind (error, warning, notice). It does not
show that there are more. So ten of each kind are printed, and the summary counts the others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from codebatch.interchange.findings import Export, ExportedFinding, ExportedFindings
from codebatch.interchange.locations import path_text, printable_text
from codebatch.interchange.summary import make_summary
from codebatch.model.record import Severity
from codebatch.model.text.quantities import count_text

ANNOTATIONS_MAX = 10
"""Maximum number of annotations of one kind that GitHub shows for a step."""
_ANNOTATION_KINDS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "notice", "hint": "notice"}
# The message is the text after the second `::`, up to the end of the line. A property also ends at `,` or `:`.
_TEXT_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY_ESCAPES = {**_TEXT_ESCAPES, ":": "%3A", ",": "%2C"}
_SPECIAL_CHARACTER = re.compile("[%\r\n:,]")


def export_github(exported: ExportedFindings) -> Export:
    """Return annotations of the first findings of each kind, and a summary that counts all findings."""
    lines = []
    printed: Counter[str] = Counter()
    omitted: Counter[str] = Counter()
    for finding in exported.findings:
        kind = _ANNOTATION_KINDS[finding.diagnostic.severity]
        if printed[kind] < ANNOTATIONS_MAX:
            printed[kind] += 1
            lines.append(annotation_command(kind, finding))
        else:
            omitted[kind] += 1
    return Export(
        data="".join(f"{line}\n" for line in lines).encode(),
        count=len(lines),
        excluded=tuple(_omission_notes(omitted)),
        summary=make_summary(exported),
    )


def _omission_notes(omitted: Mapping[str, int]) -> Iterator[str]:
    for kind, count in omitted.items():
        yield f"omitted: {count_text(count, kind)}, because GitHub shows at most {ANNOTATIONS_MAX} per step"


def annotation_command(kind: str, exported: ExportedFinding) -> str:
    """Return the workflow command that shows a finding as an annotation, on one line.

    `kind` is error, warning or notice.
    """
    diagnostic = exported.diagnostic
    properties: dict[str, object] = {"file": path_text(exported.path)}
    if diagnostic.line >= 1:
        properties |= {
            "line": diagnostic.line,
            "endLine": max(diagnostic.end_line - (diagnostic.end_column <= 1), diagnostic.line),
        }
        if diagnostic.end_line == diagnostic.line and diagnostic.column >= 1:
            properties |= {"col": diagnostic.column, "endColumn": max(diagnostic.end_column, diagnostic.column)}
    properties["title"] = f"{diagnostic.code} ({diagnostic.tool})"
    return workflow_command(kind, diagnostic.message, properties)


def workflow_command(kind: str, message: str, properties: Mapping[str, object]) -> str:
    """Return a workflow command that adds an annotation: `::warning title=…::message`."""
    property_list = ",".join(
        f"{name}={_escape_text(str(value), _PROPERTY_ESCAPES)}" for name, value in properties.items()
    )
    return f"::{kind} {property_list}::{_escape_text(message, _TEXT_ESCAPES)}"


def _escape_text(text: str, escapes: Mapping[str, str]) -> str:
    """Return a text on one line. Line ends and special characters are replaced as `escapes` says.

    Other control characters are escaped too.
    """
    lines = (printable_text(line) for line in re.split("(\r|\n)", text))
    return "".join(_SPECIAL_CHARACTER.sub(lambda match: escapes.get(match[0], match[0]), line) for line in lines)
