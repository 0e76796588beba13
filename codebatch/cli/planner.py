"""From a snapshot to a batch: the one way in which `run` and `batch init` plan."""

from __future__ import annotations

import os
from dataclasses import dataclass

from codebatch.application.configuration import Configuration
from codebatch.cli.options import Answering
from codebatch.coordinator.planning import find_pipeline, make_plan, resolve_tasks
from codebatch.coordinator.ruff_files import ruff_files
from codebatch.model.digest import Digest
from codebatch.model.entry import SnapshotId
from codebatch.model.plan import Plan, PlannedTask, plan_digest
from codebatch.model.shard import ShardRule
from codebatch.store.adoption import adopt_batch
from codebatch.store.batches import Batch, create_batch, iter_batches
from codebatch.store.snapshots import load_snapshot
from codebatch.store.store import Store
from codebatch.system.clock import wall_ns
from codebatch.system.task_catalogue import TaskCatalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """A snapshot, of which project it is, and the paths below it that the work is restricted to.

    `stat_cache` is the name of the one that knows what the tree looked like, empty where that is not known.
    """

    snapshot_id: SnapshotId
    digest: Digest
    sources: tuple[bytes, ...]
    paths: tuple[bytes, ...] = ()
    stat_cache: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """All that decides a plan. Its digest is known before the plan is made."""

    store: Store
    frozen: Frozen
    pipeline: str
    tasks: tuple[PlannedTask, ...]
    shard_rule: ShardRule
    catalogue: TaskCatalogue

    @property
    def digest(self) -> Digest:
        """The plan's digest."""
        return plan_digest(self.frozen.digest, self.tasks, self.frozen.paths)

    def plan(self) -> Plan:
        """The plan."""
        snapshot = load_snapshot(self.store.files, self.store.root, self.frozen.snapshot_id)
        return make_plan(self.catalogue, snapshot, self.pipeline, self.tasks, self.shard_rule, self.frozen.paths)

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


def planner_of(
    answering: Answering, configuration: Configuration, store: Store, frozen: Frozen, pipeline: str
) -> Planner:
    """What a pipeline over a snapshot is planned from. Raises InvalidInput or InvalidConfiguration."""
    settings = _with_ruff_files(answering, configuration, store, frozen).settings
    return Planner(
        store=store,
        frozen=frozen,
        pipeline=pipeline,
        tasks=resolve_tasks(configuration.catalogue, find_pipeline(pipeline, settings.tasks).tasks, settings.tasks),
        shard_rule=settings.shard,
        catalogue=configuration.catalogue,
    )


def _with_ruff_files(answering: Answering, configuration: Configuration, store: Store, frozen: Frozen) -> Configuration:
    """With the tree's own configuration of ruff, where that is wanted and the tree is the project we stand in."""
    wanted = configuration.settings.tasks.get("lint", {}).get("ruff")
    if not isinstance(wanted, dict) or wanted.get("config") != "project":
        return configuration
    file = configuration.file
    if file is None or (os.fsencode(file.parent.resolve()),) != frozen.sources:
        answering.note(f"ruff: the pinned rules, for what is run is not the project of {file}")
        return configuration.with_task_setting("lint", "ruff", {"config": "pinned"})
    files = ruff_files(load_snapshot(store.files, store.root, frozen.snapshot_id))
    return configuration.with_task_setting("lint", "ruff", {"config": "project", "files": files})
