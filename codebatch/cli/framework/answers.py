"""How answers go out: never part of one as if it were the whole, nor that of another project or tree as if of this.

`emit_rows` and `emit_document` report on standard error of which project an answer is, how complete, and whether
the tree has changed since; add the same to JSON; and return the exit status. `-q` hides none of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from codebatch.cli.framework.context import CommandContext
from codebatch.errors import BatchIncomplete, InvalidConfiguration
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_of
from codebatch.operations.api.batch import Batch
from codebatch.operations.api.store import Store
from codebatch.operations.queries.batch_query import Answer, BatchQuery, shown_paths
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.store import StoreDir

if TYPE_CHECKING:
    from codebatch.operations.comparison.comparison import Comparison
    from codebatch.query.completeness import Completeness
    from codebatch.snapshotting.changes import Changes


class AnswerScope(msgspec.Struct, frozen=True, kw_only=True):
    """The batch that an answer is of, and how true it is.

    `project` is the root of the project that the batch is of. `percent` is how much of what the question needs is
    there; `stale` whether the tree has changed since, null if that is not known; `paths` restrict the batch.
    """

    batch_id: str
    project: str
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]


def truth_of(answer: Answer[object]) -> dict[str, object]:
    """Return the members of Answered for an answer, and its `notes` if it has any kind of these."""
    batch = answer.question.batch
    notes = {} if answer.notes is None else {"notes": answer.notes}
    return {
        **notes,
        "batch_id": batch.id,
        "project": display_path(batch.about.project_root),
        "complete": answer.whole.is_complete,
        "percent": answer.whole.percent,
        "stale": answer.question.is_stale,
        "paths": shown_paths(batch),
    }


def ask(answering: CommandContext, reference: str | None) -> Batch:
    """The batch that is asked, be it that of an answer a part is there: that is said with it."""
    batch = Store(answering.place.open(), answering.note, answering.tell).batch(reference, partial=True)
    batch.question.tell_phase = answering.phase
    answering.questions.append(batch.question)
    answering.batches.append(batch.question.batch)
    if answering.files is None:  # What is counted is read here.
        batch.question.look_ahead()
    return batch


def emit_rows(
    answering: CommandContext,
    answer: Answer[object],
    rows: object,
    lines: Iterable[str],
    *,
    if_none: str = "",
    name: str | None = None,
    members: Mapping[str, object] = {},
) -> int:
    """Answer with rows, in JSON the member `records` of an object beside `members`; return the exit status.

    That there are none is a note, `if_none`, also with JSON. `name` is as in `Answering.print`.
    """
    question, whole = answer.question, answer.whole
    _tell(answering, question, whole)
    document = {**truth_of(answer), **members, "records": rows} if answering.as_json else None
    if_none = _so_far(if_none, whole)
    answering.print(document, lines, if_none=if_none, name=name)
    if answering.as_json and if_none and not rows:
        answering.note(if_none)
    _tell_changes(answering, question)
    return status_of(whole)


def emit_formatted(
    answering: CommandContext, answer: Answer[object], write: Callable[[], None], *, if_none: str = ""
) -> int:
    """Answer in a form of its own, which `write` puts on standard output; returns the exit status.

    `if_none` says that nothing was found, where that is so.
    """
    _tell(answering, answer.question, answer.whole)
    answering.display.make_way()
    write()
    sys.stdout.flush()
    if if_none:
        answering.note(_so_far(if_none, answer.whole))
    _tell_changes(answering, answer.question)
    return status_of(answer.whole)


def emit_document(
    answering: CommandContext,
    answer: Answer[object],
    document: dict[str, object],
    lines: Iterable[str],
    *,
    name: str | None = None,
) -> int:
    """Answer with one document, to which JSON adds how true it is; return the exit status. `name` as in `print`."""
    question, whole = answer.question, answer.whole
    _tell(answering, question, whole)
    if answering.as_json:
        document = {**truth_of(answer), **document}
    answering.print(document, lines, name=name)
    _tell_changes(answering, question)
    return status_of(whole)


def emit_comparison(answering: CommandContext, comparison: Comparison, write: Callable[[], None]) -> None:
    """Answer with what two batches were compared for, which `write` puts on standard output.

    The older one is knowingly old: whether its tree has changed since is not asked.
    """
    for answer in (comparison.old, comparison.new):
        _tell(answering, answer.question, answer.whole)
    answering.display.make_way()
    write()
    sys.stdout.flush()
    tell_lost(answering, comparison)
    _tell_changes(answering, comparison.new.question)


def tell_lost(answering: CommandContext, comparison: Comparison) -> None:
    """Say which files' content was wanted for a comparison and is lost."""
    if lost := sorted(comparison.trees.lost):
        more = f" and of {count_of(len(lost) - 1, 'other file')}" if len(lost) > 1 else ""
        where = f"{display_path(lost[0][1])} in {comparison.trees.batch(lost[0][0]).batch.id}{more}"
        answering.tell(f"incomplete: the content of {where} is missing; findings there are matched by message only")


def rerun(store: StoreDir, batch: BatchDir, changes: Changes | None = None, *, of_all: bool = False) -> str:
    """The command that looks at a batch's tree again, or at all `of_all`, by the same patterns where they are known.

    They are those of `changes`, of which whoever did not look at the tree has none.
    """
    # Only those who are told a command pay for it.
    import shlex

    from codebatch.operations.project.configuration import ProjectSettings, load_configuration
    from codebatch.snapshotting.staleness import rules_of

    about = batch.about
    found = (
        [os.path.join(about.sources[0], path) for path in about.paths] if about.paths and not of_all else about.sources
    )
    roots = [os.fsdecode(root) for root in found]
    can_be_typed = bool(roots) and all(map(str.isprintable, roots))
    words = ["codebatch", "run", *(roots if can_be_typed else ["PATH"])]
    try:
        settings = load_configuration(Path.cwd()).settings
    except (InvalidConfiguration, FileNotFoundError):  # To be said by the command, when it is run.
        settings = ProjectSettings()
    if batch.about.pipeline != settings.pipeline:
        words += ["--pipeline", batch.about.pipeline]
    rules = changes or rules_of(store.files, store.root, about.stat_cache)
    if rules is not None:
        if rules.include != settings.include:
            words += [word for pattern in rules.include for word in ("--include", pattern)]
        words += [
            word for pattern in rules.exclude if pattern not in settings.exclude for word in ("--exclude", pattern)
        ]
    return shlex.join(words)


def tell_lacking(answering: CommandContext, store: StoreDir, batch: BatchDir, whole: Completeness) -> None:
    """Say what an answer lacks of the whole one."""
    for line in _reasons(store, batch, whole):
        answering.tell(f"incomplete: {line}")


def status_of(whole: Completeness) -> int:
    """The exit status of an answer."""
    return 0 if whole.is_complete else BatchIncomplete.exit_status


def _tell(answering: CommandContext, question: BatchQuery, whole: Completeness) -> None:
    batch = question.batch
    tell_lacking(answering, question.store, batch, whole)
    answering.tell_other_project(question.store, batch)
    if batch.about.paths and not whole.lacks_files:
        answering.note(f"batch {batch.id} is restricted to {', '.join(shown_paths(batch))}")


def _tell_changes(answering: CommandContext, question: BatchQuery) -> None:
    changes = question.changes
    if changes is None or changes.is_stale is False:
        return
    if changes.is_stale is None:
        answering.note("did not check whether files have changed since this batch: checking takes too long here")
        return
    if not changes.paths:
        found = question.find_batch_of(changes.frozen_since)
        if found is not None:
            answering.tell(
                "results are out of date (another batch has the current files); "
                f"query that batch with --batch {found.id}"
            )
            return
    first = display_path(changes.paths[0]) if changes.paths else "files"
    more = len(changes.paths) - 1
    others = " and more" if changes.is_cut else f" and {more} more" if more > 0 else ""
    again = rerun(question.store, question.batch, changes)
    answering.tell(f"results are out of date ({first}{others} changed); update them with: {again}")


def _so_far(if_none: str, whole: Completeness) -> str:
    return f"{if_none} so far ({whole.percent}% done)" if if_none and whole.done < whole.planned else if_none


def _reasons(store: StoreDir, batch: BatchDir, whole: Completeness) -> Iterable[str]:
    if whole.done < whole.planned:
        counts = f"({whole.done:,} of {whole.planned:,} results)"
        told = f"batch {batch.id} is {whole.percent}% done {counts}"
        yield f"{', '.join(filter(None, (whole.progress, told)))}; resume it with: codebatch run --batch {batch.id}"
    if whole.failed:
        counts = f"{whole.failed:,} of {whole.planned:,} results of batch {batch.id} failed"
        yield f"{counts} ({', '.join(whole.failed_tasks)}); see: codebatch errors --batch {batch.id}"
    if whole.lost:
        yield f"{count_of(whole.lost, 'file')} could not be read"
    if whole.lacks_files:
        of = ", ".join(shown_paths(batch))
        unknown = f"batch {batch.id} is restricted to {of}; other files are not covered"
        yield f"{unknown}; analyse all files with: {rerun(store, batch, of_all=True)}"
    if whole.unfollowed:
        yield whole.unfollowed
