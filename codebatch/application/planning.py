"""From what was frozen to the batch that answers for it: found, adopted or made."""

from __future__ import annotations

import os
from dataclasses import dataclass

from codebatch.application import Note
from codebatch.application.configuration import Configuration
from codebatch.application.freezing import Frozen, thaw
from codebatch.coordinator.planning import check_overrides, find_pipeline, make_plan, prepare_tasks, resolve_tasks
from codebatch.errors import StoreCorrupt
from codebatch.model.digest import Digest
from codebatch.model.plan import Plan, PlannedTask, plan_digest
from codebatch.model.shard import ShardRule
from codebatch.model.task import Pipeline
from codebatch.query.standing import standing
from codebatch.store.adoption import adopt_batch
from codebatch.store.batches import Batch, create_batch, iter_batches
from codebatch.store.store import Store
from codebatch.system.clock import wall_ns
from codebatch.system.task_catalogue import TaskCatalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """All that decides a plan. Its digest is known before the plan is made."""

    store: Store
    frozen: Frozen
    pipeline: str
    tasks: tuple[PlannedTask, ...]
    shard_rule: ShardRule
    catalogue: TaskCatalogue
    note: Note

    @property
    def digest(self) -> Digest:
        """The plan's digest."""
        return plan_digest(self.frozen.snapshot.digest, self.tasks, self.frozen.paths)

    def plan(self) -> Plan:
        """The plan."""
        frozen = self.frozen
        return make_plan(self.catalogue, frozen.snapshot, self.pipeline, self.tasks, self.shard_rule, frozen.paths)

    def make(self, plan: Plan) -> Batch:
        """A new batch of the plan. On return it is on disk."""
        return create_batch(
            self.store, plan, sources=self.frozen.sources, stat_cache=self.frozen.stat_cache, at_ns=wall_ns()
        )

    def is_answered_by(self, batch: Batch) -> bool:
        """Whether questions about what was frozen go to a batch of the plan: it is of the same place, chosen by the
        same patterns, and the latest of it.
        """
        about = batch.about
        if (about.sources, about.stat_cache) != (self.frozen.sources, self.frozen.stat_cache):
            return False
        place = (about.sources, about.paths)
        alike = (each for each in iter_batches(self.store) if (each.about.sources, each.about.paths) == place)
        return next(alike, batch).id == batch.id

    def adopt(self, batch: Batch) -> Batch:
        """A new batch of what was frozen with the results of one of the plan. On return it is on disk."""
        return adopt_batch(
            self.store, batch, sources=self.frozen.sources, stat_cache=self.frozen.stat_cache, at_ns=wall_ns()
        )

    def find(self) -> Batch | None:
        """The latest batch of the same plan that can be read, of whatever place: equal trees have equal results."""
        wanted = (self.digest, self.pipeline)
        for batch in iter_batches(self.store, self.note):
            if (batch.about.plan_digest, batch.about.pipeline) == wanted:
                try:
                    standing(batch)
                except StoreCorrupt as error:
                    self.note(f"{batch.id} is passed over: {error.message}")
                    continue
                return batch
        return None

    def find_or_make(self, *, again: bool) -> tuple[Batch, bool]:
        """The batch of the same plan, or a new one, always `again`; and whether it is new.

        It is looked for before planning, which takes time, and again where nobody else can make one: several that
        begin at once share the batch of whoever was first.
        """
        if not again and (found := self.find()):
            return self.answering_one(found), False
        plan = self.plan()
        with self.store.making_batch():
            if not again and (found := self.find()):
                return found, False
            return self.make(plan), True

    def answering_one(self, batch: Batch) -> Batch:
        """The batch that answers for what was frozen: this one of its plan, or one that adopts its results.

        One that is not final yet answers when it is.
        """
        if self.is_answered_by(batch):
            return batch
        with self.store.making_batch():
            batch = self.find() or batch  # Another may have adopted it meanwhile.
            stands, _ = standing(batch)
            is_over = stands.state.is_final and stands.outputs is not None and not stands.holders
            if is_over and not self.is_answered_by(batch):
                batch = self.adopt(batch)
        return batch


def choose_pipeline(configuration: Configuration, name: str | None) -> Pipeline:
    """The pipeline of that name, else the configured one, whose every task can be planned as it is configured.

    Raises InvalidInput or InvalidConfiguration.
    """
    settings = configuration.settings
    chosen = find_pipeline(name or settings.pipeline, settings.tasks)
    check_overrides(configuration.catalogue, settings.tasks)
    return chosen


def planner_of(configuration: Configuration, store: Store, frozen: Frozen, pipeline: Pipeline, note: Note) -> Planner:
    """What a pipeline over what was frozen is planned from. Raises InvalidInput or InvalidConfiguration."""
    settings, file, catalogue = configuration.settings, configuration.file, configuration.catalogue
    is_of_project = file is not None and (os.fsencode(file.parent.resolve()),) == frozen.sources
    load = (lambda: frozen.snapshot) if is_of_project else None
    prepared, notes = prepare_tasks(catalogue, pipeline.tasks, settings.tasks, load)
    for each in notes:
        note(f"{each}, for what is run is not the project of {file}")
    return Planner(
        store=store,
        frozen=frozen,
        pipeline=pipeline.name,
        tasks=resolve_tasks(catalogue, pipeline.tasks, prepared),
        shard_rule=settings.shard,
        catalogue=catalogue,
        note=note,
    )


def plan_snapshot(
    configuration: Configuration, store: Store, reference: str, pipeline: str | None, note: Note
) -> tuple[Batch, Plan]:
    """A new batch over a snapshot, not run. On return it is on disk.

    Raises InvalidInput, InvalidConfiguration or StoreError.
    """
    chosen = choose_pipeline(configuration, pipeline)
    with store.writing():
        planner = planner_of(configuration, store, thaw(store, reference, note), chosen, note)
        plan = planner.plan()
        return planner.make(plan), plan
