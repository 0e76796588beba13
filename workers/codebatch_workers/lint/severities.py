"""How bad a finding is where it stands: less in what the project is not made of."""

from __future__ import annotations

from codebatch.model.record import CLASSES_APART, SEVERITIES, FileClass, Severity

_MEANT_FOR_TESTS = frozenset(("private-key", "syntax-error"))
"""What tests and their data have on purpose."""


def severity_in(file_class: FileClass, code: str, severity: Severity) -> Severity:
    """How bad a finding is in a file of a class, of a rule that is this bad in code that the project is made of.

    In tests, fixtures, examples, templates, and what others or programs wrote it is a step less.
    """
    if file_class not in CLASSES_APART:
        return severity
    rank = SEVERITIES.index(severity)
    if code in _MEANT_FOR_TESTS and file_class in ("test", "fixture"):
        return SEVERITIES[max(rank, SEVERITIES.index("info"))]
    return SEVERITIES[min(rank + 1, len(SEVERITIES) - 1)]
