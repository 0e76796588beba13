"""Output of answers. It includes reports of answers that are incomplete, stale, or of another project.

`emit_rows` and `emit_document` report three facts on standard error: the batch belongs to another project, the answer
is incomplete, or the source tree has changed. JSON answers contain the same facts. `-q` suppresses none of these
reports. Both functions return the exit status.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from codebatch.cli.framework.context import CommandContext
from codebatch.errors import BatchIncomplete, InvalidConfiguration
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.api.batch import Batch
from codebatch.operations.api.store import Store
from codebatch.operations.queries.batch_query import Answer, BatchQuery, displayed_restriction
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir

if TYPE_CHECKING:
    from codebatch.operations.comparison.comparison import Comparison
    from codebatch.query.completeness import Completeness
    from codebatch.snapshotting.changes import Changes


class AnswerScope(msgspec.Struct, frozen=True, kw_only=True):
    """The batch of an answer, and whether the answer is complete and current.

    - `project`: the root of the batch's project.
    - `complete`, `percent`: whether all results that the answer needs exist, or else the percentage that exists.
    - `stale`: whether files have changed since the batch was made, or null if this is unknown.
    - `paths`: the paths to which the batch is restricted. It is empty if the batch covers the whole project.
    """

    batch_id: str
    project: str
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]


def scope_members(answer: Answer[object]) -> dict[str, object]:
    """Return the members of AnswerScope for an answer, and its `notes` if it has notes."""
    batch = answer.question.batch
    notes = {} if answer.notes is None else {"notes": answer.notes}
    return {
        **notes,
        "batch_id": batch.id,
        "project": display_path(batch.about.project_root),
        "complete": answer.completeness.is_complete,
        "percent": answer.completeness.percent,
        "stale": answer.question.is_stale,
        "paths": displayed_restriction(batch),
    }


def open_queried_batch(context: CommandContext, reference: str | None) -> Batch:
    """Return the batch that a command queries.

    The batch may be incomplete. The functions that emit the answer then report this.
    """
    batch = Store(context.store_place.open(), context.note, context.report).batch(reference, partial=True)
    batch.question.on_phase = context.phase
    context.questions.append(batch.question)
    context.batches.append(batch.question.batch)
    return batch


def emit_rows(
    context: CommandContext,
    answer: Answer[object],
    rows: object,
    lines: Iterable[str],
    *,
    if_none: str = "",
    name: str | None = None,
    members: Mapping[str, object] = {},
) -> int:
    """Print rows and return the exit status. In JSON, the rows are the member `records`, and `members` are added.

    If there are no rows, the note `if_none` is printed on standard error, also for JSON. `name` is as in
    `CommandContext.print`.
    """
    question, completeness = answer.question, answer.completeness
    _report_batch_state(context, question, completeness)
    document = {**scope_members(answer), **members, "records": rows} if context.as_json else None
    if_none = _empty_answer_text(if_none, completeness)
    context.print(document, lines, if_none=if_none, name=name)
    if context.as_json and if_none and not rows:
        context.note(if_none)
    _report_stale_batch(context, question)
    return completeness_exit_status(completeness)


def emit_formatted(
    context: CommandContext, answer: Answer[object], write: Callable[[], object], *, if_none: str = ""
) -> int:
    """Print an answer in a special format and return the exit status. `write` writes the answer to standard output.

    `if_none` is a note to print if nothing was found, otherwise empty.
    """
    _report_batch_state(context, answer.question, answer.completeness)
    context.display.erase_for_output()
    write()
    sys.stdout.flush()
    if if_none:
        context.note(_empty_answer_text(if_none, answer.completeness))
    _report_stale_batch(context, answer.question)
    return completeness_exit_status(answer.completeness)


def emit_document(
    context: CommandContext,
    answer: Answer[object],
    document: dict[str, object],
    lines: Iterable[str],
    *,
    name: str | None = None,
) -> int:
    """Print one document and return the exit status. In JSON, the members of AnswerScope are added.

    `name` is as in `CommandContext.print`.
    """
    question, completeness = answer.question, answer.completeness
    _report_batch_state(context, question, completeness)
    if context.as_json:
        document = {**scope_members(answer), **document}
    context.print(document, lines, name=name)
    _report_stale_batch(context, question)
    return completeness_exit_status(completeness)


def emit_comparison(context: CommandContext, comparison: Comparison, write: Callable[[], object]) -> None:
    """Print a comparison of two batches. `write` writes it to standard output.

    Changes of the tree since the older batch are not reported, because they are expected.
    """
    for answer in (comparison.old, comparison.new):
        _report_batch_state(context, answer.question, answer.completeness)
    context.display.erase_for_output()
    write()
    sys.stdout.flush()
    report_missing_contents(context, comparison)
    _report_stale_batch(context, comparison.new.question)


def report_missing_contents(context: CommandContext, comparison: Comparison) -> None:
    """Report the files whose content a comparison needs but is missing."""
    if lost := sorted(comparison.trees.lost):
        more = f" and of {count_text(len(lost) - 1, 'other file')}" if len(lost) > 1 else ""
        where = f"{display_path(lost[0][1])} in {comparison.trees.batch_records(lost[0][0]).batch.id}{more}"
        context.report(f"incomplete: the content of {where} is missing; findings there are matched by message only")


def rerun(store: StoreDir, batch: BatchDir, changes: Changes | None = None, *, of_all: bool = False) -> str:
    """Return the command that runs a batch again. With `of_all`, the command has no path restrictions.

    `changes` has the include and exclude patterns of the batch. It is None if the caller did not compare the tree with
    the batch.
    """
    # Imported here, because a command is rarely suggested.
    from codebatch.operations.project.configuration import ProjectSettings, load_configuration
    from codebatch.snapshotting.staleness import read_source_rules

    about = batch.about
    sources = (
        [os.path.join(about.sources[0], path) for path in about.paths] if about.paths and not of_all else about.sources
    )
    roots = [os.fsdecode(root) for root in sources]
    can_be_typed = bool(roots) and all(map(str.isprintable, roots))
    words = ["codebatch", "run", *(roots if can_be_typed else ["PATH"])]
    try:
        settings = load_configuration(Path.cwd()).settings
    except (InvalidConfiguration, FileNotFoundError):  # The suggested command will report this error itself.
        settings = ProjectSettings()
    if batch.about.pipeline != settings.pipeline:
        words += ["--pipeline", batch.about.pipeline]
    rules = changes or read_source_rules(store.files, store.root, about.stat_cache)
    if rules is not None:
        if rules.include != settings.include:
            words += [word for pattern in rules.include for word in ("--include", pattern)]
        words += [
            word for pattern in rules.exclude if pattern not in settings.exclude for word in ("--exclude", pattern)
        ]
    return shlex.join(words)


def report_missing_results(
    context: CommandContext, store: StoreDir, batch: BatchDir, completeness: Completeness
) -> None:
    """Report why an answer is incomplete, one line for each reason."""
    for line in _iter_incomplete_reasons(store, batch, completeness):
        context.report(f"incomplete: {line}")


def completeness_exit_status(completeness: Completeness) -> int:
    """Return the exit status of an answer."""
    return 0 if completeness.is_complete else BatchIncomplete.exit_status


def _report_batch_state(context: CommandContext, question: BatchQuery, completeness: Completeness) -> None:
    batch = question.batch
    report_missing_results(context, question.store, batch, completeness)
    context.report_other_project(question.store, batch)
    if batch.about.paths and not completeness.lacks_files:
        context.note(f"batch {batch.id} is restricted to {', '.join(displayed_restriction(batch))}")


def _report_stale_batch(context: CommandContext, question: BatchQuery) -> None:
    changes = question.changes
    if changes is None or changes.is_stale is False:
        return
    if changes.is_stale is None:
        context.note("did not check whether files have changed since this batch: checking takes too long here")
        return
    if not changes.paths:
        newer = question.find_snapshot_batch(changes.frozen_since)
        if newer is not None:
            context.report(
                "results are out of date (another batch has the current files); "
                f"query that batch with --batch {newer.id}"
            )
            return
    first = display_path(changes.paths[0]) if changes.paths else "files"
    more = len(changes.paths) - 1
    suffix = " and more" if changes.is_cut else f" and {more} more" if more > 0 else ""
    rerun_command = rerun(question.store, question.batch, changes)
    context.report(f"results are out of date ({first}{suffix} changed); update them with: {rerun_command}")


def _empty_answer_text(if_none: str, completeness: Completeness) -> str:
    return (
        f"{if_none} so far ({completeness.percent}% done)"
        if if_none and completeness.done < completeness.planned
        else if_none
    )


def _iter_incomplete_reasons(store: StoreDir, batch: BatchDir, completeness: Completeness) -> Iterable[str]:
    if completeness.done < completeness.planned:
        counts = f"({completeness.done:,} of {completeness.planned:,} results)"
        reason = f"batch {batch.id} is {completeness.percent}% done {counts}"
        reasons = ", ".join(filter(None, (completeness.progress, reason)))
        yield f"{reasons}; resume it with: codebatch resume --batch {batch.id}"
    if completeness.failed:
        counts = f"{completeness.failed:,} of {completeness.planned:,} results of batch {batch.id} failed"
        yield f"{counts} ({', '.join(completeness.failed_tasks)}); see: codebatch errors --batch {batch.id}"
    if completeness.lost:
        yield f"{count_text(completeness.lost, 'file')} could not be read"
    if completeness.lacks_files:
        scope = ", ".join(displayed_restriction(batch))
        unknown = f"batch {batch.id} is restricted to {scope}; other files are not covered"
        yield f"{unknown}; analyse all files with: {rerun(store, batch, of_all=True)}"
    if completeness.unfollowed:
        yield completeness.unfollowed
