"""Work batches on disk.

The commands are stored as a snapshot; settings and dependencies are in work.json (SPEC.md "Work batches").
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timezone
from typing import TypeVar

from msgspec.structs import replace

from codebatch.errors import CorruptFile, StoreCorrupt
from codebatch.model.analysis.shard_boundaries import cut_shards
from codebatch.model.digest import digest_bytes
from codebatch.model.documents import DocumentError
from codebatch.model.entry import Entry, display_path, encode_entry
from codebatch.model.plan import Plan, PlannedTask, plan_digest, plan_items, task_key
from codebatch.model.shard import ShardRule
from codebatch.model.task import WORK_PIPELINE
from codebatch.model.work.command import Command, CommandId, decode_command, encode_command
from codebatch.model.work.request import Add, Reload, Request, Set, added_commands, reloaded_command, set_timeout
from codebatch.model.work.work_batch import (
    WORK_LISTING,
    WORK_TASK,
    InferredEdge,
    Work,
    WorkEdge,
    check_work,
    decode_work,
    encode_work,
)
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, check_kind, create_batch, load_batch_snapshot
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.documents import read_document
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.snapshots.index_frames import make_snapshot_index
from codebatch.store.snapshots.snapshots import Snapshot, SnapshotSource, load_snapshot, publish_snapshot
from codebatch.store.work.requests import RequestStore

_UNRECOVERABLE_HINT = "this batch cannot be recovered: make a new one with: codebatch work run"
_Edge = TypeVar("_Edge", WorkEdge, InferredEdge)
# A constant, so that a batch can be resumed after an upgrade of codebatch.
_IMPLEMENTATION = digest_bytes(b"work 1")


def make_work_batch(store: StoreDir, commands: Sequence[Command], work: Work, *, at_ns: int) -> BatchDir:
    """Store commands as a snapshot, and create a work batch that runs them. On return the batch is on disk.

    The caller holds the shared lock of the store.
    """
    assert {command.id for command in commands} == set(work.order)
    snapshot = _freeze_commands(store, commands, work, at_ns)
    # Decoded and encoded again, so that equal work gives equal bytes. omit_defaults compares by identity, and decoding
    # may replace a value by the equal default.
    written = encode_work(decode_work(encode_work(work)))
    plan = _make_plan(snapshot, written)
    project = b"" if store.project is None else store.project.root
    return create_batch(
        store, plan, sources=(work.root,), project=project, at_ns=at_ns, documents={layout.WORK_FILE: written}
    )


def _freeze_commands(store: StoreDir, commands: Sequence[Command], work: Work, at_ns: int) -> Snapshot:
    objects = store.objects()
    entries: list[Entry] = []
    with PackWriter(objects) as writer:
        for command in commands:
            data = encode_command(command)
            entries.append(Entry(command.id.encode(), "file", False, len(data), writer.add(data)))
        writer.seal_packs()
    entries.sort()
    document = publish_snapshot(
        store.files,
        store.root,
        make_snapshot_index(map(encode_entry, entries)),
        source=SnapshotSource(base=display_path(work.root), roots=(work.source,), listing=WORK_LISTING),
        created_at=datetime.fromtimestamp(at_ns / 1e9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    )
    return load_snapshot(store.files, store.root, document.snapshot_id)


def _make_plan(snapshot: Snapshot, written: bytes) -> Plan:
    config = {"work": digest_bytes(written)}
    task = PlannedTask(
        name=WORK_TASK,
        version="1",
        scope="file",
        needs=(),
        implementation_digest=_IMPLEMENTATION,
        config=dict(config),
        tools={},
        contexts=(),
        key=task_key(
            name=WORK_TASK, version="1", implementation_digest=_IMPLEMENTATION, config=dict(config), tools={}, needs=()
        ),
    )
    rule = ShardRule()
    return Plan(
        digest=plan_digest(snapshot.digest, (task,)),
        snapshot_id=snapshot.id,
        snapshot_digest=snapshot.digest,
        pipeline=WORK_PIPELINE,
        tasks=(task,),
        shard_rule=rule,
        shards=tuple(cut_shards(plan_items(snapshot.entries), rule)),
        contexts={},
    )


def read_work(batch: BatchDir, requests: Sequence[Request] | None = None) -> Work:
    """Return the settings and dependencies of a batch, with the changes of all reload and add requests.

    `requests` are the requests of the batch if the caller has read them. Raises WrongBatchKind or StoreCorrupt.
    """
    check_kind(batch, "work")
    work = _read_work_document(batch)
    for request in _read_requests(batch) if requests is None else requests:
        body = request.body
        if isinstance(body, Reload):
            work = _apply_reload(work, body)
        elif isinstance(body, Add):
            work = _apply_add(work, body)
        else:
            continue
        try:
            check_work(work)
        except DocumentError as error:
            message = f"has an invalid {type(body).__name__.lower()} request: {error}"
            raise CorruptFile(str(batch.root / layout.REQUESTS), message, hint=_UNRECOVERABLE_HINT) from error
    return work


def _read_requests(batch: BatchDir) -> list[Request]:
    return RequestStore(batch.files, batch.root).read()


def _read_work_document(batch: BatchDir) -> Work:
    path = batch.root / layout.WORK_FILE
    planned = batch.plan().tasks[0].config

    def decode(data: bytes) -> Work:
        if {"work": digest_bytes(data)} != planned:
            raise DocumentError("it belongs to another batch")
        return decode_work(data)

    try:
        return read_document(batch.files, path, decode, hint=_UNRECOVERABLE_HINT)
    except FileNotFoundError as error:
        raise CorruptFile(str(path), "is missing", hint=_UNRECOVERABLE_HINT) from error


def iter_reloads(batch: BatchDir) -> Iterator[Reload]:
    """Yield the reload requests of a work batch in order. Raises StoreCorrupt."""
    for request in _read_requests(batch):
        if isinstance(request.body, Reload):
            yield request.body


def _apply_reload(work: Work, reload: Reload) -> Work:
    """Return `work` with the policies and edges of a reload request.

    Commands of the request that are not in the batch are ignored.
    """
    task_ids = {*work.order}
    changed = task_ids.intersection(reload.rounds)
    titles = {command.id: command.title for command in reload.commands if command.id in changed and command.title}
    policies = {id_: policy for id_, policy in reload.policies.items() if id_ in changed}
    edges = [edge for edge in reload.edges if edge.task in changed]
    inferred = [edge for edge in reload.inferred if edge.task in changed and edge.on in task_ids]
    return replace(
        work,
        titles={**{id_: title for id_, title in work.titles.items() if id_ not in changed}, **titles},
        policies={**{id_: policy for id_, policy in work.policies.items() if id_ not in changed}, **policies},
        edges=_merge_edges(work.edges, [edge for edge in edges if edge.on in task_ids], changed),
        inferred=_merge_edges(work.inferred, inferred, changed),
        satisfied_needs=_merge_edges(
            work.satisfied_needs, [edge for edge in edges if edge.on not in task_ids], changed
        ),
    )


def _apply_add(work: Work, add: Add) -> Work:
    """Return `work` with the commands of an add request at the end of its order."""
    return replace(
        work,
        order=(*work.order, *(command.id for command in add.commands)),
        titles={**work.titles, **{command.id: command.title for command in add.commands if command.title}},
        policies={**work.policies, **add.policies},
        edges=(*work.edges, *add.edges),
    )


def _merge_edges(then: Sequence[_Edge], now: Sequence[_Edge], changed: Collection[CommandId]) -> tuple[_Edge, ...]:
    """Return the edges of `then` whose command is not in `changed`, followed by the edges of `now`."""
    return tuple(itertools.chain((edge for edge in then if edge.task not in changed), now))


class CommandDefinitions:
    """The definitions of the commands of a work batch in each round. A reload request changes later rounds.

    `added` maps the commands that requests have added to their definitions in the first round.
    """

    def __init__(self, store: StoreDir, batch: BatchDir) -> None:
        """Read the snapshot and the requests. Raises StoreCorrupt."""
        self._batch = batch
        self._snapshot = _command_snapshot(store, batch)
        requests = _read_requests(batch)
        self._reloads = [request.body for request in requests if isinstance(request.body, Reload)]
        self.added = {command.id: command for command in added_commands(requests)}

    def read(self, command: str, round_: int | None = None) -> Command:
        """Return the definition of a command in a round, by default in the next one.

        Raises StoreCorrupt, or KeyError if the batch does not have the command.
        """
        return (
            reloaded_command(self._reloads, command, round_)
            or self.added.get(CommandId(command))
            or _read_listed_command(self._snapshot, self._batch, command)
        )

    def is_unchanged(self, command: Command, round_: int | None = None) -> bool:
        """Return whether `command` equals the definition that the batch has for this command's ID in a round.

        Raises the errors of `read`.
        """
        reloaded = reloaded_command(self._reloads, command.id, round_)
        entry = self._snapshot.entry(command.id.encode())
        if reloaded is None and entry is not None and entry.object == digest_bytes(encode_command(command)):
            return True
        return self.read(command.id, round_) == command


def _command_snapshot(store: StoreDir, batch: BatchDir) -> Snapshot:
    try:
        return load_batch_snapshot(store, batch)
    except StoreCorrupt as error:
        raise StoreCorrupt(error.message, hint=_UNRECOVERABLE_HINT) from error


def read_command_ids(store: StoreDir, batch: BatchDir, work: Work) -> list[CommandId]:
    """Return the IDs of all commands of a work batch, in the order of the items in its plan. Raises StoreCorrupt."""
    entries = plan_items(_command_snapshot(store, batch).entries)
    commands = [CommandId(entry.text) for entry in entries]
    # Requests that were made after `work` was read are ignored.
    added = added_commands(_read_requests(batch))[: len(work.order) - len(commands)]
    commands += [command.id for command in added]
    if sorted(commands) != sorted(work.order):
        raise CorruptFile(str(batch.root / layout.WORK_FILE), "does not match the task list", hint=_UNRECOVERABLE_HINT)
    return commands


def read_command(store: StoreDir, batch: BatchDir, command: str) -> Command:
    """Return the definition of a command for the next attempt. Raises the errors of `CommandDefinitions.read`.

    The time limit is that of the last Set request, if any has one.
    """
    bodies = [request.body for request in _read_requests(batch)]
    return set_timeout(
        [body for body in bodies if isinstance(body, Set)], CommandDefinitions(store, batch).read(command)
    )


def _read_listed_command(snapshot: Snapshot, batch: BatchDir, command: str) -> Command:
    data = snapshot.read(command.encode())
    if data is None:
        raise KeyError(command)
    try:
        definition = decode_command(data)
    except DocumentError as error:
        raise CorruptFile(
            str(batch.root), f"has a damaged task {command}: {error}", hint=_UNRECOVERABLE_HINT
        ) from error
    if definition.id != command:
        raise CorruptFile(str(batch.root), f"has another task as {command}", hint=_UNRECOVERABLE_HINT)
    return definition
