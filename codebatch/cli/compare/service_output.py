"""Output of `codebatch check` for the CI service of the job: annotations of lines, and a summary of the job."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from codebatch.cli.answers.differences import change_line
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.framework.output_files import append_summary
from codebatch.compare.differences import Change
from codebatch.interchange.azure import issue_command
from codebatch.interchange.findings import ExportedFinding, ExportedFindings
from codebatch.interchange.github import ANNOTATIONS_MAX, annotation_command, workflow_command
from codebatch.interchange.locations import path_text, printable_text
from codebatch.interchange.summary import make_summary
from codebatch.model.record import Diagnostic
from codebatch.model.text.quantities import count_text
from codebatch.operations.gate.base_selection import NotCompared
from codebatch.operations.gate.quality_gate import CheckResult

TITLE = "codebatch check"


def print_service_output(context: CommandContext, checked: CheckResult, advice: Sequence[str], kind: str) -> None:
    """Print the annotations of the violations of a check, and append a summary, if the CI service shows them.

    `kind` is that of an annotation that nothing was compared: error or warning. With `--json`, the annotations are
    printed on standard error, because the services read both streams.
    """
    if os.environ.get("GITHUB_ACTIONS") == "true":
        lines = list(_github_lines(checked, kind))
        more = len(checked.forbidden) - ANNOTATIONS_MAX
        if more > 0:
            context.report(f"{more:,} more are not annotated, because GitHub shows at most {ANNOTATIONS_MAX} per step")
        if os.environ.get("GITHUB_STEP_SUMMARY"):
            try:
                append_summary(context, Path(os.environ["GITHUB_STEP_SUMMARY"]), _summary(checked, advice))
            except OSError as error:  # The verdict of the check does not depend on it.
                context.report(f"summary not written: {error.strerror}")
    elif os.environ.get("TF_BUILD") == "True":
        lines = list(_azure_lines(checked))
    else:
        return
    if context.as_json:
        for line in lines:
            context.report(line)
    else:
        context.print(None, lines)


def settings_lines(checked: CheckResult) -> list[str]:
    """Return which settings of the check differ from the base, and how many findings they hide."""
    hidden, changed = checked.hidden, "; ".join(checked.changed_settings or ())
    if not checked.is_compared or not (changed or hidden.unknown_reason):
        return []
    if not changed:
        return [f"settings of the check were not compared: {hidden.unknown_reason}"]
    lines = [f"settings of the check differ from the base: {changed}"]
    if hidden.findings is None:
        lines.append(f"it is unknown how many findings these settings hide: {hidden.unknown_reason}")
    if hidden.findings:
        verb = "is" if hidden.findings == 1 else "are"
        lines.append(f"{count_text(hidden.findings, 'finding')} {verb} no longer looked for: {changed}")
    if hidden.lowered:
        verb = "has" if hidden.lowered == 1 else "have"
        lines.append(f"{count_text(hidden.lowered, 'finding')} {verb} a lower severity: {changed}")
    return lines


def _github_lines(checked: CheckResult, kind: str) -> Iterator[str]:
    if isinstance(checked.base, NotCompared):
        yield workflow_command(kind, f"not compared: {checked.base.why}", {"title": TITLE})
    for line in settings_lines(checked)[1:]:
        yield workflow_command("warning", line, {"title": TITLE})
    for change in checked.forbidden[:ANNOTATIONS_MAX]:
        if isinstance(change.new, Diagnostic):
            yield annotation_command("error", ExportedFinding(change.new, change.new.path_bytes))
        else:
            yield workflow_command("error", change_line(change), {**_place(change, "file", "line"), "title": TITLE})


def _azure_lines(checked: CheckResult) -> Iterator[str]:
    if isinstance(checked.base, NotCompared):
        yield issue_command(f"not compared: {checked.base.why}", {})
    for line in settings_lines(checked)[1:]:
        yield issue_command(line, {"type": "warning"})
    for change in checked.forbidden:
        code = {"code": change.new.code} if isinstance(change.new, Diagnostic) else {}
        yield issue_command(change_line(change), {**_place(change, "sourcepath", "linenumber"), **code})


def _place(change: Change, file: str, line: str) -> Mapping[str, object]:
    record = change.new or change.old
    assert record is not None, "it is in one of the two"
    return {file: path_text(record.path_bytes), line: max(getattr(record, "line", 1), 1)}


def _summary(checked: CheckResult, advice: Sequence[str]) -> bytes:
    """Return the verdict of a check in Markdown, with a table of the findings that violate a condition."""
    findings = tuple(
        ExportedFinding(change.new, change.new.path_bytes)
        for change in checked.forbidden
        if isinstance(change.new, Diagnostic)
    )
    verdict = "passed" if checked.has_passed else "not passed"
    head = [f"# {TITLE}: {verdict}", "", f"Base: {_code(checked.base.why)}", ""]
    if checked.judged:
        head += ["| condition | value | limit | verdict |", "| --- | ---: | ---: | --- |"]
        head += [
            f"| {_code(row.condition)} | {'' if row.value is None else row.value} | {row.limit} | {row.verdict} |"
            for row in checked.judged
        ]
    head += [line for text in (*settings_lines(checked), *advice) for line in ("", _code(text))]
    text = "".join(f"{line}\n" for line in (*head, "")).encode()
    return text + (make_summary(ExportedFindings(findings=findings, tools={}, incomplete="")) if findings else b"")


def _code(text: str) -> str:
    return f"`{printable_text(text).replace('`', '')}`".replace("|", "\\|")
