"""How bad a finding is where it stands: less in what the project is not made of."""

from __future__ import annotations

from codebatch.model.record import CLASSES_APART, SEVERITIES, FileClass, Severity

_MEANT_SO: dict[str, tuple[frozenset[FileClass], Severity]] = {
    "F821": (frozenset(("fixture",)), "info"),
    "private-key": (frozenset(("test", "fixture", "example")), "hint"),
    "syntax-error": (frozenset(("test", "fixture")), "info"),
}
"""What tests, their data and examples have on purpose, and how bad it is there at most."""


def severity_in(file_class: FileClass, code: str, severity: Severity) -> Severity:
    """How bad a finding is in a file of a class, of a rule that is this bad in code that the project is made of.

    In tests, fixtures, examples, templates, documentation, and what others or programs wrote it is a step less.
    """
    if file_class not in CLASSES_APART:
        return severity
    rank = SEVERITIES.index(severity)
    classes, gravest = _MEANT_SO.get(code, (frozenset(), severity))
    if file_class in classes:
        return SEVERITIES[max(rank, SEVERITIES.index(gravest))]
    return SEVERITIES[min(rank + 1, len(SEVERITIES) - 1)]
