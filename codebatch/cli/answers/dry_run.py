"""The text of a dry run of a task list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codebatch.cli.answers.work_status import parallelism_text
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.eta import eta_text
from codebatch.cli.output.tables import table_lines
from codebatch.model.text.quantities import count_text, human_seconds
from codebatch.work.control.dry_run import DryRunAnswer


def answer_rehearsal(context: CommandContext, rehearsal: DryRunAnswer) -> None:
    """Print the tasks of a dry run with their expected starts."""
    for warning in rehearsal.warnings:
        context.report(warning)
    for note in rehearsal.notes:
        context.note(note)
    context.print(rehearsal, _rehearsal_lines(rehearsal), name="work-dry-run")
    context.note("nothing was run")


def _rehearsal_lines(rehearsal: DryRunAnswer) -> Iterator[str]:
    parallelism = parallelism_text(rehearsal.strategy, rehearsal.max_parallel, len(rehearsal.tasks))
    yield f"{parallelism}, from {rehearsal.source}"
    is_isolated = any(task.isolation for task in rehearsal.tasks)
    rows = (
        (
            human_seconds(task.start_seconds) if rehearsal.makespan_seconds is not None else str(place),
            task.slot,
            task.task,
            "-" if task.seconds is None else human_seconds(task.seconds),
            _dependencies_text((*task.needs, *task.after)) or "-",
            *([task.isolation or "-"] if is_isolated else []),
        )
        for place, task in enumerate(rehearsal.tasks, 1)
    )
    order = "start" if rehearsal.makespan_seconds is not None else "order"
    headings = (order, "slot", "task", "duration", "depends on", *(["isolation"] if is_isolated else []))
    yield from table_lines(rows, headings)
    if rehearsal.makespan_seconds is None:
        yield "no duration estimate: no task has run here before"
        return
    more = (
        f"; {count_text(rehearsal.without_estimate, 'task')} without a duration estimate"
        if rehearsal.without_estimate
        else ""
    )
    duration = eta_text(rehearsal.range_seconds).removesuffix(" left")
    yield f"Estimated duration: {human_seconds(rehearsal.makespan_seconds)} (likely {duration}){more}"


def _dependencies_text(ids: Sequence[str]) -> str:
    """Return the IDs as text. Several members of a group are shown as one entry: `lint/… (20)`."""
    groups: dict[str, list[str]] = {}
    for id_ in ids:
        groups.setdefault(id_.partition("/")[0], []).append(id_)
    return ", ".join(
        f"{group}/… ({len(members):,})" if len(members) > 1 else members[0] for group, members in groups.items()
    )
