"""The command `check`: a quality gate. It compares a batch with its base and evaluates conditions on the changes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import click
import msgspec

from codebatch.cli.answers.differences import (
    STATES_COUNTED,
    STATES_SHOWN,
    change_line,
    change_row,
    counts_line,
    state_text,
)
from codebatch.cli.answers.finding_lines import source_lines
from codebatch.cli.compare.diff import CHANGES_SHOWN
from codebatch.cli.compare.reports import (
    REPORT_FORMATS,
    WrittenReport,
    note_reports,
    resolve_reports,
    write_reports,
)
from codebatch.cli.compare.service_output import first_names, print_service_output, settings_lines, unchecked_lines
from codebatch.cli.framework.answer_printing import emit_document, report_missing_contents
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import CommandContext, table_lines, with_common_options
from codebatch.cli.output.terminal import printable_line
from codebatch.cli.output.widths import terminal_width
from codebatch.cli.run.run import RunListener
from codebatch.compare.conditions import CONDITION_FORMS, DEFAULT_CONDITIONS, ConditionResult
from codebatch.compare.states import REGRESSION_STATES, ChangeState
from codebatch.errors import BatchIncomplete, InvalidInput
from codebatch.model.record import Diagnostic
from codebatch.model.text.quantities import count_text
from codebatch.operations.api.store import Store
from codebatch.operations.comparison.comparison import Comparison
from codebatch.operations.gate.base_selection import ComparisonBase, NotCompared
from codebatch.operations.gate.base_settings import HiddenFindings
from codebatch.operations.gate.condition_inputs import parse_conditions
from codebatch.operations.gate.linted_languages import count_unlinted_files
from codebatch.operations.gate.quality_gate import BaselineReference, CheckResult, GateChecker
from codebatch.operations.gate.unchecked_parts import UncheckedParts
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.queries.batch_query import Answer
from codebatch.operations.queries.source_text import source_texts
from codebatch.operations.runs.execution import ExecutionSettings
from codebatch.query.answers.omissions import omission_notes
from codebatch.query.fields import JsonRecord

EXIT_CHECK_FAILED = 1
_CHANGES_SHOWN_MAX = 50
_SOURCES_SHOWN_MAX = 10
"""Maximum number of findings whose source line is printed."""
_BASELINE_STATES: tuple[ChangeState, ...] = ("new", "unchanged", "fixed")


class CheckedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that was checked. `commit` is its git commit, or empty if unknown.

    `is_clean` is set if the batch has exactly the files of this commit.
    """

    batch_id: str
    commit: str
    is_clean: bool


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a quality gate.

    - `passed`: whether HEAD was compared, its results are complete, and no condition is violated.
    - `compared`: whether HEAD was compared with a base or a baseline.
    - `base_reason`: why this base was chosen, or why nothing was compared.
    - `counts`: the number of compared records in each state.
    - `path`: the filter of `--path`, or empty. Changes of other files are neither judged nor counted.
    - `forbidden`: all changes that violate a condition, in the form of rows of `codebatch regressions`.
    - `allowed`: the first new findings that violate no condition. `allowed_count` is the number of all such findings.
    - `outside_change`: the number of regressions that were ignored because the change did not touch their lines.
    - `on_unchanged_lines`: with `--changed-lines`, the number of other regressions that were ignored because their
      lines are unchanged since the base.
    - `not_judged`: the number of changes that may violate a condition, but for which an incomplete base has no result.
      Broken imports and uses in files with syntax errors are included.
      With a baseline, the number of its findings whose tool HEAD did not run.
    - `changed_settings`: the settings that decide about findings and that the change changes, as text. It is null if
      they are unknown.
    - `hidden`: the number of findings that these settings hide, in comparison with the settings of the base.
    - `unchecked`: the tasks that HEAD did not run, and the changed files that fewer rules check.
    - `unlinted_files`: the number of production files of each language that no linter checked. It is empty if a custom
      task or an import may have checked all languages.
    - `list_command`, `reports`: the command that lists all regressions, and the reports that were written.
    """

    passed: bool
    compared: bool
    head: CheckedBatch
    base: CheckedBatch | None
    base_reason: str
    conditions: tuple[ConditionResult, ...]
    counts: dict[str, int]
    path: str
    outside_change: int
    on_unchanged_lines: int
    not_judged: int
    changed_settings: tuple[str, ...] | None
    hidden: HiddenFindings
    forbidden: tuple[JsonRecord, ...]
    allowed: tuple[JsonRecord, ...]
    allowed_count: int
    unchecked: UncheckedParts
    unlinted_files: dict[str, int]
    list_command: str | None
    reports: tuple[WrittenReport, ...]


@command()
@click.argument("base", required=False)
@click.argument("head", required=False)
@option(
    "--fail-on",
    multiple=True,
    metavar="CONDITION",
    default_text=" and ".join(DEFAULT_CONDITIONS),
    help=f"Condition that fails the check: {', '.join(CONDITION_FORMS[:-1])} or {CONDITION_FORMS[-1]}",
    details="With new-warning, new errors fail too. With new, new findings of any severity fail. With cycle, import "
    "cycles that are new or have grown fail; with duplicate, files with more duplicated lines. metric:NAME>N fails if "
    "a value above N is new or has increased. metric:NAME+N fails if a value has increased by more than N. With "
    "unresolved-import, imports of names and files that the change removes fail; with broken-use, uses of such names "
    "through a module. With suppression-without-reason, new suppression comments without a reason fail, if the rule of "
    "this name is on. With gate-changed, settings that decide about findings fail if they differ from the base. With "
    "none, nothing fails, and new findings are listed.",
)
@option("--changed-lines", is_flag=True, help="Consider only findings on changed lines")
@common_option("path")
@option(
    "--settings-from",
    type=click.Choice(("head", "base")),
    default="head",
    help="Whose settings decide about findings; with base, a change cannot switch off its own check",
    details="With base, both sides are analysed with the settings files of the base. If this is impossible, the exit "
    "status is 3.",
)
@option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Compare with a baseline file instead of BASE",
    details="Baseline files are created with `codebatch baseline create`.",
)
@option(
    "--allow-no-base",
    "--no-base-ok",
    is_flag=True,
    help="Exit with status 0 if there is no base, such as for the first commit",
    details="The check still reports `not compared`. A base that is named but missing remains an error.",
)
@option(
    "--allow-incomparable",
    is_flag=True,
    help="Compare even if BASE and HEAD have different tasks and BASE cannot be re-analysed with the tasks of HEAD",
)
@option(
    "--report",
    "reports",
    multiple=True,
    metavar="FORMAT=FILE",
    help=f"Also write a report to a file: {', '.join(REPORT_FORMATS[:-1])} or {REPORT_FORMATS[-1]}",
    details="A report has what fails the check. In junit, allowed new findings are skipped tests. If nothing was "
    "compared, or HEAD is incomplete, each report has an error about this.",
)
@common_option("jobs")
@with_common_options
def check(
    context: CommandContext,
    base: str | None,
    head: str | None,
    fail_on: tuple[str, ...],
    changed_lines: bool,
    path: str,
    settings_from: str,
    baseline: Path | None,
    allow_no_base: bool,
    allow_incomparable: bool,
    reports: tuple[str, ...],
    jobs: int | None,
) -> int:
    """Fail if a change introduces errors or breaks imports.

    Compares HEAD, by default the latest batch, with BASE. Both are batches, @NAMEs, snapshots or git commits. A
    commit without a batch is analysed first.

    In git, the default BASE is the commit where the change starts: what the CI service states, or the merge base with
    the default branch.

    Exit status 1 if the check fails. Exit status 3 if HEAD is incomplete or nothing was compared.
    """
    conditions = parse_conditions(fail_on)
    targets = resolve_reports(reports, context.store_place.store_root(), baseline)
    execution = ExecutionSettings(configuration=load_configuration(Path.cwd()), jobs=jobs)
    store = Store(context.store_place.open(), context.note, context.report)
    uses_base = settings_from == "base"
    checker = GateChecker(store, execution, RunListener(context), os.environ, allow_incomparable, uses_base)
    if baseline is None:
        checked = checker.check(conditions, base, head, changed_lines=changed_lines, path=path)
    elif changed_lines or path or uses_base or head is not None:
        options = "--changed-lines, --path or --settings-from base"
        raise InvalidInput(f"--baseline replaces BASE and cannot be used with {options}, which need BASE")
    else:
        checked = checker.check_baseline(conditions, baseline, base)
    context.questions.append(checked.head.question)
    context.batches.append(checked.head.question.batch)
    is_allowed = isinstance(checked.base, NotCompared) and checked.base.is_allowable and allow_no_base
    completeness = checked.completeness.with_doubt(_incomplete_text(checked))
    is_accepted = is_allowed and checked.completeness.is_complete
    written, failure = write_reports(checked, targets, completeness, is_accepted=is_accepted)
    unlinted_files = count_unlinted_files(checked.head.question.records, execution.configuration.catalogue)
    status = _answer_check(context, checked, baseline, unlinted_files, written)
    words = [word for condition in dict.fromkeys(fail_on) for word in ("--fail-on", condition)]
    words += ["--changed-lines"] * changed_lines + ["--settings-from", "base"] * uses_base
    words += ["--path", path] * bool(path)
    advice = list(_advice(checked, words, baseline))
    for text in advice:
        context.relay(printable_line(text))  # It is for another machine, which does not have the store of this one.
    print_service_output(context, checked, advice, completeness.missing_text, "warning" if is_accepted else "error")
    if failure is not None:
        raise failure
    if not isinstance(checked.base, NotCompared) or is_allowed:
        return status
    ways = ["name the base with `codebatch check BASE`"] * bool(checked.head.question.batch.about.items)
    ways += ["accept this with --allow-no-base"] * checked.base.is_allowable
    context.report(f"the check has not passed: {', or '.join(ways)}")
    return status or BatchIncomplete.exit_status


def _advice(checked: CheckResult, options: Sequence[str], baseline: Path | None) -> Iterator[str]:
    """Yield how to repeat a check that failed on another machine, and how to accept a finding."""
    if not checked.forbidden:
        return
    base = checked.base.batch.about if isinstance(checked.base, ComparisonBase) else None
    if baseline is not None or (base is not None and (base.is_clean or "--settings-from" in options)):
        named = ["--baseline", str(baseline)] if base is None else [base.commit[:12]]
        command = shlex.join(["codebatch", "check", *named, *options])
        yield f"to repeat this on your machine: codebatch run . && {command}"
    codes = [change.new.code for change in checked.forbidden if isinstance(change.new, Diagnostic)]
    codes = [code for code in codes if not code.startswith(("suppression-", "syntax-error"))]  # A comment cannot help.
    if codes:
        yield f"to accept a finding, add a comment to its line: codebatch: ignore[{codes[0]}] and the reason"


def _answer_check(
    context: CommandContext,
    checked: CheckResult,
    baseline: Path | None,
    unlinted_files: dict[str, int],
    written: Sequence[WrittenReport],
) -> int:
    compared = checked.comparison
    command = _list_all_command(context, checked, baseline)
    if compared is not None and not compared.old.is_complete:
        context.report(
            f"the base {compared.old.question.batch.id} is incomplete: findings in files without a result in the "
            "base are reported as not comparable"
        )
    document = {
        "passed": checked.has_passed,
        "compared": checked.is_compared,
        "head": _checked_batch(checked.head.question.batch.about),
        "base": _checked_batch(checked.base.batch.about) if isinstance(checked.base, ComparisonBase) else None,
        "base_reason": checked.base.why,
        "conditions": tuple(checked.judged),
        "counts": dict(checked.counts),
        "path": checked.path,
        "outside_change": checked.outside_change,
        "on_unchanged_lines": checked.on_unchanged_lines,
        "not_judged": checked.not_judged,
        "changed_settings": checked.changed_settings,
        "hidden": checked.hidden,
        "forbidden": tuple(map(change_row, checked.forbidden)),
        "allowed": tuple(map(change_row, checked.allowed[:_CHANGES_SHOWN_MAX])),
        "allowed_count": len(checked.allowed),
        "unchecked": checked.unchecked,
        "unlinted_files": unlinted_files,
        "list_command": command,
        "reports": tuple(written),
    }
    if isinstance(checked.base, ComparisonBase):
        context.note(f"compared with {checked.base.batch.id} ({checked.base.why})")
    elif isinstance(checked.base, BaselineReference):
        context.note(f"compared with {checked.base.why}")
    elif context.as_json:
        context.report(_incomplete_text(checked))
    if compared is not None:
        report_missing_contents(context, compared)
    head = checked.head.question
    notes = omission_notes(head.records, head.records.task_names)
    for note in notes or ():
        context.report(note)
    answer = Answer(question=head, result=None, completeness=checked.completeness, notes=notes)
    status = emit_document(context, answer, document, _check_lines(context, checked, command))
    _report_scope(context, checked, unlinted_files)
    broken = [judged for judged in checked.judged if judged.verdict == "failed"]
    if broken:
        failed = ", ".join(f"{judged.condition} ({count_text(judged.violations, 'time')})" for judged in broken)
        context.report(f"failed: {failed}")
    if checked.not_judged:
        context.report(f"incomplete: {_incomplete_text(checked)}")
    note_reports(context, written)
    return status or (EXIT_CHECK_FAILED if broken else BatchIncomplete.exit_status if checked.not_judged else 0)


def _report_scope(context: CommandContext, checked: CheckResult, unlinted_files: dict[str, int]) -> None:
    """Print what restricts the answer: a path, changed settings, and languages without a linter."""
    if checked.path:
        context.note(f"only changes of files with the path {checked.path!r} are judged")
    has_commit = isinstance(checked.base, ComparisonBase) and bool(checked.base.batch.about.commit)
    for line in settings_lines(checked):
        (context.report if has_commit else context.note)(line)
    for line in unchecked_lines(checked):
        context.report(line)
    if unlinted_files:
        texts = [f"{name} ({count_text(count, 'file')})" for name, count in unlinted_files.items()]
        context.note(f"no linter checked {first_names(texts)}; to add one: codebatch help linters")


def _checked_batch(about: object) -> CheckedBatch:
    return msgspec.convert(about, CheckedBatch, from_attributes=True)


def _list_all_command(context: CommandContext, checked: CheckResult, baseline: Path | None) -> str | None:
    """Return the command that lists all regressions. Return None if nothing was compared."""
    if checked.comparison is not None:
        count = sum(checked.counts.get(state, 0) for state in REGRESSION_STATES)
        limit = ("--limit", str(count)) if count > CHANGES_SHOWN else ()
        words = ["regressions", *_comparison_words(checked.comparison, checked.path), *limit]
    elif baseline is not None and checked.is_compared:
        words = ["check", "--baseline", str(baseline), "--fail-on", "new", "--json"]
    else:
        return None
    return context.complete_hint(f": codebatch {shlex.join(words)}").removeprefix(": ")


def _comparison_words(compared: Comparison, path: str) -> list[str]:
    """Return the arguments of a command that compares the same batches, files and record types."""
    kinds = [word for kind in compared.kinds for word in ("--kind", kind)]
    ids = (compared.old.question.batch.id, compared.new.question.batch.id)
    return [*ids, *(kinds if len(kinds) > 2 else ()), *["--path", path] * bool(path)]


def _incomplete_text(checked: CheckResult) -> str:
    """Return why changes were not judged, or an empty text."""
    if isinstance(checked.base, NotCompared):
        return f"not compared: {checked.base.why}"
    if not checked.not_judged:
        return ""
    if isinstance(checked.base, BaselineReference):
        tools = ", ".join(checked.base.tools_not_run)
        return f"HEAD did not run {tools}, which reported {count_text(checked.not_judged, 'finding')} of the baseline"
    count = count_text(checked.not_judged, "change")
    is_old = checked.comparison is not None and not checked.comparison.old.is_complete
    reason = "the base has no result for the files" if is_old else "HEAD could not parse the files completely"
    return f"{count} cannot be judged, because {reason}"


def _check_lines(context: CommandContext, checked: CheckResult, command: str | None) -> Iterator[str]:
    if isinstance(checked.base, NotCompared):
        yield _incomplete_text(checked)
    yield from _violation_lines(checked)
    if len(checked.forbidden) > _CHANGES_SHOWN_MAX:
        yield f"{len(checked.forbidden) - _CHANGES_SHOWN_MAX:,} more that fail the check; list all with --json"
    yield from (
        f"{change_line(change)} [{state_text(change.state)}, allowed]"
        for change in checked.allowed[:_CHANGES_SHOWN_MAX]
    )
    if len(checked.allowed) > _CHANGES_SHOWN_MAX:
        yield f"{len(checked.allowed) - _CHANGES_SHOWN_MAX:,} more allowed; list all with: {command}"
    if checked.judged:
        rows = [
            (change.condition, "-" if change.value is None else change.value, change.limit, change.verdict)
            for change in checked.judged
        ]
        yield from table_lines(rows, ("condition", "value", "limit", "verdict"))
    if checked.is_compared and (any(checked.counts.values()) or not checked.forbidden):
        yield from _count_texts(checked)
    if checked.comparison is not None and any(checked.counts.values()):
        words = shlex.join(["diff", *_comparison_words(checked.comparison, checked.path)])
        listing = context.complete_hint(f": codebatch {words}").removeprefix(": ")
        yield f"to list one state: {listing} --state {_example_state(checked)}"


def _violation_lines(checked: CheckResult) -> Iterator[str]:
    """Yield the changes that fail the check, and the source lines of the first findings among them."""
    displayed = checked.forbidden[:_CHANGES_SHOWN_MAX]
    rows = [change_row(change) for change in displayed if isinstance(change.new, Diagnostic)][:_SOURCES_SHOWN_MAX]
    sources = zip(rows, source_texts(checked.head.question, rows), strict=True)
    for change in displayed:
        yield f"{change_line(change)} [{state_text(change.state)}]"
        for row, source in islice(sources, int(isinstance(change.new, Diagnostic))):
            yield from source_lines(row, source, terminal_width())


def _example_state(checked: CheckResult) -> ChangeState:
    """Return the first state that the counts name."""
    return next(state for state in (*STATES_SHOWN, *STATES_COUNTED) if checked.counts.get(state))


def _count_texts(checked: CheckResult) -> Iterator[str]:
    if checked.comparison is not None:
        yield counts_line(checked.comparison, (*STATES_SHOWN, *STATES_COUNTED))
    else:
        new, unchanged, fixed = (checked.counts[state] for state in _BASELINE_STATES)
        unknown = checked.counts.get("not_comparable", 0)
        suffix = f", {unknown:,} not comparable (not checked in the same way)" if unknown else ""
        yield f"{new:,} new, {unchanged:,} in the baseline, {fixed:,} in the baseline but no longer found{suffix}"
    if checked.outside_change:
        yield f"ignored: {count_text(checked.outside_change, 'regression')} on lines that this change did not touch"
    if checked.on_unchanged_lines:
        yield f"ignored: {count_text(checked.on_unchanged_lines, 'regression')} on unchanged lines"
