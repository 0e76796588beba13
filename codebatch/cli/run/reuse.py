"""The commands `explain-miss` and `verify`: causes of cache misses, and verification of reused results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec.structs import replace

from codebatch.cli.framework.answer_printing import completeness_exit_status, report_missing_results, rerun
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.completion import complete_batch
from codebatch.cli.framework.context import CommandContext, with_common_options
from codebatch.cli.framework.percentages import parse_percentage
from codebatch.cli.framework.read_report import explain_option
from codebatch.cli.run.run import RunListener
from codebatch.errors import BatchIncomplete, InvalidInput
from codebatch.model.digest import DIGEST_PATTERN
from codebatch.model.entry import display_path, path_from_fields
from codebatch.model.text.quantities import count_text
from codebatch.operations.maintenance.cache_misses import MissesAnswer, MissReason, explain_misses
from codebatch.operations.maintenance.verification import VerifyAnswer, verify_batch
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs.execution import ExecutionSettings
from codebatch.store.results.untrusted import trust_key

_DIGEST_DIGITS_SHOWN = 12
_DIFFERENCES_SHOWN_MAX = 20
_BATCH_REFERENCE = re.compile(r"latest(~.*)?\Z|batch-|@[^/]+\Z")
_CAUSE_TEXTS = {
    "implementation": "implementation (codebatch, the code of the task, or for a linter of [tasks]: "
    "its settings, the whole output of `version`, files of the project in `lock` and `command`)",
    "program": "the content of the program, or of another file outside of the project that its command names:",
    "needed_task": "the cache key of",
    "files": "the set of files",
    "no_result": "no result in the older batch:",
    "outside_key": "the older result depends on inputs not covered by the cache key:",
    "damaged": "the older result is damaged",
    "untrusted": "found nondeterministic by verify,",
    "unknown": "unknown: no difference from an older batch that can be read explains it",
}


@command("explain-miss")
@click.argument("words", metavar="[BATCH] [FILE]", nargs=-1)
@option("--task", "task", metavar="NAME", help="Only this task")
@explain_option
@with_common_options
def explain_miss(context: CommandContext, words: tuple[str, ...], task: str | None) -> int:
    """Explain cache misses.

    Shows why results of BATCH, by default the latest, were not reused from earlier batches, for all files or for FILE.
    Each result has one reason: the first input that differs from the most similar earlier batch.

    A single argument is a FILE, unless it starts with `batch-` or is `latest`, `latest~N` or `@NAME`.
    """
    if len(words) > 2:
        raise click.UsageError("give at most a batch and a file")
    is_batch = len(words) == 2 or (words and _BATCH_REFERENCE.match(words[0]))
    reference, path = (*words, None)[:2] if is_batch else (None, *words, None)[:2]
    store, batch = context.batch(reference)
    catalogue = load_configuration(Path.cwd()).catalogue
    answer, completeness = explain_misses(store, batch, catalogue, path=path, task=task, note=context.note)
    report_missing_results(context, store, batch, completeness)
    context.print(answer, _miss_lines(answer))
    return completeness_exit_status(completeness)


@command("verify")
@click.argument("reference", metavar="[BATCH]", required=False, shell_complete=complete_batch)
@option(
    "--sample",
    "share",
    callback=parse_percentage,
    default="5%",
    metavar="PERCENT",
    show_default=True,
    help="Percentage of the files to analyse again (at least one file)",
)
@option("--trust", "key", metavar="KEY", help="Do not verify; allow results with this cache key to be reused again")
@common_option("jobs")
@with_common_options
def verify(context: CommandContext, reference: str | None, share: float, key: str | None, jobs: int | None) -> int:
    """Run a sample of a batch again and compare the results.

    Runs the tasks of BATCH, by default the latest, on a sample of its files again, without cached results. BATCH must
    have ended. The sample of a batch is always the same. With --sample 100%, tasks that run once per project also run
    again.

    If a result differs, cached results of the task with the same cache key are not reused in later runs. To reuse them
    again, pass the cache key to --trust.

    Exit status 1 if a result differs. Exit status 3 if a result could not be produced again, or if the sample has none.
    """
    if key is not None:
        if reference is not None:
            raise InvalidInput("BATCH cannot be used with --trust")
        return _trust_key(context, key)
    store, batch = context.batch(reference)
    execution = ExecutionSettings(configuration=load_configuration(Path.cwd()), jobs=jobs)
    listener = RunListener(context)
    answer, signal_status = verify_batch(execution, store, batch, share, listener)
    if signal_status:
        return signal_status
    answer = replace(answer, differences=answer.differences[:_DIFFERENCES_SHOWN_MAX])
    context.print(answer, [mismatch for line in _verification_lines(answer) for mismatch in line.split("\n")])
    for entry in answer.untrusted:
        context.note(
            f"results of {entry.task} are no longer reused; to allow their reuse: codebatch verify --trust {entry.key}"
        )
    if answer.different:
        context.note(f"batch {batch.id} keeps its results; to run all its tasks again: {rerun(store, batch)} --again")
        return 1
    return BatchIncomplete.exit_status if answer.failed or not answer.results else 0


def _verification_lines(answer: VerifyAnswer) -> Iterator[str]:
    for mismatch in answer.differences:
        yield f"{mismatch.task}: {mismatch.path}\n  - {mismatch.first}\n  + {mismatch.second}"
    if answer.different > len(answer.differences):
        yield f"{answer.different - len(answer.differences):,} more results differ, but are not listed"
    if not answer.results:
        yield "nothing verified: the sample has no results"
        return
    outcome = f"{answer.different:,} of them differ" if answer.different else "identical"
    yield f"{count_text(answer.results, 'result')} for {count_text(answer.files, 'file')} verified: {outcome}"
    if answer.failed:
        yield f"{count_text(answer.failed, 'result')} could not be produced again"


def _trust_key(context: CommandContext, key: str) -> int:
    store = context.store_place.open()
    with store.writing():
        trusted = trust_key(store, key)
    context.print(trusted, context.unless_quiet([f"reused again: {trusted.task} {trusted.key}"]), name="verify-trust")
    return 0


def _miss_lines(answer: MissesAnswer) -> Iterator[str]:
    for task in answer.tasks:
        yield f"{task.task}: {task.executed:,} executed, {task.reused:,} reused"
        for reason in task.reasons:
            against = f" ({reason.base})" if reason.base else ""
            yield f"  {reason.count:,}: {_reason_text(reason)}{against}{_first_paths_text(reason)}"


def _reason_text(reason: MissReason) -> str:
    words = [_CAUSE_TEXTS.get(reason.cause, reason.cause.replace("_", " ")), *([reason.name] if reason.name else [])]
    if reason.old is not None or reason.new is not None:
        old, new = (
            "-" if value is None else value[:_DIGEST_DIGITS_SHOWN] if DIGEST_PATTERN.match(value) else value
            for value in (reason.old, reason.new)
        )
        words.append(old if old == new else f"{old} -> {new}")
    if reason.others:
        words.append(f"and {reason.others:,} more")
    return " ".join(words)


def _first_paths_text(reason: MissReason) -> str:
    displayed_paths = [display_path(path_from_fields(row.get("path"), row.get("path_b64"))) for row in reason.paths]
    more = reason.count - len(displayed_paths)
    return f": {', '.join(displayed_paths)}{f' and {more:,} more' if more else ''}" if displayed_paths else ""
