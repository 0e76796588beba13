"""Findings in JSON that a user describes with JSON pointers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec
from msgspec import UNSET

from codebatch.interchange.reports import (
    ImportedFinding,
    ImportedReport,
    UnreadableReport,
    decode_lines,
    decode_report,
    limit_findings,
    merge_severities,
    to_location_number,
)
from codebatch.model.analysis.report_formats import FINDING_MEMBERS, JsonFormat, JsonLinesFormat
from codebatch.model.record import Severity
from codebatch.model.text.json_pointers import EVERY_ELEMENT, pointer_steps, resolve_steps

_decoder = msgspec.json.Decoder()

_Levels: TypeAlias = tuple[object, ...]
"""The document of a finding, the element for each `*` in `items`, and the finding."""
_Getter: TypeAlias = Callable[[_Levels], object]


def read_json_pointers(form: JsonFormat, data: bytes, default_severity: Severity = "warning") -> ImportedReport:
    """Read the findings of a JSON document, or of the documents in lines. Raises UnreadableReport."""
    converter = _FindingConverter(form, default_severity)
    return ImportedReport(list(limit_findings(map(converter.convert, _iter_findings(form, data)))))


def _iter_findings(form: JsonFormat, data: bytes) -> Iterator[_Levels]:
    steps = pointer_steps(form.items)
    if not isinstance(form, JsonLinesFormat):
        yield from _select(decode_report(data, _decoder), steps, (), is_optional=False)
        return
    for number, document in decode_lines(data, _decoder):
        try:
            yield from _select(document, steps, (), is_optional=True)
        except UnreadableReport as error:
            raise UnreadableReport(f"line {number}: {error}") from error


def _select(value: object, steps: Sequence[str], outer: _Levels, *, is_optional: bool) -> Iterator[_Levels]:
    """Yield the levels of each finding below `value`.

    Raises UnreadableReport if a value is not an array as required, or is missing although it is not optional.
    """
    count = steps.index(EVERY_ELEMENT) if EVERY_ELEMENT in steps else len(steps)
    found = resolve_steps(value, steps[:count])
    if found is UNSET and not is_optional:
        raise UnreadableReport(f"it has no value at {_pointer(steps[:count])}")
    if found is None or found is UNSET:
        return
    if count == len(steps):
        yield from ((*outer, value, item) for item in (found if isinstance(found, list) else [found]))
    elif isinstance(found, list):
        for element in found:
            yield from _select(element, steps[count + 1 :], (*outer, value), is_optional=True)
    else:
        raise UnreadableReport(f"the value at {_pointer(steps[:count]) or 'the top'} is not an array")


class _FindingConverter:
    """A converter of findings in one format. It has the steps of each pointer."""

    def __init__(self, form: JsonFormat, default_severity: Severity) -> None:
        self._form = form
        self._default_severity = default_severity
        self._severities = merge_severities(form.severities)
        pointers = {name: pointer for name in FINDING_MEMBERS if (pointer := getattr(form, name))}
        self._getters = {name: _make_getter(pointer) for name, pointer in pointers.items()}

    def convert(self, levels: _Levels) -> ImportedFinding:
        """Return a finding. Raises UnreadableReport if it has no message."""
        form = self._form
        values = {name: get(levels) for name, get in self._getters.items()}
        message = _text(values["message"])
        if message is None:
            raise UnreadableReport(f"a finding has no text at {form.message}")
        path = values["path"]
        severity = _text(values.get("severity")) or ""
        return ImportedFinding(
            paths=(path,) if isinstance(path, str) and path else (),
            message=message,
            severity=self._severities.get(severity.lower(), self._default_severity),
            code=_text(values.get("code")) or "",
            tool=_text(values.get("tool")) or "",
            line=to_location_number(values["line"], form.first_line),
            column=to_location_number(values.get("column"), form.first_column),
            end_line=to_location_number(values.get("end_line"), form.first_line),
            end_column=to_location_number(values.get("end_column"), form.first_column),
            unit=form.column_unit,
        )


def _make_getter(pointer: str) -> _Getter:
    """Return a function that resolves a pointer: within the finding, or, if it has a `*`, within an outer element."""
    steps = pointer_steps(pointer)
    stars = steps.count(EVERY_ELEMENT)
    level = stars or -1
    last = len(steps) - steps[::-1].index(EVERY_ELEMENT) if stars else 0
    return lambda levels: resolve_steps(levels[level], steps[last:])


def _text(value: object) -> str | None:
    """Return a text, number or boolean as text, and None for other values."""
    return str(value) if isinstance(value, str | int | float) else None


def _pointer(steps: Sequence[str]) -> str:
    return "".join(f"/{step}" for step in steps)
