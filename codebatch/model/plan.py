"""A plan: what can change a byte of output, resolved, and how the work is cut. Immutable, with a digest.

The digest covers the snapshot, the paths that the work is restricted to, and the tasks with versions, code,
configuration and tools. Shards and contexts are pure functions of those, so it need not cover them; limits of time and
memory are no part of it.
"""

from __future__ import annotations

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
from codebatch.model.task import Json

PLAN_FORMAT = 1


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a plan. `key` is its cache key: the digest of all other members that can change its output."""

    name: str
    version: str
    scope: Literal["file", "project"]
    needs: tuple[str, ...]
    implementation_digest: Digest
    config: dict[str, Json]
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
    def items(self) -> int:
        """How many items there are."""
        return self.shards[-1].end if self.shards else 0

    def work(self) -> dict[ShardId, Work]:
        """All that is worked on, by id: the shards of files in path order, then the project tasks in plan order."""
        every: list[Work] = [*self.shards, *map(ProjectWork, self.project_tasks)]
        return {work.id: work for work in every}

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks in the order in which they run."""
        return tuple(task.name for task in self.tasks)

    @property
    def project_tasks(self) -> tuple[str, ...]:
        """The tasks of project scope."""
        return tuple(task.name for task in self.tasks if task.scope == "project")

    def needed_for(self, task: str) -> frozenset[str]:
        """A task with all that it needs, directly or not."""
        needed = {task}
        for planned in reversed(self.tasks):
            if planned.name in needed:
                needed.update(planned.needs)
        return frozenset(needed)

    def context_of(self, item: int) -> dict[str, bytes]:
        """The contexts of an item that are not empty, by name."""
        return {name: value for name, table in self.contexts.items() if (value := table.values[table.items[item]])}


def contexts_seen(tasks: Sequence[PlannedTask]) -> dict[str, frozenset[str]]:
    """Of each task the contexts that it sees: its own, and those of the tasks that it needs, which stand before it."""
    seen: dict[str, frozenset[str]] = {}
    for task in tasks:
        seen[task.name] = frozenset(task.contexts).union(*(seen[need] for need in task.needs))
    return seen


def task_key(
    *,
    name: str,
    version: str,
    implementation_digest: Digest,
    config: dict[str, Json],
    tools: dict[str, str],
    needs: Sequence[tuple[str, Digest]],
) -> Digest:
    """The digest of all that can change a task's output, but for the file itself and its contexts."""
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


def _key_of(task: PlannedTask, keys: Mapping[str, Digest]) -> Digest | None:
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


def with_config(task: PlannedTask, config: dict[str, Json]) -> PlannedTask:
    """A task that needs none, as it would be planned with another configuration."""
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
    """The digest of a plan: equal digests promise equal outputs of COMPLETED batches."""
    covered: dict[str, object] = {"snapshot": snapshot_digest, "tasks": [[task.name, task.key] for task in tasks]}
    if paths:
        from base64 import b64encode

        covered["paths"] = [b64encode(path).decode("ascii") for path in paths]
    return digest_document(covered)


def items_of(entries: Sequence[Entry], paths: Sequence[bytes] = ()) -> list[Entry]:
    """What tasks work on: the entries of kind `file`, in path order; with `paths`, those at or below them."""
    files = [entry for entry in entries if entry.kind == "file"]
    if not paths:
        return files
    known = [entry.path for entry in files]
    chosen: set[int] = set()
    for path in paths:
        chosen.update(range(bisect_left(known, path), bisect_right(known, path)))
        chosen.update(range(bisect_left(known, path + b"/"), bisect_left(known, path + b"0")))  # What comes after `/`.
    return [files[place] for place in sorted(chosen)]


def order_tasks(names: Sequence[str], needs: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The tasks, each after those it needs, otherwise as given. Raises ValueError for a missing need or a cycle."""
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
    """The bytes of plan.json."""
    return encode_document(plan)


def decode_plan(data: bytes) -> Plan:
    """Read plan.json. Raises ValueError where it is not what was written, or does not fit its own digest."""
    plan = decode_document(data, Plan, PLAN_FORMAT)
    keys = {task.name: task.key for task in plan.tasks}
    if any(task.key != _key_of(task, keys) for task in plan.tasks):
        raise ValueError("a task key in the plan does not match its content")
    if list(plan.paths) != sorted(set(plan.paths)) or not all(map(is_safe_path, plan.paths)):
        raise ValueError("paths of the plan are unsafe or out of order")
    if plan.digest != plan_digest(plan.snapshot_digest, plan.tasks, plan.paths):
        raise ValueError("the digest of the plan does not match its content")
    ends = [0, *(shard.end for shard in plan.shards)]
    if any(shard.start != before or shard.end <= before for shard, before in zip(plan.shards, ends, strict=False)):
        raise ValueError("the shards of the plan do not cover its items in order")
    for table in plan.contexts.values():
        if len(table.items) != plan.items or not set(table.items) <= set(range(len(table.values))):
            raise ValueError("a context of the plan does not cover its items")
    return plan
