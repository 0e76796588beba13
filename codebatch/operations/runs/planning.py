"""Choice of the batch that answers queries about a snapshot: an existing batch, one that adopts it, or a new batch."""

from __future__ import annotations

import os
from typing import Literal

import msgspec
from msgspec.structs import replace

from codebatch.coordinator.analysis.planning import (
    check_overrides,
    make_plan,
    prepare_tasks,
    resolve_tasks,
)
from codebatch.errors import InvalidConfiguration, StoreError, UnknownId
from codebatch.model.digest import Digest
from codebatch.model.plan import Plan, PlannedTask, plan_digest
from codebatch.model.shard import ShardRule
from codebatch.model.task import Pipeline
from codebatch.operations import NoteCallback, ignore_note
from codebatch.operations.history.checkouts import comparing_checkout
from codebatch.operations.project.configuration import Configuration
from codebatch.operations.project.pipelines import find_pipeline
from codebatch.operations.project.project_snapshot import ProjectSnapshot, load_project_snapshot
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.command_tasks import find_program
from codebatch.query.status.batch_status import read_current_state
from codebatch.store.batches.batch_directory import NO_CHECKOUT, BatchDir, Checkout, create_batch, iter_batches
from codebatch.store.batches.resolution import find_default_batch, iter_source_batches
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.adoption import adopt_batch, is_adoptable
from codebatch.store.results.bases import find_bases
from codebatch.system.clock import wall_ns

MatchDecision = Literal["use", "adopt", "ignore"]
"""The action for an existing batch of a plan. `adopt`: create a new batch with its results."""


class PlanMatch(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about an existing batch of a plan.

    - `has_same_plan`: queries about the snapshot use this batch.
    - `has_commit`: it records the commit of the snapshot, or the commit is unknown.
    - `is_settled`: it has ended and is merged, and no process works on it.
    - `is_adoptable`: cache keys cover all its results. For custom tasks this is known once the batch has ended.
    """

    has_same_plan: bool
    has_commit: bool
    is_settled: bool
    is_adoptable: bool


def decide_match(match: PlanMatch) -> MatchDecision:
    """Return the action for an existing batch of a plan.

    Equal trees have equal results, unless tasks have inputs that are not covered by their cache keys.
    """
    if not (match.has_same_plan or match.is_adoptable):
        return "ignore"
    if match.has_same_plan and (match.has_commit or not match.is_adoptable):
        return "use"
    return "adopt" if match.is_settled else "use"


class BatchPlanner(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a plan. Its digest is computed from these inputs, before the plan itself is created.

    If `is_for_parts` is set, only batches with this shard rule are used, because part files contain whole shards.
    """

    store: StoreDir
    frozen: ProjectSnapshot
    pipeline: str
    tasks: tuple[PlannedTask, ...]
    shard_rule: ShardRule
    catalogue: TaskCatalogue
    note: NoteCallback
    commit: str = ""
    is_for_parts: bool = False

    def for_parts(self) -> BatchPlanner:
        """Return a planner for `run --part` and `join`."""
        return replace(self, shard_rule=self.shard_rule.for_parts(self.frozen.files), is_for_parts=True)

    @property
    def digest(self) -> Digest:
        """The digest of the plan."""
        return plan_digest(self.frozen.snapshot.digest, self.tasks, self.frozen.paths)

    @property
    def programs(self) -> dict[str, Digest]:
        """For each task that calls a program, the digest of the files outside of the project."""
        return self.catalogue.program_builds(task.name for task in self.tasks)

    def plan(self) -> Plan:
        """Create the plan and return it."""
        frozen = self.frozen
        return make_plan(self.catalogue, frozen.snapshot, self.pipeline, self.tasks, self.shard_rule, frozen.paths)

    def make_batch(self, plan: Plan, checkout: Checkout = NO_CHECKOUT, *, reuses: bool = True) -> BatchDir:
        """Create a new batch of the plan.

        With `reuses`, it reuses results of older batches. On return the batch is durable.
        """
        bases = find_bases(self.store, self.frozen.sources, self.pipeline, self.tasks) if reuses else ()
        return create_batch(
            self.store,
            plan,
            sources=self.frozen.sources,
            stat_cache=self.frozen.stat_cache,
            bases=bases,
            checkout=checkout,
            programs=self.programs,
            at_ns=wall_ns(),
        )

    def _is_answered_by(self, batch: BatchDir) -> bool:
        """Return whether a batch of this plan is the batch that queries about the snapshot use.

        All these conditions must be true:

        - The batch has the sources and file patterns of the snapshot, and no newer batch has these sources and paths.
        - The batch is the default for queries. If the batch is restricted to paths, the default may instead be a batch
          that covers the whole project.
        """
        about = batch.about
        if (about.sources, about.stat_cache) != (self.frozen.sources, self.frozen.stat_cache):
            return False
        if next(iter_source_batches(self.store, about.sources), batch).id != batch.id:
            return False
        default = find_default_batch(self.store, about.sources) or batch
        return default.id == batch.id or (bool(about.paths) and not default.about.paths)

    def latest_batch(self) -> BatchDir | None:
        """Return the latest batch in the store with the sources and paths of the planned snapshot, or None."""
        place = self.frozen.sources, self.frozen.paths
        return next((batch for batch in iter_batches(self.store) if batch.about.sources_and_paths == place), None)

    def adopt(self, batch: BatchDir, checkout: Checkout = NO_CHECKOUT) -> BatchDir:
        """Create a new batch for the snapshot that adopts all results of a batch of the same plan.

        On return it is durable.
        """
        return adopt_batch(
            self.store,
            batch,
            sources=self.frozen.sources,
            stat_cache=self.frozen.stat_cache,
            checkout=checkout,
            at_ns=wall_ns(),
        )

    def find(self, note: NoteCallback = ignore_note) -> tuple[BatchDir, PlanMatch] | None:
        """Return a batch of the same plan that can be used or adopted, with facts about it, or None.

        The batch that queries about the snapshot use is preferred. Otherwise, the latest batch of the plan is returned,
        with any sources. Unreadable batches are skipped, and `note` receives a note about each.
        """
        key = (self.digest, self.pipeline, self.programs)
        latest: tuple[BatchDir, PlanMatch] | None = None
        for batch in iter_batches(self.store, note):
            if (batch.about.plan_digest, batch.about.pipeline, batch.about.programs) != key:
                continue
            answers = self._is_answered_by(batch)
            if latest is not None and not answers:
                continue
            try:
                if self.is_for_parts and batch.plan().shard_rule != self.shard_rule:
                    continue
                match = self._match_batch(batch, answers=answers)
            except (StoreError, UnknownId) as error:
                note(f"{batch.id} skipped: {error.message}")
                continue
            if answers:
                return batch, match
            if decide_match(match) != "ignore":
                latest = batch, match
        return latest

    def _match_batch(self, batch: BatchDir, *, answers: bool) -> PlanMatch:
        batch.plan()  # Merged outputs can be read without the plan, but adoption needs it.
        state = read_current_state(batch)
        if state.outputs is not None and state.is_settled_and_merged:
            is_covered = is_adoptable(batch, state.outputs.manifest)
        else:
            is_covered = self.catalogue.custom_locations.keys().isdisjoint(
                task.name for task in self.tasks
            ) and not any(self.catalogue.unkeyed_input(task.name) for task in self.tasks)
        return PlanMatch(
            has_same_plan=answers,
            has_commit=self._has_commit(batch),
            is_settled=state.is_settled_and_merged and not state.holders,
            is_adoptable=is_covered,
        )

    def _has_commit(self, batch: BatchDir) -> bool:
        return self.commit in ("", batch.about.commit)

    def find_or_make_batch(self, *, forces_new: bool, reuses: bool = True) -> tuple[BatchDir, bool]:
        """Return the batch of this plan, or a new one, and whether it is new.

        With `forces_new`, always create a new batch. `reuses` is as in `make`. Existing batches are searched twice:
        before planning, which takes time, and then under the lock that serializes batch creation. So concurrent runs
        share the batch of the first run.
        """
        existing = None if forces_new else self.find(self.note)
        if existing is None:
            with comparing_checkout(self.frozen, self.commit, self.note) as checkout:
                plan = self.plan()
                checkout_read = checkout()
            with self.store.making_batch():
                existing = None if forces_new else self.find()
                if existing is None:
                    return self.make_batch(plan, checkout_read, reuses=reuses and not forces_new), True
        return self.find_answering(existing[0]), False

    def find_answering(self, batch: BatchDir) -> BatchDir:
        """Return the batch that queries about the snapshot will use.

        It is the given batch, or a new batch that adopts its results. A batch that has not ended, or that cannot be
        adopted, is returned unchanged, even if its commit differs from that of the snapshot.
        """
        if self._is_answered_by(batch) and self._has_commit(batch):
            return batch
        with comparing_checkout(self.frozen, self.commit, self.note) as checkout, self.store.making_batch():
            existing = self.find()  # Another process may have adopted the batch in the meantime.
            if existing is None:
                return batch
            found, match = existing
            return self.adopt(found, checkout()) if decide_match(match) == "adopt" else found


def choose_pipeline(configuration: Configuration, name: str | None) -> Pipeline:
    """Return the named pipeline, by default the configured one.

    Raises InvalidInput, or InvalidConfiguration if the settings of a task or pipeline are wrong.
    """
    check_overrides(configuration.catalogue, configuration.settings.tasks)
    return find_pipeline(configuration, name)


def make_planner(
    configuration: Configuration,
    store: StoreDir,
    frozen: ProjectSnapshot,
    pipeline: Pipeline,
    note: NoteCallback,
    commit: str = "",
) -> BatchPlanner:
    """Return the planner of a pipeline over a snapshot. Raises InvalidInput or InvalidConfiguration."""
    file = configuration.file
    is_same_project = file is not None and (os.fsencode(file.parent.resolve()),) == frozen.sources
    return BatchPlanner(
        store=store,
        frozen=frozen,
        pipeline=pipeline.name,
        tasks=plan_tasks(configuration, pipeline, note, is_project=is_same_project),
        shard_rule=configuration.settings.shard,
        catalogue=configuration.catalogue,
        note=note,
        commit=commit,
    )


def plan_tasks(
    configuration: Configuration, pipeline: Pipeline, note: NoteCallback, *, is_project: bool
) -> tuple[PlannedTask, ...]:
    """Return the tasks of a pipeline that can run here, in dependency order.

    `is_project` is set if the analysed tree is the project of the configuration. Raises InvalidInput or
    InvalidConfiguration.
    """
    names = _runnable_tasks(configuration, pipeline, note, is_project=is_project)
    settings, catalogue = configuration.settings, configuration.catalogue
    prepared, notes = prepare_tasks(catalogue, names, settings.tasks, is_project=is_project)
    for problem in notes:
        note(f"{problem}: the analysed directory is not in the project of {configuration.file}")
    return resolve_tasks(catalogue, names, prepared)


def _runnable_tasks(
    configuration: Configuration, pipeline: Pipeline, note: NoteCallback, *, is_project: bool
) -> tuple[str, ...]:
    """Return the tasks of a pipeline without those that call a program and cannot run, each with a note.

    They run only on the project of the configuration, because configuration files of another tree can contain code.
    Raises InvalidConfiguration if no task is left.
    """
    commands = configuration.catalogue.commands
    left_out: dict[str, str] = {}
    for name in pipeline.tasks:
        if name in commands and not is_project:
            left_out[name] = f"{configuration.file} is not in the root of the analysed project"
        elif name in commands and commands[name].table.optional and find_program(commands[name]) is None:
            left_out[name] = f"the program {commands[name].table.command[0]!r} is not installed"
    for name, reason in left_out.items():
        note(f"the task {name} was left out: {reason}")
    if len(left_out) == len(pipeline.tasks):
        raise InvalidConfiguration(f"no task of the pipeline {pipeline.name!r} can run here")
    return tuple(name for name in pipeline.tasks if name not in left_out)


def plan_snapshot(
    configuration: Configuration, store: StoreDir, reference: str, pipeline: str | None, note: NoteCallback
) -> tuple[BatchDir, Plan]:
    """Create a new batch over a snapshot without executing it. On return it is durable.

    Raises InvalidInput, InvalidConfiguration or StoreError.
    """
    chosen_pipeline = choose_pipeline(configuration, pipeline)
    with store.writing():
        planner = make_planner(
            configuration, store, load_project_snapshot(store, reference, note), chosen_pipeline, note
        )
        plan = planner.plan()
        return planner.make_batch(plan), plan
