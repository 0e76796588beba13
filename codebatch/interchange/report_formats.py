"""Reading of reports in any format. `codebatch.model.analysis.report_formats` has the types of the formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codebatch.interchange.checkstyle import read_checkstyle
from codebatch.interchange.json_pointers import read_json_pointers
from codebatch.interchange.jsonl import read_jsonl
from codebatch.interchange.lines import read_gcc, read_pattern
from codebatch.interchange.rdjson import read_rdjson, read_rdjsonl
from codebatch.interchange.reports import ImportedReport
from codebatch.interchange.sarif import read_sarif
from codebatch.model.analysis.report_formats import JsonFormat, PatternFormat, ReportFormat
from codebatch.model.record import Severity

_READER_BY_NAME: Mapping[str, Callable[[bytes], ImportedReport]] = {
    "checkstyle": read_checkstyle,
    "jsonl": read_jsonl,
    "rdjson": read_rdjson,
    "rdjsonl": read_rdjsonl,
    "sarif": read_sarif,
}


def read_report(form: ReportFormat, data: bytes, *, default_severity: Severity = "warning") -> ImportedReport:
    """Read a report. Raises UnreadableReport.

    `default_severity` is the severity of findings without a known severity, if the format does not define another one.
    """
    if isinstance(form, PatternFormat):
        return read_pattern(form, data, default_severity)
    if isinstance(form, JsonFormat):
        return read_json_pointers(form, data, default_severity)
    if form == "gcc":
        return read_gcc(data, default_severity)
    return _READER_BY_NAME[form](data)
