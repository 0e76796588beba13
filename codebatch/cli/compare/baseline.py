"""The command `baseline`: a file of accepted findings, for CI jobs without a shared store."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from codebatch.cli.framework.answer_printing import AnswerScope, emit_document, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, table_lines, whole_batch_option, with_common_options
from codebatch.cli.framework.groups import CommandGroup, group_with_common_options
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.gate.baselines import count_by_rule, create_baseline, read_baseline, update_baseline

_file_argument = click.argument("file", type=click.Path(path_type=Path))


class BaselineCreateAnswer(AnswerScope, frozen=True, kw_only=True):
    """The answer of `codebatch baseline create`. `findings` is the number of findings in the file."""

    path: str
    findings: int


class BaselineRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule in the answer of `codebatch baseline show`, with its number of findings and the number of files that
    contain these findings.
    """

    tool: str
    code: str
    findings: int
    files: int


@click.group(cls=CommandGroup)
@group_with_common_options
def baseline() -> None:
    """Manage a file of accepted findings.

    `codebatch check --baseline FILE` fails only on findings that are not in the file. CI jobs that use a baseline file
    do not need to share a store.
    """


@command("create")
@_file_argument
@whole_batch_option
@with_common_options
def baseline_create(context: CommandContext, file: Path, batch_reference: str | None) -> int:
    """Write all findings of a batch to a baseline file.

    FILE has one finding per line, sorted.
    """
    batch = open_queried_batch(context, batch_reference)
    answer = create_baseline(batch, file)
    document: dict[str, object] = {"batch_id": batch.id, "path": str(file), "findings": answer.result}
    status = emit_document(
        context,
        answer,
        document,
        context.unless_quiet([f"{_displayed_file(file)}: {count_text(answer.result, 'finding')}"]),
    )
    context.note(
        f"to let git merge baselines, add this line to .gitattributes: {_displayed_file(Path(file.name))} merge=union"
    )
    return status


@command("update")
@_file_argument
@whole_batch_option
@option("--accept-new", is_flag=True, help="Also add new findings")
@with_common_options
def baseline_update(context: CommandContext, file: Path, batch_reference: str | None, accept_new: bool) -> int:
    """Remove fixed findings from a baseline file.

    Findings that moved are written with their new location.
    """
    batch = open_queried_batch(context, batch_reference)
    answer = update_baseline(batch, file, accept_new=accept_new)
    update = answer.result
    document = {"batch_id": batch.id, "path": str(file), **msgspec.structs.asdict(update)}
    counts = {"removed": update.removed, "moved": update.moved, "added": update.added}
    changes = ", ".join(f"{number:,} {word}" for word, number in counts.items() if number) or "unchanged"
    line = f"{_displayed_file(file)}: {count_text(update.findings, 'finding')}, {changes}"
    status = emit_document(context, answer, document, context.unless_quiet([line]))
    if update.not_comparable:
        context.note(
            f"not removed: {count_text(update.not_comparable, 'finding')}, "
            "because this batch did not run the same checks"
        )
    if update.excluded:
        context.note(f"not added: {count_text(update.excluded, 'new finding')}; to add, use --accept-new")
    return status


@command("show")
@_file_argument
@with_common_options
def baseline_show(context: CommandContext, file: Path) -> None:
    """Count the findings in a baseline file by rule."""
    rows = count_by_rule(read_baseline(file))
    rules = [BaselineRule(tool=tool, code=code, findings=found, files=files) for tool, code, found, files in rows]
    lines = table_lines(rows, ("tool", "rule", "findings", "files")) if rows else []
    context.print(rules, lines, if_none="the baseline has no findings")


for _command in (baseline_create, baseline_update, baseline_show):
    baseline.add_command(_command)


def _displayed_file(file: Path) -> str:
    return display_path(os.fsencode(file))
