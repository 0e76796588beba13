"""Output of `codebatch check` for the CI service of the job: annotations of lines, and a summary of the job."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from codebatch.cli.compare.reports import violations
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.framework.output_files import append_summary
from codebatch.interchange.azure import ISSUES_MAX, issue_command
from codebatch.interchange.findings import ExportedFinding, ExportedFindings
from codebatch.interchange.github import ANNOTATIONS_MAX, annotation_command, workflow_command
from codebatch.interchange.locations import path_text, printable_text
from codebatch.interchange.summary import SUMMARY_BYTES_MAX, make_summary
from codebatch.model.program_call import ProgramFailed
from codebatch.model.text.quantities import count_text
from codebatch.operations.gate.quality_gate import CheckResult
from codebatch.system.processes.environment import program_directories
from codebatch.system.processes.programs import run_with_input

TITLE = "codebatch check"
_BUILDKITE_AGENT = "buildkite-agent"
_NAMES_SHOWN_MAX = 3
_AGENT_SECONDS_MAX = 60.0
_AGENT_BYTES_MAX = 1 << 20


def print_service_output(
    context: CommandContext, checked: CheckResult, advice: Sequence[str], missing: str, kind: str
) -> None:
    """Print the violations of a check as the CI service shows them: annotations and a summary.

    `missing` describes why the check is incomplete, or is empty; `kind` is that of its annotation: error or warning.
    With `--json`, annotations are printed on standard error, because the services read both streams. The verdict of the
    check does not depend on them.
    """
    found = list(violations(checked))
    missing = f"incomplete: {missing}" if missing and checked.is_compared else missing
    has_error = bool(missing) and kind == "error"
    if os.environ.get("GITHUB_ACTIONS") == "true":
        lines = [workflow_command(kind, missing, {"title": TITLE})] * bool(missing)
        lines += [workflow_command("warning", line, {"title": TITLE}) for line in _hiding_lines(checked)]
        shown = ANNOTATIONS_MAX - has_error
        lines += [annotation_command("error", finding) for finding in found[:shown]]
        _print_annotations(context, lines, len(found) - shown, f"GitHub shows at most {ANNOTATIONS_MAX}")
        if os.environ.get("GITHUB_STEP_SUMMARY"):
            try:
                append_summary(
                    context, Path(os.environ["GITHUB_STEP_SUMMARY"]), _summary(checked, found, (missing, *advice))
                )
            except OSError as error:
                context.report(f"summary not written: {error.strerror}")
    elif os.environ.get("TF_BUILD") == "True":
        lines = [issue_command(missing, {"type": kind})] * bool(missing)
        lines += [issue_command(line, {"type": "warning"}) for line in _hiding_lines(checked)]
        lines += map(_issue_line, found)
        _print_annotations(
            context, lines, len(found) + has_error - ISSUES_MAX, f"Azure Pipelines shows at most {ISSUES_MAX}"
        )
    elif os.environ.get("BUILDKITE") == "true":
        _annotate_build(
            context, _summary(checked, found, (missing, *advice)), "success" if checked.has_passed else kind
        )


def _print_annotations(context: CommandContext, lines: Sequence[str], hidden: int, limit: str) -> None:
    if hidden > 0:
        context.report(f"{hidden:,} more are not annotated, because {limit} per step")
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


def unchecked_lines(checked: CheckResult) -> list[str]:
    """Return which tasks HEAD did not run, and which changed files fewer rules check than in the base."""
    lines, files, tasks = list[str](), checked.unchecked.less_checked_files, checked.unchecked.tasks_not_run
    if tasks:
        count = count_text(len(tasks), "task")
        lines.append(f"the findings of {count} are unknown, because HEAD did not run: {first_names(tasks)}")
    if files:
        lines.append(f"fewer rules check {count_text(len(files), 'changed file')}: {first_names(files)}")
    return lines


def first_names(names: Sequence[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    more = [f"{len(names) - _NAMES_SHOWN_MAX:,} more"] * (len(names) > _NAMES_SHOWN_MAX)
    return ", ".join([*names[:_NAMES_SHOWN_MAX], *more])


def _hiding_lines(checked: CheckResult) -> list[str]:
    return [*settings_lines(checked)[1:], *unchecked_lines(checked)]


def _issue_line(finding: ExportedFinding) -> str:
    about = finding.diagnostic
    properties = {
        "sourcepath": path_text(finding.path),
        "linenumber": max(about.line, 1),
        "columnnumber": max(about.column, 1),
        "code": about.code,
    }
    return issue_command(about.message, properties)


def _annotate_build(context: CommandContext, summary: bytes, style: str) -> None:
    """Add the annotation of this step to the build in Buildkite. A retry of the step replaces it."""
    program = shutil.which(_BUILDKITE_AGENT, path=os.pathsep.join(program_directories()))
    step = os.environ.get("BUILDKITE_STEP_ID")
    name = f"codebatch-check-{step}" if step else "codebatch-check"
    try:
        if program is None:
            raise ProgramFailed("it is not on PATH")
        arguments = [program, "annotate", "--style", style, "--context", name]
        run_with_input(arguments, Path.cwd(), summary, seconds=_AGENT_SECONDS_MAX, bytes_max=_AGENT_BYTES_MAX)
    except ProgramFailed as error:
        context.report(f"annotation not added by {_BUILDKITE_AGENT}: {error}")


def _summary(checked: CheckResult, found: Sequence[ExportedFinding], notes: Sequence[str]) -> bytes:
    """Return the verdict of a check in Markdown, with a table of what violates a condition. `notes` can be empty."""
    verdict = "passed" if checked.has_passed else "not passed"
    head = [f"# {TITLE}: {verdict}", "", *([f"Base: {_code(checked.base.why)}", ""] if checked.is_compared else ())]
    if checked.judged:
        head += ["| condition | value | limit | verdict |", "| --- | ---: | ---: | --- |"]
        head += [
            f"| {_code(row.condition)} | {'' if row.value is None else row.value} | {row.limit} | {row.verdict} |"
            for row in checked.judged
        ]
    head += [
        line
        for text in (*settings_lines(checked), *unchecked_lines(checked), *filter(None, notes))
        for line in ("", _code(text))
    ]
    text = "".join(f"{line}\n" for line in (*head, "")).encode()
    listed = ExportedFindings(findings=tuple(found), tools={}, incomplete="")
    return text + (make_summary(listed, SUMMARY_BYTES_MAX - len(text)) if found else b"")


def _code(text: str) -> str:
    return f"`{printable_text(text).replace('`', '')}`".replace("|", "\\|")
