"""Execution of a part of a batch, and the part file with its results (SPEC.md "Parts")."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from codebatch.coordinator.analysis.costs import ESTIMATES_VERSION, estimate_costs, estimate_seconds
from codebatch.coordinator.analysis.execution import NOTHING_EXECUTED, RunOutcome
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.errors import BatchIncomplete, InvalidInput
from codebatch.model.part import ExternalOutcome, PartChoice, PartHeader, PartShard, file_fingerprint, part_tasks
from codebatch.model.plan import Plan, PlannedTask, plan_items
from codebatch.model.shard import Shard
from codebatch.model.text.quantities import count_text
from codebatch.operations.project.project_snapshot import nothing_to_do_error
from codebatch.operations.runs.execution import Listener
from codebatch.operations.runs.repair import RepairSession
from codebatch.operations.runs.requests import append_cancel_lift
from codebatch.operations.runs.resume import existing_batch_action
from codebatch.operations.runs.run_request import RunRequest
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import may_propose_changes
from codebatch.query.status.batch_status import CurrentState, read_current_state
from codebatch.scheduling.analysis.part_assignment import assign_shards
from codebatch.snapshotting.snapshot import selects_any_file
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.external_outcomes import ExternalOutcomeCheck
from codebatch.store.part_files import PartFile, write_part
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.plain_outcomes import MergedOutcomes, PlainOutcomeSource, UnmergedOutcomes
from codebatch.store.snapshots.snapshots import Snapshot

PART_SECONDS_MIN = 20.0
"""Minimum estimated CPU time of a part that is worth its overhead."""


class PartResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of running a part.

    - `file`: the part file, or None if a signal ended the run early.
    - `shards`, `items`, `results`: the numbers of shards, of files and of results in the part.
    - `estimated_seconds`: the estimated CPU time of the whole batch.
    """

    batch: BatchDir
    choice: PartChoice
    file: PartFile | None
    shards: int
    items: int
    results: int
    estimated_seconds: float
    seconds: float
    executed: RunOutcome


def run_part(
    request: RunRequest,
    choice: PartChoice,
    output: Path | None,
    listener: Listener,
    *,
    version: str,
    forces_rerun: bool = False,
    allow_empty: bool = False,
) -> PartResult:
    """Execute the file tasks of a part of a batch, and write a part file. Nothing is merged.

    `output` is the path of the part file or its directory, by default the current directory. `version` is the version
    of codebatch. Results that exist already are reused. Raises CodebatchError. Raises BatchIncomplete if a result of
    the part is missing; then no file is written.
    """
    started = time.monotonic()
    execution = request.execution
    if not (allow_empty or request.place.has_store() or selects_any_file(request.paths, request.rules)):
        raise nothing_to_do_error(request.paths)
    store = request.place.open_or_create_store(listener.note)
    with store.writing() as lock:
        frozen, planner = request.freeze(store, listener, allow_empty=allow_empty)
        refuse_object_tasks(planner.tasks, planner.catalogue)
        batch, is_new = planner.for_parts().find_or_make_batch(forces_new=forces_rerun, reuses=execution.reuses)
        state = read_current_state(batch)
        listener.chosen(batch, "new" if is_new else existing_batch_action(state))
        run = _PartRun(RepairSession(execution, store, lock, listener), batch, batch.plan(), choice, frozen.snapshot)
        executed = run.execute(state)
        file = None
        if not executed.signal_status:
            listener.phase("merging")
            file = run.repairing(batch, partial(run.write, output, version))
    return PartResult(
        batch=batch,
        choice=choice,
        file=file,
        shards=len(run.shards),
        items=run.items,
        results=run.results,
        estimated_seconds=estimate_seconds(plan_costs(run.plan, run.snapshot).values()),
        seconds=round(time.monotonic() - started, 3),
        executed=executed,
    )


def plan_costs(plan: Plan, snapshot: Snapshot) -> Mapping[str, float]:
    """Return the estimated cost of each shard of a plan, in the order of the plan."""
    costs = estimate_costs(plan, plan_items(snapshot.entries, plan.paths), None)
    return {shard.id: costs[shard.id][-1] for shard in plan.shards}


def shards_by_part(plan: Plan, snapshot: Snapshot, parts: int) -> list[list[Shard]]:
    """Return the shards of each part. Every machine with the same plan computes the same assignment."""
    assigned = assign_shards(list(plan_costs(plan, snapshot).values()), parts)
    return [[plan.shards[position] for position in positions] for positions in assigned]


def refuse_object_tasks(tasks: tuple[PlannedTask, ...], catalogue: TaskCatalogue) -> None:
    """Raise InvalidInput if a file task stores syntax trees or new contents, because part files have no objects."""
    for task in tasks:
        if task.config.get("emit_ast"):
            raise InvalidInput(
                f"the task {task.name} stores syntax trees, which part files do not contain",
                hint=f"remove emit_ast from [tasks.{task.name}], or run without --part",
            )
        if task.scope == "file" and may_propose_changes(catalogue, task.name):
            raise InvalidInput(
                f"the task {task.name} may propose changes of files, which part files do not contain",
                hint=f"run without --part, or with a pipeline without {task.name}",
            )


class _PartRun:
    """The execution of the file tasks of some shards, and the writing of their results."""

    def __init__(
        self, repairing: RepairSession, batch: BatchDir, plan: Plan, choice: PartChoice, snapshot: Snapshot
    ) -> None:
        self.repairing = repairing
        self._batch = batch
        self.plan = plan
        self._choice = choice
        self.snapshot = snapshot
        by_part = shards_by_part(plan, snapshot, choice.count)
        chosen = [shard for shards in by_part[choice.first - 1 : choice.last] for shard in shards]
        self.shards = sorted(chosen, key=lambda shard: shard.start)
        self.tasks = tuple(task.name for task in plan.tasks if task.scope == "file")

    def execute(self, state: CurrentState) -> RunOutcome:
        """Execute the open work of the part. If the batch has ended, or if the part is empty, execute nothing."""
        if state.is_settled_and_merged or not self.shards or not self.tasks:
            return NOTHING_EXECUTED
        execution, store, lock, listener = self.repairing
        append_cancel_lift(self._batch)
        scope = RunScope(tasks=frozenset(self.tasks), shards=frozenset(shard.id for shard in self.shards))
        return self.repairing(
            self._batch, partial(execution.execute, store, lock, self._batch, scope, listener, self.snapshot)
        )

    def write(self, output: Path | None, version: str) -> PartFile:
        """Write the part file. Raises BatchIncomplete if a result is missing, and InvalidInput or StoreError."""
        source = self._open_source()
        tallies = [source.count_items(shard, task) for shard in self.shards for task in self.tasks]
        if missing := sum(tally.missing for tally in tallies):
            raise BatchIncomplete(
                f"{missing:,} of {count_text(self.results, 'result')} of the part are missing",
                hint="run the same command again; results that exist are kept",
            )
        header = self._header(sum(tally.failed for tally in tallies), version)
        return write_part(output, header, self._iter_outcomes(source))

    @property
    def items(self) -> int:
        """The number of files in the part."""
        return sum(shard.items for shard in self.shards)

    @property
    def results(self) -> int:
        """The number of planned results of the part."""
        return self.items * len(self.tasks)

    def _open_source(self) -> PlainOutcomeSource:
        state = read_current_state(self._batch)
        if state.is_settled_and_merged and state.outputs is not None:
            return MergedOutcomes(state.outputs, self.plan)
        outcomes = OutcomeRegisters(self._batch.files, self._batch.root)
        return UnmergedOutcomes(outcomes, load_ledger(self.plan, outcomes))

    def _header(self, failed: int, version: str) -> PartHeader:
        items = plan_items(self.snapshot.entries, self.plan.paths)
        return PartHeader(
            plan_digest=self.plan.digest,
            snapshot_digest=self.plan.snapshot_digest,
            paths=self.plan.paths,
            items=self.plan.item_count,
            tasks=part_tasks(self.plan.tasks),
            part=self._choice,
            shards=tuple(
                PartShard(
                    id=shard.id,
                    files=tuple((item.path, file_fingerprint(item)) for item in items[shard.start : shard.end]),
                )
                for shard in self.shards
            ),
            failed=failed,
            codebatch=version,
            estimates=ESTIMATES_VERSION,
        )

    def _iter_outcomes(self, source: PlainOutcomeSource) -> Iterator[ExternalOutcome]:
        checks = ExternalOutcomeCheck.of_plan(self.plan)
        for shard in self.shards:
            for task in self.tasks:
                for external in source.iter_outcomes(shard, task):
                    try:
                        checks.check(external)
                    except ValueError as error:
                        raise InvalidInput(
                            f"the results of {task} cannot be in a part file: {error}", hint="run without --part"
                        ) from error
                    yield external
