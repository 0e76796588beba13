"""What a step of a GitHub workflow prints to mark lines of a change, and the summary of its job.

Of each kind GitHub shows ten annotations a step and says nothing of the others: so we print ten, and count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from codebatch.exchange.findings import Outgoing
from codebatch.exchange.locations import printable_text, text_of
from codebatch.exchange.model import Export, ExportedFindings
from codebatch.exchange.summary import make_summary
from codebatch.model.record import Severity
from codebatch.model.text.quantities import count_of

ANNOTATIONS_MAX = 10
"""Of a kind, in a step."""
_KINDS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "notice", "hint": "notice"}
# Of a message everything behind the second `::` is text, in one line; of a property `,` and `:` end it too.
_IN_TEXT = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY = {**_IN_TEXT, ":": "%3A", ",": "%2C"}
_SPECIAL = re.compile("[%\r\n:,]")


def export_github(told: ExportedFindings) -> Export:
    """Annotations of the first findings of each kind, and a summary of all."""
    lines = []
    printed: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for each in told.findings:
        kind = _KINDS[each.found.severity]
        if printed[kind] < ANNOTATIONS_MAX:
            printed[kind] += 1
            lines.append(annotation(kind, each))
        else:
            left[kind] += 1
    return Export(
        data="".join(f"{line}\n" for line in lines).encode(),
        count=len(lines),
        excluded=tuple(_told(left)),
        summary=make_summary(told),
    )


def _told(left: Mapping[str, int]) -> Iterator[str]:
    for kind, count in left.items():
        yield f"omitted: {count_of(count, kind)}, because GitHub shows at most {ANNOTATIONS_MAX} per step"


def annotation(kind: str, each: Outgoing) -> str:
    """The workflow command that marks what was found, on one line."""
    found = each.found
    properties: dict[str, object] = {"file": text_of(each.path)}
    if found.line >= 1:
        properties |= {"line": found.line, "endLine": max(found.end_line - (found.end_column <= 1), found.line)}
        if found.end_line == found.line and found.column >= 1:
            properties |= {"col": found.column, "endColumn": max(found.end_column, found.column)}
    properties["title"] = f"{found.code} ({found.tool})"
    return workflow_command(kind, found.message, properties)


def workflow_command(kind: str, message: str, properties: Mapping[str, object]) -> str:
    """Return the line by which GitHub annotates a job: `::warning title=…::message`."""
    said = ",".join(f"{name}={_escaped(str(value), _IN_PROPERTY)}" for name, value in properties.items())
    return f"::{kind} {said}::{_escaped(message, _IN_TEXT)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    """A text of one line. What would steer a terminal, and is no end of a line, is shown as an escape."""
    lines = (printable_text(line) for line in re.split("(\r|\n)", text))
    return "".join(_SPECIAL.sub(lambda match: escapes.get(match[0], match[0]), line) for line in lines)
