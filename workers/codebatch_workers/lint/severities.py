"""Severities of findings by file class. They are lower in files that are not the project's own production code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from codebatch.model.record import NON_PRODUCTION_CLASSES, SEVERITIES, Diagnostic, FileClass, Severity
from codebatch_workers.syntax.source import SourceFile

_UNUSED_NAME_CODES = ("F401", "F841")
"""Rules about unused names. In files that developers do not edit, their findings are correct but harmless."""
_CLASSES_NOT_WRITTEN_BY_HAND: frozenset[FileClass] = frozenset(("generated", "minified", "vendored"))
_RARELY_EDITED_CLASSES: frozenset[FileClass] = NON_PRODUCTION_CLASSES | {"migration"}
_CLASSES_WITH_INTENDED_FINDINGS: Mapping[str, frozenset[FileClass]] = {
    "private-key": frozenset(("test", "example", "documentation")),
    **dict.fromkeys(
        (
            *("syntax-error", "bidi-control", "invalid-encoding"),
            *("PLE2510", "PLE2512", "PLE2513", "PLE2514", "PLE2515"),
        ),
        frozenset(("test",)),
    ),
}
"""For some rules, the classes of files that contain violations on purpose.

For example, a syntax error in a test must be intended: the test would fail otherwise.
"""

_FIRST_CELL_IN_MESSAGE = re.compile(r"from cell (\d+)")
_AS_KEYWORD = re.compile(r"\bas[ \t]+\Z")


def severity_in(file_class: FileClass, code: str, severity: Severity) -> Severity:
    """Return the severity of a rule in files of a class. `severity` is its severity in production code.

    Test data is wrong on purpose, so all findings in it are hints. In other files that are not production code, a rule
    with violations on purpose is a hint. Other severities are lowered by two steps in generated, minified and vendored
    code, and by one step in tests, examples, templates and documentation.
    """
    if file_class == "fixture" or (file_class in _RARELY_EDITED_CLASSES and code in _UNUSED_NAME_CODES):
        return "hint"
    if file_class not in NON_PRODUCTION_CLASSES:
        return severity
    if file_class in _CLASSES_WITH_INTENDED_FINDINGS.get(code, ()):
        return "hint"
    return lower_severity(severity, 2 if file_class in _CLASSES_NOT_WRITTEN_BY_HAND else 1)


def lower_severity(severity: Severity, steps: int) -> Severity:
    """Return the severity that is `steps` lower, but not lower than `hint`."""
    return SEVERITIES[min(SEVERITIES.index(severity) + steps, len(SEVERITIES) - 1)]


def is_downgraded_to_hint(file: SourceFile, finding: Diagnostic) -> bool:
    """Return whether the code at the location of a finding makes the finding a hint.

    The severity of its rule does not matter.
    """
    is_hint = _HINT_PREDICATES.get(finding.code)
    return is_hint is not None and is_hint(file, finding)


def _line_text(file: SourceFile, finding: Diagnostic) -> str:
    """Return the text of the line in which a finding begins."""
    start = file.line_starts[finding.line - 1]
    end = file.utf8.find(b"\n", start) % (len(file.utf8) + 1)
    return file.utf8[start:end].decode("utf-8", "replace")


def _is_defined_in_another_cell(file: SourceFile, finding: Diagnostic) -> bool:
    """Return whether a redefined name was first defined in another cell of a notebook.

    Cells run in any order, so such a redefinition is intended.
    """
    place = file.notebook.cell_location(finding.line) if file.notebook is not None else None
    first = _FIRST_CELL_IN_MESSAGE.search(finding.message)
    return place is not None and first is not None and int(first[1]) != place[0]


def _is_bound_by_as(file: SourceFile, finding: Diagnostic) -> bool:
    """Return whether `as` binds an unused name, as in `except ValueError as error:`.

    Without the name, the statement would still be needed.
    """
    return _AS_KEYWORD.search(_line_text(file, finding)[: finding.column - 1]) is not None


def _is_only_in_test(file: SourceFile, finding: Diagnostic) -> bool:
    """Return whether a finding is in a test, on a line that contains only an undefined name.

    The purpose of this line is to raise a NameError.
    """
    return (
        file.file_class == "test"
        and finding.end_line == finding.line
        and _line_text(file, finding).strip().isidentifier()
    )


_HINT_PREDICATES: Mapping[str, Callable[[SourceFile, Diagnostic], bool]] = {
    "F811": _is_defined_in_another_cell,
    "F821": _is_only_in_test,
    "F841": _is_bound_by_as,
}
