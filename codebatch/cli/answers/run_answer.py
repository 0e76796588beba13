"""The answer of commands that run an analysis: its members as JSON, its text, notes and exit status."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from codebatch.cli.answers.headline import next_command
from codebatch.cli.answers.run_result import note_calls, run_lines
from codebatch.cli.framework.context import CommandContext
from codebatch.errors import NoBatch
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import displayed_restriction
from codebatch.operations.queries.batches import task_states
from codebatch.operations.runs.headline import Headline
from codebatch.operations.runs.run_result import RunResult
from codebatch.query.answers.omissions import OmissionSummary
from codebatch.store.batches.resolution import resolve_batch


class RunAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch run` and `codebatch join`.

    - `action`: the batch was `new`; an interrupted one was `resumed`; a running one was `joined`; a complete one was
      `up to date`; one with failures had `already ended`.
    - `success`: whether the exit status is 0. Otherwise, `error` describes what is missing, if the batch has ended.
    - `paths`: the paths of the project to which the batch is restricted.
    - `reused`, `executed`: the numbers of results of file tasks that were taken from earlier batches or joined parts,
      or produced by this run. Both are 0 if nothing was left to do.
    - `inputs_outside_key`: maps custom tasks to inputs that their cache key does not cover. Other batches do not reuse
      the results of these tasks. If the batch was up to date, tasks that call a program are included.
    - `findings_left_out`: for tasks that call a program, the number of findings that are not at a place in a file that
      the program got.
    - `omissions`: everything in the output of programs that is in no finding. Findings that are left out are included.
    - `tasks_without_files`: maps tasks that call a program to the reason why they checked no file.
    - `headline`: the most important results so far.

    Tasks and shards are counted as in the answer of `codebatch status`.
    """

    snapshot_id: str
    batch_id: str
    project: str
    status: str
    success: bool
    error: str | None
    tasks_completed: int
    tasks_failed: int
    shards_completed: int
    shards_failed: int
    result_digest: str | None
    files: int
    records: int
    failures: int
    reused: int
    executed: int
    seconds: float
    action: str
    paths: tuple[str, ...]
    inputs_outside_key: dict[str, str]
    findings_left_out: dict[str, int]
    omissions: tuple[OmissionSummary, ...]
    tasks_without_files: dict[str, str]
    headline: Headline


def answer_run(context: CommandContext, result: RunResult) -> int:
    """Print the result of a run. Return the exit status."""
    batch, state, summary = result.batch, result.standing, result.summary
    context.batches.append(batch)
    if result.name_was is not None:
        context.report(f"@{result.name} is now {batch.id} (was {result.name_was})")
    if result.missing_grammars:
        missing = result.missing_grammars.items()
        names = ", ".join(f"{language} ({count_text(files, 'file')})" for language, files in missing)
        context.note(f"no grammar for {names}: a package that codebatch requires is missing; reinstall codebatch")
    tasks = task_states(result.store, batch)
    answer = RunAnswer(
        snapshot_id=batch.about.snapshot_id,
        batch_id=batch.id,
        project=display_path(batch.about.project_root),
        status=state.state.value,
        success=not (
            result.executed.signal_status or result.shortfall or (state.tally.failed and not state.state.is_final)
        ),
        error=None if result.shortfall is None else result.shortfall.message,
        tasks_completed=sum(task.status == "done" for task in tasks),
        tasks_failed=sum(task.status == "failed" for task in tasks),
        shards_completed=sum(task.shards_done - task.shards_failed for task in tasks),
        shards_failed=sum(task.shards_failed for task in tasks),
        result_digest=result.result_digest,
        files=summary.files,
        records=summary.records,
        failures=summary.failures,
        reused=result.executed.reused,
        executed=result.executed.executed,
        seconds=result.seconds,
        action=result.action,
        paths=displayed_restriction(batch),
        inputs_outside_key=dict(result.inputs_outside_key),
        findings_left_out={each.task: each.count for each in result.omissions if each.part == "findings"},
        omissions=result.omissions,
        tasks_without_files=dict(result.tasks_without_files),
        headline=result.headline,
    )
    for task, inputs in result.inputs_outside_key.items():
        if result.action == "up to date":
            context.note(
                f"{task} was not run again, although its cache key does not cover all inputs ({inputs}); "
                "to run it again: codebatch run --again"
            )
            continue
        reason = f"they depend on inputs not covered by the cache key: {inputs}"
        hint = f"declare them in `files` and `tools` of [tasks.{task}]"
        context.note(f"results of {task} are not reused by later runs: {reason} ({hint})")
    note_calls(context, result)
    context.print(answer, () if context.as_json else run_lines(context, result))
    if result.headline.history_note:
        context.note(result.headline.history_note)
    if result.executed.signal_status:
        context.note(f"stopped; resume with: codebatch resume --batch {batch.id}")
        return result.executed.signal_status
    if result.shortfall is not None:
        raise result.shortfall
    if not state.state.is_final:
        return 3 if state.tally.failed else 0
    command = next_command(result.headline)
    if command is not None:
        context.note(f"next: {command}" + ("" if _is_default_batch(context, result) else f" --batch {batch.id}"))
    return 0


def _is_default_batch(context: CommandContext, result: RunResult) -> bool:
    """Return whether a query without `--batch`, in the current directory, uses the batch of this run."""
    store = replace(result.store, project=context.store_place.project)
    try:
        return resolve_batch(store, None, is_unrestricted=True).id == result.batch.id
    except NoBatch:
        return False
