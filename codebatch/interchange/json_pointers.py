"""Findings in JSON that a user describes with JSON pointers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec
from msgspec import UNSET

from codebatch.interchange.reports import (
    ImportedFinding,
    ImportedReport,
    SeverityWords,
    UnreadableReport,
    decode_lines,
    decode_report,
    limit_findings,
    sample_text,
    to_location_number,
    unknown_line,
)
from codebatch.model.analysis.report_formats import FINDING_MEMBERS, JsonFormat, JsonLinesFormat
from codebatch.model.record import Severity
from codebatch.model.text.json_pointers import EVERY_ELEMENT, pointer_steps, resolve_steps

_decoder = msgspec.json.Decoder()
_EXPECTED_MEMBERS = ("path", "line", "severity")
"""Members that at least one finding of a report has. If none has one of them, its pointer is probably wrong."""

_Levels: TypeAlias = tuple[object, ...]
"""The document of a finding, the element for each `*` in `items`, and the finding."""
_Getter: TypeAlias = Callable[[_Levels], object]


def read_json_pointers(form: JsonFormat, data: bytes, default_severity: Severity = "warning") -> ImportedReport:
    """Read the findings of a JSON document, or of the documents in lines. Raises UnreadableReport."""
    converter = _FindingConverter(form, default_severity)
    reading = _Reading(form)
    findings = list(limit_findings(map(converter.convert, reading.iter_findings(data))))
    missing = [name for name in converter.missing if findings]
    if missing:
        replaced = f"no value at {getattr(form, missing[0])}"
        findings = [finding._replace(replaced=finding.replaced or replaced) for finding in findings]
    return ImportedReport(findings, other_text=reading.other_text)


class _Reading:
    """A reading of the levels of all findings. `other_text` is the beginning of the first document without one."""

    def __init__(self, form: JsonFormat) -> None:
        self._form = form
        self._steps = pointer_steps(form.items)
        self._has_items = False
        self.other_text = ""

    def iter_findings(self, data: bytes) -> Iterator[_Levels]:
        """Yield the levels of each finding. Raises UnreadableReport.

        In a single document, at least one element must have a value at `items`, unless there are no elements.
        """
        if not isinstance(self._form, JsonLinesFormat):
            document = decode_report(data, _decoder)
            yield from self._select(document, self._steps, (), is_optional=False)
            if not self._has_items and EVERY_ELEMENT in self._steps and _has_elements(document, self._steps):
                raise UnreadableReport(f"none of its elements has a value at {self._form.items}")
            return
        for number, document in decode_lines(data, _decoder):
            self._has_items = False
            try:
                yield from self._select(document, self._steps, (), is_optional=True)
            except UnreadableReport as error:
                raise UnreadableReport(f"line {number}: {error}") from error
            if not self._has_items and not self.other_text:
                self.other_text = sample_text(msgspec.json.encode(document).decode())

    def _select(self, value: object, steps: Sequence[str], outer: _Levels, *, is_optional: bool) -> Iterator[_Levels]:
        """Yield the levels of each finding below `value`.

        Raises UnreadableReport if a value is not an array as required, or is missing although it is not optional.
        """
        count = steps.index(EVERY_ELEMENT) if EVERY_ELEMENT in steps else len(steps)
        found = resolve_steps(value, steps[:count])
        if found is UNSET and not is_optional:
            raise UnreadableReport(f"it has no value at {_pointer(steps[:count])}")
        if found is UNSET:
            return
        if count == len(steps) or not found:
            self._has_items = True
        if found is None:
            return
        if count == len(steps):
            yield from ((*outer, value, item) for item in (found if isinstance(found, list) else [found]))
        elif isinstance(found, list):
            for element in found:
                yield from self._select(element, steps[count + 1 :], (*outer, value), is_optional=True)
        else:
            raise UnreadableReport(f"the value at {_pointer(steps[:count]) or 'the top'} is not an array")


def _has_elements(document: object, steps: Sequence[str]) -> bool:
    """Return whether the outermost array that `steps` name has an element."""
    return bool(resolve_steps(document, steps[: steps.index(EVERY_ELEMENT)]))


class _FindingConverter:
    """A converter of findings in one format. It has the steps of each pointer."""

    def __init__(self, form: JsonFormat, default_severity: Severity) -> None:
        self._form = form
        self._severities = SeverityWords(form.severities, default_severity)
        pointers = {name: pointer for name in FINDING_MEMBERS if (pointer := getattr(form, name))}
        self._getters = {name: _make_getter(pointer) for name, pointer in pointers.items()}
        self.missing = [name for name in _EXPECTED_MEMBERS if name in pointers]
        """The expected members that no finding has so far."""

    def convert(self, levels: _Levels) -> ImportedFinding:
        """Return a finding. Raises UnreadableReport if it has no message."""
        form = self._form
        values = {name: get(levels) for name, get in self._getters.items()}
        message = _text(values["message"])
        if message is None:
            raise UnreadableReport(f"a finding has no text at {form.message}")
        if self.missing:
            self.missing = [name for name in self.missing if values[name] is UNSET]
        path = values["path"]
        severity, unknown_severity = self._severities.find(_text(values.get("severity")) or "")
        return ImportedFinding(
            paths=(path,) if isinstance(path, str) and path else (),
            message=message,
            severity=severity,
            code=_text(values.get("code")) or "",
            tool=_text(values.get("tool")) or "",
            line=to_location_number(values["line"], form.first_line),
            column=to_location_number(values.get("column"), form.first_column),
            end_line=to_location_number(values.get("end_line"), form.first_line),
            end_column=to_location_number(values.get("end_column"), form.first_column),
            unit=form.column_unit,
            replaced=unknown_severity or unknown_line(None if values["line"] is UNSET else values["line"]),
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
