"""Facts about the calls of programs in a batch, from its journal, and the tasks that checked no file."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from codebatch.model.command_table import CallTotals, CommandTable, CommandTaskLocation
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.journal import Committed, read_journal


def read_call_totals(batch: BatchDir, tasks: Collection[str]) -> dict[str, CallTotals]:
    """Return the facts about the calls of the programs of some tasks, by task. Reused results have none."""
    totals: dict[str, CallTotals] = {}
    for line in read_journal(batch.files, batch.root) if tasks else ():
        event = line.event
        if isinstance(event, Committed) and event.task in tasks and event.evidence:
            try:
                report = msgspec.json.decode(event.evidence, type=CallTotals)
            except ValueError:
                continue
            total = totals.get(event.task, CallTotals())
            totals[event.task] = CallTotals(files=total.files + report.files)
    return totals


def tasks_without_files(
    totals: Mapping[str, CallTotals], commands: Mapping[str, CommandTaskLocation], languages: Collection[str]
) -> dict[str, str]:
    """Return for each task that checked no file the reason. `languages` are those of the batch, if they are known."""
    return {
        name: _unmatched_reason(name, commands[name].table, languages)
        for name, total in totals.items()
        if not total.files
    }


def _unmatched_reason(name: str, table: CommandTable, languages: Collection[str]) -> str:
    reason = f"no file matches the settings `match` and `class` of [tasks.{name}]"
    if not (table.languages and languages):
        return reason
    return f"{reason} (languages of the project: {', '.join(sorted(languages))})"
