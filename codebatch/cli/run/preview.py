"""The answer of `run --dry-run`."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch.cli.framework.context import CommandContext, table_lines
from codebatch.cli.run.pipelines import tools_text
from codebatch.model.text.quantities import count_text, human_bytes
from codebatch.operations.runs.execution import Listener
from codebatch.operations.runs.preview import RunPreview, preview_run
from codebatch.operations.runs.run_request import RunArguments, prepare_request


def answer_preview(
    context: CommandContext,
    arguments: RunArguments,
    task: str | None,
    listener: Listener,
    *,
    forces_rerun: bool,
    allow_empty: bool,
) -> int:
    """Print what a run would do. Return the exit status. The arguments are those of `preview_run`."""
    preview = preview_run(
        prepare_request(*arguments), task, listener, forces_rerun=forces_rerun, allow_empty=allow_empty
    )
    context.print(preview, _preview_lines(preview), name="run-dry-run")
    context.note("nothing was run")
    return 0


def _preview_lines(preview: RunPreview) -> Iterator[str]:
    restriction = f" in {', '.join(preview.paths)}" if preview.paths else ""
    size = f"{count_text(preview.files, 'file')}{restriction}, {human_bytes(preview.bytes)}"
    yield f"pipeline {preview.pipeline} over {preview.project}: {size}"
    if preview.batch_id is not None:
        yield f"batch {preview.batch_id} has the same files, tasks and settings"
    rows = (
        (task.task_id, task.version, task.scope, task.results, task.cached, tools_text(task.tools))
        for task in preview.tasks
    )
    yield from table_lines(rows, ("task", "version", "scope", "results", "cached", "tools"))
    open_count = preview.results - preview.cached
    results = count_text(preview.results, "result")
    yield f"{preview.cached:,} of {results} cached, {open_count:,} to execute"
