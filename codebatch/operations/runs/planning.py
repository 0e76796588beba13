"""From what was frozen to the batch that answers for it: found, adopted or made."""

from __future__ import annotations

import os

import msgspec

from codebatch.coordinator.analysis.planning import (
    check_overrides,
    find_pipeline,
    make_plan,
    prepare_tasks,
    resolve_tasks,
)
from codebatch.errors import StoreError, UnknownId
from codebatch.model.digest import Digest
from codebatch.model.plan import Plan, PlannedTask, plan_digest
from codebatch.model.shard import ShardRule
from codebatch.model.task import Pipeline
from codebatch.operations import Note, ignore_note
from codebatch.operations.history.checkouts import asking_checkout
from codebatch.operations.project.configuration import Configuration
from codebatch.operations.project.project_snapshot import ProjectSnapshot, load_project_snapshot
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.query.status.batch_status import CurrentState, read_current_state
from codebatch.store.batches.batches import NO_CHECKOUT, BatchDir, Checkout, create_batch, iter_batches
from codebatch.store.batches.resolution import default_batch, iter_batches_of
from codebatch.store.batches.store import StoreDir
from codebatch.store.results.adoption import adopt_batch, is_adoptable
from codebatch.store.results.bases import find_bases
from codebatch.system.clock import wall_ns


class Planner(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides a plan. Its digest is known before the plan is made."""

    store: StoreDir
    frozen: ProjectSnapshot
    pipeline: str
    tasks: tuple[PlannedTask, ...]
    shard_rule: ShardRule
    catalogue: TaskCatalogue
    note: Note
    commit: str = ""

    @property
    def digest(self) -> Digest:
        """The plan's digest."""
        return plan_digest(self.frozen.snapshot.digest, self.tasks, self.frozen.paths)

    def plan(self) -> Plan:
        """The plan."""
        frozen = self.frozen
        return make_plan(self.catalogue, frozen.snapshot, self.pipeline, self.tasks, self.shard_rule, frozen.paths)

    def make(self, plan: Plan, checkout: Checkout = NO_CHECKOUT, *, reuses: bool = True) -> BatchDir:
        """A new batch of the plan, which takes results over where it `reuses` any. On return it is on disk."""
        bases = find_bases(self.store, self.frozen.sources, self.pipeline) if reuses else ()
        return create_batch(
            self.store,
            plan,
            sources=self.frozen.sources,
            stat_cache=self.frozen.stat_cache,
            bases=bases,
            checkout=checkout,
            at_ns=wall_ns(),
        )

    def is_answered_by(self, batch: BatchDir) -> bool:
        """Whether questions about what was frozen go to a batch of the plan.

        It is of the same place, chosen by the same patterns, the latest of its source, and the one that questions
        without a batch go to; or of paths, while these go to one of the whole project.
        """
        about = batch.about
        if (about.sources, about.stat_cache) != (self.frozen.sources, self.frozen.stat_cache):
            return False
        if next(iter_batches_of(self.store, about.sources), batch).id != batch.id:
            return False
        default = default_batch(self.store, about.sources) or batch
        return default.id == batch.id or (bool(about.paths) and not default.about.paths)

    def latest(self) -> BatchDir | None:
        """The latest batch of the same place, None where there is none."""
        place = self.frozen.sources, self.frozen.paths
        return next((each for each in iter_batches(self.store) if each.about.place == place), None)

    def adopt(self, batch: BatchDir, checkout: Checkout = NO_CHECKOUT) -> BatchDir:
        """A new batch of what was frozen with the results of one of the plan. On return it is on disk."""
        return adopt_batch(
            self.store,
            batch,
            sources=self.frozen.sources,
            stat_cache=self.frozen.stat_cache,
            checkout=checkout,
            at_ns=wall_ns(),
        )

    def find(self, note: Note = ignore_note) -> BatchDir | None:
        """The batch of the same plan that can be read and that questions go to, else the latest of whatever place:
        equal trees have equal results, but for what is in no key, or may come to be. `note` is told of those that
        cannot be read.
        """
        wanted = (self.digest, self.pipeline)
        latest: BatchDir | None = None
        for batch in iter_batches(self.store, note):
            if (batch.about.plan_digest, batch.about.pipeline) != wanted:
                continue
            is_answering = self.is_answered_by(batch)
            if latest is not None and not is_answering:
                continue
            try:
                batch.plan()  # Merged outputs do without, and whoever adopts it does not.
                stands = read_current_state(batch)
                if not (is_answering or self._may_answer_elsewhere(batch, stands)):
                    continue
            except (StoreError, UnknownId) as error:
                note(f"{batch.id} skipped: {error.message}")
                continue
            if is_answering:
                return batch
            latest = batch
        return latest

    def _may_answer_elsewhere(self, batch: BatchDir, stands: CurrentState) -> bool:
        """Whether all that a batch of the plan has is keyed, and will be: of own tasks that is known at its end."""
        if stands.outputs is not None and stands.is_over:
            return is_adoptable(batch, stands.outputs.manifest)
        return self.catalogue.own_places.keys().isdisjoint(task.name for task in self.tasks)

    def find_or_make(self, *, again: bool, reuses: bool = True) -> tuple[BatchDir, bool]:
        """The batch of the same plan, or a new one, always `again`; and whether it is new. `reuses`: as in `make`.

        It is looked for before planning, which takes time, and again where nobody else can make one: several that
        begin at once share the batch of whoever was first.
        """
        found = None if again else self.find(self.note)
        if found is None:
            with asking_checkout(self.frozen, self.commit, self.note) as checkout:
                plan = self.plan()
                told = checkout()
            with self.store.making_batch():
                found = None if again else self.find()
                if found is None:
                    return self.make(plan, told, reuses=reuses and not again), True
        return self.answering_one(found), False

    def answering_one(self, batch: BatchDir) -> BatchDir:
        """The batch that answers for what was frozen: this one of its plan, or one that adopts its results.

        One that is not final yet answers when it is; one that nobody may adopt, by itself, be it of another commit.
        """
        if self._is_told_by(batch):
            return batch
        with asking_checkout(self.frozen, self.commit, self.note) as checkout, self.store.making_batch():
            found = self.find()  # Another may have adopted it meanwhile.
            if found is None:
                return batch
            stands = read_current_state(found)
            if stands.is_over and not stands.holders and not self._is_told_by(found):
                if self.is_answered_by(found) and not self._may_answer_elsewhere(found, stands):
                    return found
                found = self.adopt(found, checkout())
        return found

    def _is_told_by(self, batch: BatchDir) -> bool:
        """Whether questions go to a batch, and it says of which commit what was frozen is."""
        return self.is_answered_by(batch) and self.commit in ("", batch.about.commit)


def choose_pipeline(configuration: Configuration, name: str | None) -> Pipeline:
    """The pipeline of that name, else the configured one, whose every task can be planned as it is configured.

    Raises InvalidInput or InvalidConfiguration.
    """
    settings = configuration.settings
    chosen = find_pipeline(name or settings.pipeline, settings.tasks)
    check_overrides(configuration.catalogue, settings.tasks)
    return chosen


def planner_of(
    configuration: Configuration,
    store: StoreDir,
    frozen: ProjectSnapshot,
    pipeline: Pipeline,
    note: Note,
    commit: str = "",
) -> Planner:
    """What a pipeline over what was frozen is planned from. Raises InvalidInput or InvalidConfiguration."""
    settings, file, catalogue = configuration.settings, configuration.file, configuration.catalogue
    is_of_project = file is not None and (os.fsencode(file.parent.resolve()),) == frozen.sources
    prepared, notes = prepare_tasks(catalogue, pipeline.tasks, settings.tasks, is_project=is_of_project)
    for each in notes:
        note(f"{each}, because the analysed directory is not in the project of {file}")
    return Planner(
        store=store,
        frozen=frozen,
        pipeline=pipeline.name,
        tasks=resolve_tasks(catalogue, pipeline.tasks, prepared),
        shard_rule=settings.shard,
        catalogue=catalogue,
        note=note,
        commit=commit,
    )


def plan_snapshot(
    configuration: Configuration, store: StoreDir, reference: str, pipeline: str | None, note: Note
) -> tuple[BatchDir, Plan]:
    """A new batch over a snapshot, not run. On return it is on disk.

    Raises InvalidInput, InvalidConfiguration or StoreError.
    """
    chosen = choose_pipeline(configuration, pipeline)
    with store.writing():
        planner = planner_of(configuration, store, load_project_snapshot(store, reference, note), chosen, note)
        plan = planner.plan()
        return planner.make(plan), plan
