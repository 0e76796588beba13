"""Severities of findings by where they are found: less in files that are not the project's own code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from codebatch.model.record import CLASSES_APART, SEVERITIES, Diagnostic, FileClass, Severity
from codebatch_workers.syntax.source import SourceFile

_UNUSED = ("F401", "F841")
"""Rules about what nothing uses: true, and of no harm, in files that few people edit."""
_WRITTEN_BY_OTHERS: frozenset[FileClass] = frozenset(("generated", "minified", "vendored"))
_UNEDITED: frozenset[FileClass] = CLASSES_APART | {"migration"}
_ON_PURPOSE: Mapping[str, frozenset[FileClass]] = {
    "private-key": frozenset(("test", "example", "documentation")),
    **dict.fromkeys(
        (
            *("syntax-error", "bidi-control", "invalid-encoding"),
            *("PLE2510", "PLE2512", "PLE2513", "PLE2514", "PLE2515"),
        ),
        frozenset(("test",)),
    ),
}
"""Classes of files that contain what a rule finds on purpose: a test that cannot be parsed would fail if it ran."""

_FIRST_CELL = re.compile(r"from cell (\d+)")
_AS = re.compile(r"\bas[ \t]+\Z")


def severity_in(file_class: FileClass, code: str, severity: Severity) -> Severity:
    """Return the severity of a rule's findings in files of a class, given the severity in the project's own code.

    Data of tests is wrong on purpose: its findings are hints. In code that programs or others wrote, a finding is two
    steps less grave, in tests, examples, templates and documentation one step.
    """
    if file_class == "fixture" or (file_class in _UNEDITED and code in _UNUSED):
        return "hint"
    if file_class not in CLASSES_APART:
        return severity
    if file_class in _ON_PURPOSE.get(code, ()):
        return "hint"
    return lower_severity(severity, 2 if file_class in _WRITTEN_BY_OTHERS else 1)


def lower_severity(severity: Severity, steps: int) -> Severity:
    """Return the severity that is some steps less grave; nothing is less than a hint."""
    return SEVERITIES[min(SEVERITIES.index(severity) + steps, len(SEVERITIES) - 1)]


def is_hint_here(file: SourceFile, found: Diagnostic) -> bool:
    """Return whether a finding is a hint by its place in the file, whatever the severity of its rule is."""
    is_hint = _HINTS.get(found.code)
    return is_hint is not None and is_hint(file, found)


def _text(file: SourceFile, found: Diagnostic) -> str:
    """Return the line where a finding begins."""
    start = file.line_starts[found.line - 1]
    end = file.utf8.find(b"\n", start) % (len(file.utf8) + 1)
    return file.utf8[start:end].decode("utf-8", "replace")


def _is_defined_in_another_cell(file: SourceFile, found: Diagnostic) -> bool:
    """People run cells in any order and again: a second definition in another cell replaces the first on purpose."""
    place = file.notebook.place(found.line) if file.notebook is not None else None
    first = _FIRST_CELL.search(found.message)
    return place is not None and first is not None and int(first[1]) != place[0]


def _is_bound_by_as(file: SourceFile, found: Diagnostic) -> bool:
    """`except ValueError as error:` and `with lock as held:` do their work whether or not something uses the name."""
    return _AS.search(_text(file, found)[: found.column - 1]) is not None


def _is_alone_in_test(file: SourceFile, found: Diagnostic) -> bool:
    """A statement in a test that is an undefined name alone is there to raise a NameError."""
    return file.file_class == "test" and found.end_line == found.line and _text(file, found).strip().isidentifier()


_HINTS: Mapping[str, Callable[[SourceFile, Diagnostic], bool]] = {
    "F811": _is_defined_in_another_cell,
    "F821": _is_alone_in_test,
    "F841": _is_bound_by_as,
}
