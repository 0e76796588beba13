"""From a snapshot to a batch: the one way in which `run` and `batch init` plan."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

from codebatch.cli.configuration import Configuration
from codebatch.cli.options import Answering
from codebatch.coordinator.planning import find_pipeline, make_plan, prepare_tasks, resolve_tasks
from codebatch.model.digest import Digest
from codebatch.model.entry import SnapshotId
from codebatch.model.plan import Plan, PlannedTask, plan_digest
from codebatch.model.shard import ShardRule
from codebatch.store.adoption import adopt_batch
from codebatch.store.batches import Batch, create_batch, iter_batches
from codebatch.store.snapshots import load_snapshot
from codebatch.store.store import Store
from codebatch.system.clock import wall_ns


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

    @property
    def digest(self) -> Digest:
        """The plan's digest."""
        return plan_digest(self.frozen.digest, self.tasks, self.frozen.paths)

    def plan(self) -> Plan:
        """The plan."""
        snapshot = load_snapshot(self.store.files, self.store.root, self.frozen.snapshot_id)
        return make_plan(snapshot, self.pipeline, self.tasks, self.shard_rule, self.frozen.paths)

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
    settings, file = configuration.settings, configuration.file
    names = find_pipeline(pipeline, settings.tasks).tasks
    is_of_project = file is not None and (os.fsencode(file.parent.resolve()),) == frozen.sources
    load = partial(load_snapshot, store.files, store.root, frozen.snapshot_id)
    prepared, notes = prepare_tasks(names, settings.tasks, load if is_of_project else None)
    for note in notes:
        answering.note(f"{note}, for what is run is not the project of {file}")
    return Planner(
        store=store,
        frozen=frozen,
        pipeline=pipeline,
        tasks=resolve_tasks(names, prepared),
        shard_rule=settings.shard,
    )
