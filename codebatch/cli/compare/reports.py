"""The violations of a check as findings, and the reports of a check for other programs (`check --report`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from codebatch.cli.answers.differences import change_text
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.framework.output_files import (
    STANDARD_OUTPUT,
    is_null_device,
    is_standard_stream,
    refuse_in_store,
    resolve_output,
    write_target,
)
from codebatch.compare.conditions import GATE_CHANGED
from codebatch.compare.differences import Change
from codebatch.errors import CodebatchError, InvalidInput
from codebatch.interchange.findings import ExportedFinding, ExportFormat, own_finding
from codebatch.model.record import Diagnostic
from codebatch.model.text.quantities import count_text
from codebatch.operations.export.export import make_report
from codebatch.operations.gate.quality_gate import CheckResult
from codebatch.query.completeness import Completeness
from codebatch.system.files.files import RealFiles

REPORT_FORMATS: tuple[ExportFormat, ...] = ("junit", "gitlab", "sarif", "checkstyle", "rdjson")


class ReportTarget(NamedTuple):
    """A report to write, and its path as the user gave it."""

    form: ExportFormat
    name: str
    path: Path


class WrittenReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report that was written. `excluded` describes what was left out because of limits of the format."""

    form: ExportFormat
    path: str
    count: int
    excluded: tuple[str, ...]


def violations(checked: CheckResult) -> Iterator[ExportedFinding]:
    """Yield what fails a check: changed settings and metrics as findings of codebatch, and findings."""
    if any(result.condition == GATE_CHANGED and result.verdict == "failed" for result in checked.judged):
        for setting in checked.changed_settings or ():
            name, extension, keys = setting.partition(".toml: ")
            path = f"{name}.toml" if extension else setting
            message = f"settings of the check differ from the base{f': {keys}' if keys else ''}"
            yield own_finding(path.encode(), GATE_CHANGED, message)
    yield from map(_as_finding, checked.forbidden)


def _as_finding(change: Change) -> ExportedFinding:
    record = change.record
    if isinstance(record, Diagnostic):
        return ExportedFinding(record, record.path_bytes, change.state)
    code = str(getattr(record, "metric", record.__struct_config__.tag))
    line = max(getattr(record, "line", 1), 1)
    return own_finding(record.path_bytes, code, change_text(change), line=line)


def resolve_reports(reports: Sequence[str], store_root: Path | None, baseline: Path | None) -> list[ReportTarget]:
    """Return the reports to write, given as FORMAT=FILE. Remove older files: a check that fails would leave them.

    Raises InvalidInput if one of them is invalid, or is the baseline.
    """
    targets: list[ReportTarget] = []
    for text in reports:
        word, separator, name = text.partition("=")
        form = next((form for form in REPORT_FORMATS if form == word), None)
        if form is None or not separator:
            raise InvalidInput(
                f"--report {text!r} is not FORMAT=FILE", hint=f"FORMAT is one of: {', '.join(REPORT_FORMATS)}"
            )
        example = f"codebatch check --report {form}=FILE"
        if name == STANDARD_OUTPUT or is_standard_stream(Path(name)):
            raise InvalidInput(
                "--report writes a file; standard output has the verdict", hint=f"for example: {example}"
            )
        path = resolve_output(name, example)
        if store_root is not None:
            refuse_in_store(path, store_root)
        if baseline is not None and path == baseline.resolve():
            raise InvalidInput(f"--report {name!r} is the file of --baseline")
        if path in [target.path for target in targets] and not is_null_device(path):
            raise InvalidInput(f"two reports cannot be the same file, {name!r}")
        targets.append(ReportTarget(form, name, path))
    for target in targets:
        if not is_null_device(target.path):
            RealFiles().remove(target.path)
    return targets


def write_reports(
    checked: CheckResult, targets: Sequence[ReportTarget], completeness: Completeness, *, is_accepted: bool
) -> tuple[list[WrittenReport], CodebatchError | None]:
    """Write the reports of a check. Return those that were written, and the error of the first other one.

    `completeness` is that of the check. `is_accepted` is set if the user accepts that the check is incomplete.
    """
    checked.head.question.ignored_paths += tuple(os.fsencode(target.path) for target in targets)
    written: list[WrittenReport] = []
    failure: CodebatchError | None = None
    allowed = [_as_finding(change)._replace(is_allowed=True) for change in checked.allowed]
    for target in targets:
        report = make_report(
            checked.head, target.form, [*violations(checked), *allowed], completeness, is_accepted=is_accepted
        )
        try:
            write_target(target.path, report.data)
        except CodebatchError as error:
            failure = failure or error
        else:
            row = WrittenReport(form=target.form, path=target.name, count=report.count, excluded=report.excluded)
            written.append(row)
    return written, failure


def note_reports(context: CommandContext, written: Sequence[WrittenReport]) -> None:
    """Print where the reports are, and what they lack."""
    for report in written:
        context.note(f"{report.form} report: {report.path} ({count_text(report.count, 'finding')})")
        for text in report.excluded:
            context.report(f"{report.path}: {text}")
