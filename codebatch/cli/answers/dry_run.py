"""What a work list would do, for people."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch.cli.answers.work_status import tasks_at_once
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.eta import eta_text
from codebatch.cli.output.tables import table
from codebatch.model.text.quantities import count_of, human_seconds
from codebatch.work.control.dry_run import Rehearsal


def answer_rehearsal(answering: CommandContext, found: Rehearsal) -> None:
    """Say what would start when."""
    for note in found.notes:
        answering.note(note)
    answering.print(found, _lines(found), name="work-dry-run")
    answering.note("nothing was run")


def _lines(found: Rehearsal) -> Iterator[str]:
    yield f"{tasks_at_once(found.strategy, found.max_parallel, len(found.tasks))}, from {found.source}"
    rows = (
        (
            human_seconds(each.start_seconds) if found.makespan_seconds is not None else str(place),
            each.slot,
            each.task,
            "-" if each.seconds is None else human_seconds(each.seconds),
            ", ".join((*each.needs, *each.after)) or "-",
        )
        for place, each in enumerate(found.tasks, 1)
    )
    yield from table(
        rows, ("start" if found.makespan_seconds is not None else "order", "slot", "task", "duration", "depends on")
    )
    if found.makespan_seconds is None:
        yield "no duration estimate: no task has run here before"
        return
    more = f"; {count_of(found.without_estimate, 'task')} without a duration estimate" if found.without_estimate else ""
    left = eta_text(found.range_seconds).removesuffix(" left")
    yield f"Estimated duration: {human_seconds(found.makespan_seconds)} (likely {left}){more}"
