"""A trial of a custom task on one file. It yields the records of the task, or the reason of its failure."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.command_table import CallTotals, CommandTaskLocation
from codebatch.model.task import task_name
from codebatch.operations import ignore_note
from codebatch.operations.changes.listing import iter_patches
from codebatch.operations.maintenance.determinism_check import run_new_batch, task_pipeline
from codebatch.operations.project.project_snapshot import ProjectSnapshot, rules_for, take_project_snapshot
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.records import find_errors
from codebatch.operations.runs.call_totals import read_call_totals
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.planning import make_planner
from codebatch.query.answers.changes import read_changes
from codebatch.query.answers.omissions import OmissionSummary, read_omissions
from codebatch.query.fields import JsonRecord
from codebatch.snapshotting.roots import resolve_sources, select_project
from codebatch.store.batches.store_directory import StoreDir

_GITIGNORE_ESCAPES = str.maketrans({character: f"\\{character}" for character in "\\*?[]!# "})


class FileTrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """The records of a task for a file. If the task failed, `reason` and `evidence` are set.

    `signal_status` and `omissions` are as in `RunResult`. `calls` has facts about the call of a task that calls a
    program. `patch` is a unified diff of the proposed change.
    """

    task: str
    records: list[JsonRecord]
    omissions: tuple[OmissionSummary, ...] = ()
    calls: CallTotals | None = None
    reason: str = ""
    evidence: str = ""
    signal_status: int = 0
    patch: bytes = b""


def try_file(execution: ExecutionSettings, name: str, path: Path, listener: Listener) -> FileTrialResult:
    """Run a task and its dependencies on a file like `run`, in a temporary store. Raises CodebatchError."""
    configuration = execution.configuration
    task = task_name(name)
    pipeline = task_pipeline(configuration.catalogue, task)
    if path.is_dir():
        raise InvalidInput(
            f"{path} is a directory", hint=f"give a file, or run the task on all files with: codebatch task test {task}"
        )
    resolve_sources((path,), None)
    with tempfile.TemporaryDirectory(prefix="codebatch-") as directory:
        store = StoreLocator(Path(directory) / "store").open_or_create_store()
        with store.writing():
            frozen = _freeze_file(execution, store, path, configuration.catalogue.commands.get(task))
        planner = make_planner(configuration, store, frozen, pipeline, listener.note)
        records, status = run_new_batch(execution, planner, store, listener)
        question = BatchQuery(store, records.batch, is_named=True, note=listener.note)
        failures = [row for row in find_errors(question).result if row.get("kind") == "failure"]
        # If a dependency failed, the requested task has no failure of its own.
        failure = next(iter(failures), {})
        told = ("failure", "omission")
        records_of_task = [row for row in records.item_records(task, 0) or () if row.get("kind") not in told]
        evidence = str(failure.get("evidence") or "")
        changes = [change for change in read_changes(records, [task]) if not failure]
        return FileTrialResult(
            task=task,
            records=records_of_task,
            reason=str(failure.get("reason") or ""),
            evidence=evidence,
            signal_status=status,
            patch=b"".join(iter_patches(store.objects(), changes)),
            omissions=read_omissions(records, [task]),
            calls=read_call_totals(records.batch, configuration.catalogue.commands.keys() & {task}).get(task),
        )


def _freeze_file(
    execution: ExecutionSettings, store: StoreDir, path: Path, command: CommandTaskLocation | None
) -> ProjectSnapshot:
    """Take a snapshot of one file, under its path in its project.

    If `command` reads other files too, the snapshot has the whole project. Outside a project, or if the project
    excludes the file, the file itself is the tree.
    """
    configuration = execution.configuration
    real_path = Path(os.path.realpath(path.parent), path.name)
    root = None if configuration.file is None else configuration.file.parent.resolve()
    if root is not None and real_path.is_relative_to(root):
        if command is not None and (command.table.scope == "project" or command.table.config_files):
            return take_project_snapshot(
                store, [path], rules_for(configuration, (), ()), ignore_note, allow_empty=False
            )
        base = Path(os.fsdecode(select_project([root], store.root).sources.base))
        pattern = "/" + str(real_path.relative_to(base)).translate(_GITIGNORE_ESCAPES)
        rules = msgspec.structs.replace(rules_for(configuration, (), ()), include=(pattern,))
        frozen = take_project_snapshot(store, [base], rules, ignore_note, allow_empty=True)
        if frozen.files == 1:
            return frozen
    return take_project_snapshot(store, [path], rules_for(configuration, (), ()), ignore_note, allow_empty=False)
