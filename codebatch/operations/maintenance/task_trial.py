"""Trying an own task on one file: what it says of it, or why it fails there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.task import task_name
from codebatch.operations import ignore_note
from codebatch.operations.maintenance.determinism_check import pipeline_of, run_in
from codebatch.operations.project.project_snapshot import ProjectSnapshot, rules_for, take_project_snapshot
from codebatch.operations.project.stores import StorePlace
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.records import find_errors
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.planning import planner_of
from codebatch.query.fields import JsonRecord
from codebatch.snapshotting.roots import resolve_sources, select
from codebatch.store.batches.store import StoreDir

_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\*?[]!# "})


class TriedFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a task said of a file; where it failed, the `reason` and the `evidence`.

    `signal_status` as in `RunResult`.
    """

    task: str
    records: list[JsonRecord]
    reason: str = ""
    evidence: str = ""
    signal_status: int = 0


def try_file(execution: ExecutionSettings, name: str, path: Path, listener: Listener) -> TriedFile:
    """Run a task, and what it needs, on a file as `run` does, in a store for the time being. Raises CodebatchError."""
    configuration = execution.configuration
    task = task_name(name)
    pipeline = pipeline_of(configuration.catalogue, task)
    if path.is_dir():
        raise InvalidInput(
            f"{path} is a directory", hint=f"give a file, or run the task on all files with: codebatch task test {task}"
        )
    resolve_sources((path,), None)
    with tempfile.TemporaryDirectory(prefix="codebatch-") as directory:
        store = StorePlace(Path(directory) / "store").open_or_make()
        with store.writing():
            frozen = _freeze(execution, store, path)
        planner = planner_of(configuration, store, frozen, pipeline, listener.note)
        records, status = run_in(execution, planner, store, listener)
        question = BatchQuery(store, records.batch, is_named=True, note=listener.note)
        failures = [row for row in find_errors(question).found if row.get("kind") == "failure"]
        # A task that it needs may have failed, and not it alone.
        failure = next(iter(failures), {})
        found = [row for row in records.item_records(task, 0) or () if row.get("kind") != "failure"]
        evidence = str(failure.get("evidence") or "")
        return TriedFile(
            task=task, records=found, reason=str(failure.get("reason") or ""), evidence=evidence, signal_status=status
        )


def _freeze(execution: ExecutionSettings, store: StoreDir, path: Path) -> ProjectSnapshot:
    """The file as a run of the project has it, under the path that it has there; else by itself."""
    configuration = execution.configuration
    whole = Path(os.path.realpath(path.parent), path.name)
    root = None if configuration.file is None else configuration.file.parent.resolve()
    if root is not None and whole.is_relative_to(root):
        base = Path(os.fsdecode(select([root], store.root).sources.base))
        pattern = "/" + str(whole.relative_to(base)).translate(_SPECIAL)
        rules = msgspec.structs.replace(rules_for(configuration, (), ()), include=(pattern,))
        frozen = take_project_snapshot(store, [base], rules, ignore_note, allow_empty=True)
        if frozen.files == 1:
            return frozen
    return take_project_snapshot(store, [path], rules_for(configuration, (), ()), ignore_note, allow_empty=False)
