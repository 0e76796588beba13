"""A plan: everything that determines the output of a batch, and the division of its items into shards. Immutable.

The digest of a plan covers the snapshot, the paths that restrict the plan, and the tasks with versions, code,
configuration and tools. Shards and contexts are computed from these, so the digest need not cover them. Limits of time
and memory are not part of a plan.
"""

from __future__ import annotations

from base64 import b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from codebatch.model.digest import Digest, digest_document
from codebatch.model.documents import Document, decode_document, encode_document
from codebatch.model.entry import Entry, SnapshotId, is_safe_path
from codebatch.model.record import RECORD_SCHEMA
from codebatch.model.shard import ProjectWork, Shard, ShardId, ShardRule, Work
from codebatch.model.task import JsonValue

PLAN_FORMAT = 1


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a plan. `key` is its cache key: the digest of all other members that can change its output."""

    name: str
    version: str
    scope: Literal["file", "project"]
    needs: tuple[str, ...]
    implementation_digest: Digest
    config: dict[str, JsonValue]
    tools: dict[str, str]
    contexts: tuple[str, ...]
    key: Digest


class ContextTable(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a context. `values` are distinct; `items[i]` is the index of the value of item i."""

    values: tuple[bytes, ...]
    items: tuple[int, ...]


class Plan(Document, frozen=True, kw_only=True):
    """A plan: the snapshot and the tasks of a batch, with everything that determines its results.

    `paths` restrict the plan to files at or below them, in ascending order. If `paths` is empty, the plan covers all
    files.
    """

    format: int = PLAN_FORMAT
    digest: Digest
    snapshot_id: SnapshotId
    snapshot_digest: Digest
    pipeline: str
    paths: tuple[bytes, ...] = ()
    tasks: tuple[PlannedTask, ...]
    shard_rule: ShardRule
    shards: tuple[Shard, ...]
    contexts: dict[str, ContextTable]

    @property
    def item_count(self) -> int:
        """The number of items."""
        return self.shards[-1].end if self.shards else 0

    def work_by_id(self) -> dict[ShardId, Work]:
        """Map the ID of each shard and of each project task's work to this work. Shards come first, in path order.

        Project tasks follow in plan order.
        """
        all_work: list[Work] = [*self.shards, *map(ProjectWork, self.project_tasks)]
        return {work.id: work for work in all_work}

    @property
    def task_names(self) -> tuple[str, ...]:
        """The names of the tasks, in the order of execution."""
        return tuple(task.name for task in self.tasks)

    @property
    def project_tasks(self) -> tuple[str, ...]:
        """The names of the tasks of project scope."""
        return tuple(task.name for task in self.tasks if task.scope == "project")

    def needed_for(self, task: str) -> frozenset[str]:
        """Return a task and everything that it needs, directly or indirectly."""
        return needed_tasks(self.tasks, task)

    def item_contexts(self, item: int) -> dict[str, bytes]:
        """Map the names of contexts to their values for an item. Contexts with an empty value are omitted."""
        return {name: value for name, table in self.contexts.items() if (value := table.values[table.items[item]])}


def needed_tasks(tasks: Sequence[PlannedTask], task: str) -> frozenset[str]:
    """Return a task and everything that it needs, directly or indirectly. `tasks` are in dependency order."""
    needed = {task}
    for planned in reversed(tasks):
        if planned.name in needed:
            needed.update(planned.needs)
    return frozenset(needed)


def visible_contexts(tasks: Sequence[PlannedTask]) -> dict[str, frozenset[str]]:
    """Map each task to the names of the contexts that it sees: its own, and those of the tasks that it needs.

    In `tasks`, each task must come after the tasks that it needs.
    """
    contexts: dict[str, frozenset[str]] = {}
    for task in tasks:
        contexts[task.name] = frozenset(task.contexts).union(*(contexts[need] for need in task.needs))
    return contexts


def task_key(
    *,
    name: str,
    version: str,
    implementation_digest: Digest,
    config: dict[str, JsonValue],
    tools: dict[str, str],
    needs: Sequence[tuple[str, Digest]],
) -> Digest:
    """Return the digest of everything that can change a task's output, except the file and its contexts."""
    return digest_document(
        {
            "record_schema": RECORD_SCHEMA,
            "task": name,
            "version": version,
            "implementation": implementation_digest,
            "config": config,
            "tools": tools,
            "needs": dict(needs),
        }
    )


def _make_task_key(task: PlannedTask, keys: Mapping[str, Digest]) -> Digest | None:
    if not keys.keys() >= set(task.needs):
        return None
    return task_key(
        name=task.name,
        version=task.version,
        implementation_digest=task.implementation_digest,
        config=task.config,
        tools=task.tools,
        needs=[(need, keys[need]) for need in task.needs],
    )


def with_config(task: PlannedTask, config: dict[str, JsonValue]) -> PlannedTask:
    """Return a planned task with another configuration, and with the cache key for it.

    The task must not need other tasks.
    """
    assert not task.needs
    key = task_key(
        name=task.name,
        version=task.version,
        implementation_digest=task.implementation_digest,
        config=config,
        tools=task.tools,
        needs=(),
    )
    return replace(task, config=config, key=key)


def plan_digest(snapshot_digest: Digest, tasks: Sequence[PlannedTask], paths: Sequence[bytes] = ()) -> Digest:
    """Return the digest of a plan. COMPLETED batches with equal digests have equal outputs."""
    covered: dict[str, object] = {"snapshot": snapshot_digest, "tasks": [[task.name, task.key] for task in tasks]}
    if paths:
        covered["paths"] = [b64encode(path).decode("ascii") for path in paths]
    return digest_document(covered)


def plan_items(entries: Sequence[Entry], paths: Sequence[bytes] = ()) -> list[Entry]:
    """Return the items of a plan: entries of kind `file` in path order. `paths` restricts them, unless empty."""
    files = [entry for entry in entries if entry.kind == "file"]
    if not paths:
        return files
    file_paths = [entry.path for entry in files]
    positions: set[int] = set()
    for path in paths:
        positions.update(range(bisect_left(file_paths, path), bisect_right(file_paths, path)))
        # `0` is the byte after `/`, so this is the end of all paths below the directory.
        positions.update(range(bisect_left(file_paths, path + b"/"), bisect_left(file_paths, path + b"0")))
    return [files[place] for place in sorted(positions)]


def order_tasks(names: Sequence[str], needs: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the tasks in an order in which each task comes after the tasks that it needs.

    Otherwise keep the given order. Raises ValueError if a needed task is missing or tasks form a cycle.
    """
    ordered: list[str] = []
    waiting = list(names)
    while waiting:
        ready = next((name for name in waiting if set(needs[name]) <= set(ordered)), None)
        if ready is None:
            missing = sorted({need for name in waiting for need in needs[name]} - set(names))
            problem = (
                f"need {', '.join(missing)}, which is not in the pipeline"
                if missing
                else "depend on one another in a cycle"
            )
            raise ValueError(f"tasks {', '.join(waiting)} {problem}")
        waiting.remove(ready)
        ordered.append(ready)
    return tuple(ordered)


def encode_plan(plan: Plan) -> bytes:
    """Return the bytes of plan.json."""
    return encode_document(plan)


def decode_plan(data: bytes) -> Plan:
    """Decode plan.json. Raises ValueError if the file is damaged or inconsistent with its digest."""
    plan = decode_document(data, Plan, PLAN_FORMAT)
    keys = {task.name: task.key for task in plan.tasks}
    if any(task.key != _make_task_key(task, keys) for task in plan.tasks):
        raise ValueError("a task key in the plan does not match its content")
    if list(plan.paths) != sorted(set(plan.paths)) or not all(map(is_safe_path, plan.paths)):
        raise ValueError("paths of the plan are unsafe or out of order")
    if plan.digest != plan_digest(plan.snapshot_digest, plan.tasks, plan.paths):
        raise ValueError("the digest of the plan does not match its content")
    ends = [0, *(shard.end for shard in plan.shards)]
    if any(
        shard.start != previous_end or shard.end <= previous_end
        for shard, previous_end in zip(plan.shards, ends, strict=False)
    ):
        raise ValueError("the shards of the plan do not cover its items in order")
    for table in plan.contexts.values():
        if len(table.items) != plan.item_count or not set(table.items) <= set(range(len(table.values))):
            raise ValueError("a context of the plan does not cover its items")
    return plan
