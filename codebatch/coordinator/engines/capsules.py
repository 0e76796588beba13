"""Capsules: the input of a part for a machine that has neither the tree nor the store."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import metadata
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from codebatch.model.capsule import CapsuleHeader, CapsuleLimits, CapsuleObject, CustomFile
from codebatch.model.command_table import CommandTaskLocation, config_files_context_name
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.plan import ContextTable, Plan, PlannedTask, visible_contexts
from codebatch.model.shard import Shard, ShardId
from codebatch.model.task import CustomTaskLocation
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import may_propose_changes
from codebatch.plugins.user_tasks import CUSTOM_FILE_BYTES_MAX
from codebatch.scheduling.analysis.part_dispatcher import PART_TIME_MIN
from codebatch.store.capsules import capsule_format
from codebatch.store.objects.object_store import ObjectStore
from codebatch.system.files.regular_files import read_regular

_config_files_decoder = msgspec.msgpack.Decoder(list[tuple[bytes, Digest, bool]])


def codebatch_version() -> str:
    """Return the version of codebatch."""
    return metadata.version("codebatch")


def python_version() -> str:
    """Return the minor version of Python, such as `3.12`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


class RemoteTasks(NamedTuple):
    """The file tasks that another machine can execute, and the reasons why others must be executed here, by name."""

    tasks: tuple[PlannedTask, ...]
    reasons: dict[str, str]


def choose_remote_tasks(tasks: Sequence[PlannedTask], catalogue: TaskCatalogue) -> RemoteTasks:
    """Return the file tasks of a plan that another machine can execute. `tasks` are all its tasks.

    These are the tasks whose inputs are the files of the snapshot and the files that the cache key covers, and whose
    results are only records. Raises InvalidConfiguration.
    """
    chosen: list[PlannedTask] = []
    reasons: dict[str, str] = {}
    for task in tasks:
        if task.scope != "file":
            continue
        missing = [need for need in task.needs if need in reasons]
        reason = f"it needs {missing[0]}" if missing else _local_reason(task, catalogue)
        if reason:
            reasons[task.name] = reason
        else:
            chosen.append(task)
    return RemoteTasks(tuple(chosen), reasons)


def _local_reason(task: PlannedTask, catalogue: TaskCatalogue) -> str:
    """Return why a task must be executed on this machine, or an empty text."""
    if task.config.get("emit_ast"):
        return "it stores syntax trees"
    if may_propose_changes(catalogue, task.name):
        return "it may propose changes of files, which are objects of this store"
    if task.name in catalogue.import_names:
        return "its findings were imported into this store"
    command = catalogue.commands.get(task.name)
    if command is not None:
        program = command.table.command[0]
        if "/" in program and not program.startswith("/"):
            return f"its program {program!r} is a file of the project"
        if command.inputs:
            return f"its command names {next(iter(command.inputs))!r}, a file of the project"
        for setting in ("link", "lock"):
            if getattr(command.table, setting):
                return f"it has `{setting}`, which names files of the project"
    unkeyed = catalogue.unkeyed_input(task.name)
    return f"its cache key does not cover all inputs ({unkeyed})" if unkeyed else ""


def make_capsule_header(
    plan_digest: Digest,
    pipeline: str,
    tasks: tuple[PlannedTask, ...],
    catalogue: TaskCatalogue,
    *,
    limits: CapsuleLimits,
    jobs: int,
    hash_seed: int,
) -> CapsuleHeader:
    """Return the header of a capsule without shards. Raises InvalidConfiguration or OSError.

    `jobs` is the number of worker processes for a capsule.
    """
    names = {task.name for task in tasks}
    portable: dict[str, CustomTaskLocation | CommandTaskLocation] = {**catalogue.custom_locations, **catalogue.commands}
    locations = {name: location for name, location in portable.items() if name in names}
    return CapsuleHeader(
        plan_digest=plan_digest,
        codebatch=codebatch_version(),
        python=python_version(),
        pipeline=pipeline,
        tasks=tasks,
        shards=(),
        items=(),
        contexts={},
        locations={name: _portable_location(location) for name, location in locations.items()},
        files=tuple(_iter_custom_files(catalogue, locations)),
        limits=limits,
        jobs=jobs,
        hash_seed=hash_seed,
        seconds_max=PART_TIME_MIN,
    )


class CapsuleMaker:
    """Makes the capsules of one plan."""

    def __init__(self, header: CapsuleHeader, plan: Plan, items: Sequence[Entry], objects: ObjectStore) -> None:
        """`header` is the common part of the headers. `items` are all items of the plan."""
        self._header = header
        self._items = items
        self._objects = objects
        self._shards = {shard.id: shard for shard in plan.shards}
        seen = frozenset().union(*visible_contexts(header.tasks).values())
        self._contexts = {name: table for name, table in plan.contexts.items() if name in seen}

    def make(self, shard_ids: Collection[ShardId], seconds_max: float) -> bytes:
        """Return the capsule of some shards. Raises ObjectMissing."""
        shards = sorted((self._shards[id_] for id_ in shard_ids), key=lambda shard: shard.start)
        numbers = [number for shard in shards for number in range(shard.start, shard.end)]
        items = tuple(self._items[number] for number in numbers)
        contexts = {name: _restricted_table(table, numbers) for name, table in self._contexts.items()}
        digests = dict.fromkeys([*(Digest(item.object) for item in items), *self._config_files(contexts)])
        header = replace(
            self._header, shards=tuple(_rebase(shards)), items=items, contexts=contexts, seconds_max=seconds_max
        )
        return capsule_format.encode(header, self._iter_objects(digests))

    def _config_files(self, contexts: dict[str, ContextTable]) -> Iterator[Digest]:
        for name in self._header.locations:
            if (table := contexts.get(config_files_context_name(name))) is not None:
                for value in filter(None, table.values):
                    yield from (digest for _, digest, _ in _config_files_decoder.decode(value))

    def _iter_objects(self, digests: Iterable[Digest]) -> Iterator[CapsuleObject]:
        for digest in digests:
            frame, size = self._objects.read_frame(digest)
            yield CapsuleObject(digest=digest, size=size, frame=frame)


def _rebase(shards: Sequence[Shard]) -> Iterator[Shard]:
    ends = accumulate(shard.items for shard in shards)
    for shard, end in zip(shards, ends, strict=True):
        yield replace(shard, start=end - shard.items, end=end)


def _restricted_table(table: ContextTable, numbers: Sequence[int]) -> ContextTable:
    used = sorted({table.items[number] for number in numbers})
    return ContextTable(
        values=tuple(table.values[index] for index in used),
        items=tuple(bisect_left(used, table.items[number]) for number in numbers),
    )


def _portable_location(
    location: CustomTaskLocation | CommandTaskLocation,
) -> CustomTaskLocation | CommandTaskLocation:
    """Return a location without paths of this machine. The other machine looks up programs itself."""
    if isinstance(location, CommandTaskLocation):
        return CommandTaskLocation(table=location.table, project="", default_seconds=location.default_seconds)
    function = location.python.rpartition(":")[2]
    return replace(location, python=f":{function}", files=dict.fromkeys(location.files, ""), project="")


def _iter_custom_files(
    catalogue: TaskCatalogue, locations: dict[str, CustomTaskLocation | CommandTaskLocation]
) -> Iterator[CustomFile]:
    for name, location in locations.items():
        if isinstance(location, CustomTaskLocation):
            yield CustomFile(task=name, name="", content=catalogue.custom_source(name).content)
            for key, path in location.files.items():
                content = read_regular(Path(path), bytes_max=CUSTOM_FILE_BYTES_MAX, is_link_followed=True)
                yield CustomFile(task=name, name=key, content=content)
