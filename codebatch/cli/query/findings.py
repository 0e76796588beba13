"""The command `findings`: the findings of a batch by rule, with their source lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from codebatch.cli.answers.finding_lines import location_text, source_lines
from codebatch.cli.framework.answer_printing import emit_document, emit_formatted, emit_rows, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import CommandContext, OutputForm, query_batch_option, with_common_options
from codebatch.cli.framework.filter_options import filter_options
from codebatch.cli.framework.format_option import resolve_form
from codebatch.cli.framework.path_arguments import path_restriction, paths_argument
from codebatch.cli.output.widths import fit_line, terminal_width
from codebatch.compare.rules import LINT_TASK
from codebatch.errors import InvalidInput
from codebatch.model.record import SEVERITIES, Severity
from codebatch.model.text.quantities import count_text

if TYPE_CHECKING:
    from codebatch.operations.api.batch import Batch
    from codebatch.operations.queries.batch_query import BatchQuery
    from codebatch.operations.queries.findings import FindingsByRule, RuleFindings

FINDINGS_SHOWN = 50
_EQUAL_MESSAGES_MIN = 20
"""If a rule has more findings than this number, all with equal messages, only the first ones are shown by default."""
_EQUAL_MESSAGES_SHOWN_MAX = 3


@command()
@paths_argument
@query_batch_option
@filter_options("--severity", "--code", "--tool", "--lang", "--path", "--where", "--task", "--output")
@option("--all", "with_hints", is_flag=True, help="Include hints")
@common_option("limit", default_text=f"{FINDINGS_SHOWN} in text output, otherwise all")
@with_common_options
def findings(
    context: CommandContext,
    paths: tuple[str, ...],
    batch_reference: str | None,
    with_hints: bool,
    limit: int | None,
    form: OutputForm | None,
    severity: tuple[Severity, ...],
    code: tuple[str, ...],
    tool: tuple[str, ...],
    lang: tuple[str, ...],
    path: str,
    where: str,
    task: str | None,
) -> int:
    """List likely bugs and other findings, grouped by rule.

    Rules are sorted by severity, errors first. Within a severity, findings in test files, examples and other
    non-production files come last.

    Each PATH restricts the list to a file or to the files below a directory.

    Hints are left out, unless --all or --severity selects them. If a rule has more than 20 findings with the same
    message, only three of these findings are shown. --limit shows more.
    """
    if with_hints and severity:
        raise InvalidInput("--all cannot be used with --severity")
    form, context = resolve_form(context, form)
    batch = open_queried_batch(context, batch_reference)
    answer = batch.findings(
        severity=SEVERITIES if with_hints else severity or None,
        code=code or None,
        tool=tool or None,
        lang=lang or None,
        path=path_restriction(batch, paths, path),
        where=where,
        task=task,
    )
    for note in answer.notes or ():
        context.report(note)
    if form == "json":
        shown_findings = limit_findings_shown(answer.result, limit)
        return emit_document(context, answer, {"batch_id": batch.id, **msgspec.structs.asdict(shown_findings)}, ())
    if form not in (None, "plain"):
        from codebatch.cli.framework.formats import default_columns, write_rows

        rows = [record for rule in limit_findings_shown(answer.result, limit).rules for record in rule.findings]
        write = partial(write_rows, form, rows, default_columns(form, ("diagnostic",)))
        return emit_formatted(context, answer, write, if_none="" if rows else _no_findings_text(batch, task))
    displayed = (
        limit_findings_shown(answer.result, limit)
        if limit
        else limit_findings_shown(hide_message_floods(answer.result), FINDINGS_SHOWN)
    )
    lines = finding_lines(answer.question, displayed.rules, terminal_width())
    status = emit_rows(context, answer, (), lines, if_none=_no_findings_text(batch, task))
    for note in _hidden_notes(answer.result, displayed):
        context.note(note)
    return status


def _no_findings_text(batch: Batch, task: str | None) -> str:
    """Return the note that there are no findings. `task` is the task whose findings were requested, or None for all."""
    if task is not None or LINT_TASK in batch.tasks:
        return "no findings"
    return f"no findings of {', '.join(batch.tasks)}; the batch did not run {LINT_TASK}"


def limit_findings_shown(findings: FindingsByRule, limit: int | None) -> FindingsByRule:
    """Return the rules with at most `limit` findings in total, in the same order. None means no limit."""
    if limit is None:
        return findings
    rules: list[RuleFindings] = []
    for rule in findings.rules:
        if limit <= 0:
            break
        rules.append(msgspec.structs.replace(rule, findings=rule.findings[:limit]))
        limit -= len(rule.findings)
    return msgspec.structs.replace(findings, rules=tuple(rules))


def hide_message_floods(findings: FindingsByRule) -> FindingsByRule:
    """Return the rules with fewer findings, for rules with too many equal messages.

    If a rule has more than _FLOOD_MIN findings, all with equal messages, only the first _FLOOD_SHOWN_MAX are kept.
    """
    rules = (
        msgspec.structs.replace(rule, findings=rule.findings[:_EQUAL_MESSAGES_SHOWN_MAX])
        if len(rule.findings) > _EQUAL_MESSAGES_MIN and len({str(record["message"]) for record in rule.findings}) == 1
        else rule
        for rule in findings.rules
    )
    return msgspec.structs.replace(findings, rules=tuple(rules))


def finding_lines(question: BatchQuery, rules: Iterable[RuleFindings], width: int | None) -> Iterator[str]:
    """Yield the lines of findings: a line for each rule, and each finding with its source."""
    from codebatch.operations.queries.source_text import source_texts

    rules = tuple(rules)
    sources = iter(source_texts(question, [record for rule in rules for record in rule.findings]))
    for rule in rules:
        messages = {str(record["message"]) for record in rule.findings}
        yield fit_line(f"{rule_line(rule)}{f': {messages.pop()}' if len(messages) == 1 else ''}", width)
        for record in rule.findings:
            suffix = f": {record['message']}" if messages else ""
            yield fit_line(f"  {location_text(record)}{suffix}", width)
            yield from source_lines(record, next(sources), width)


def rule_line(rule: RuleFindings) -> str:
    """Return a line about a rule: its severity, its ID, and its number of findings."""
    non_production = "all" if rule.non_production == rule.count else f"{rule.non_production:,} of them"
    non_production = f", {non_production} in non-production files" if rule.non_production else ""
    return f"{rule.severity} {rule.code}  {rule.count:,} in {count_text(rule.files, 'file')}{non_production}"


def _hidden_notes(findings: FindingsByRule, displayed: FindingsByRule) -> Iterator[str]:
    hidden = findings.count - sum(len(rule.findings) for rule in displayed.rules)
    if hidden > 0:
        yield f"{hidden:,} more; show them with --limit {findings.count}"
    if findings.hints_hidden:
        yield f"{count_text(findings.hints_hidden, 'hint')} hidden; show them with --all"
