"""Work batches whose attempts changed files in trees of their own, made without a worker."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import UnsetType

from codebatch.model.change import ListedChange, TreeChange, encode_change_set
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.outcome import OutcomeType, WorkUnit
from codebatch.model.record import CommandReason
from codebatch.model.work.command import Command, CommandId, Isolation
from codebatch.model.work.request import Open
from codebatch.model.work.trees import TreeSettings
from codebatch.model.work.work_batch import WORK_TASK, Work, WorkEdge
from codebatch.store.batches.batch_directory import BatchDir, make_batch_directories
from codebatch.store.batches.holders import new_holder_id
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.results.outcomes import OutcomeCommitter, attempt_outcome
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import make_work_batch, read_command_ids, read_work
from codebatch.system.files.files import RealFiles

BASE = "0123456789" * 4
Edit = tuple[bytes | None, bytes | None]
"""The contents of a file before and after a change. None: the file does not exist then."""


def put_objects(store: StoreDir, *contents: bytes) -> list[Digest]:
    """Store contents durably, and return their digests."""
    with PackWriter(store.objects()) as writer:
        digests = [writer.add(content) for content in contents]
        writer.seal_packs()
    return digests


def change_of(path: bytes, edit: Edit) -> ListedChange:
    """Return the change of a file that is not executable."""
    before, after = edit
    return ListedChange(
        change=TreeChange(
            path=path,
            before=None if before is None else digest_bytes(before),
            after=None if after is None else digest_bytes(after),
        ),
        added=0 if after is None else after.count(b"\n"),
        removed=0 if before is None else before.count(b"\n"),
    )


@dataclass(frozen=True, slots=True)
class IsolatedBatch:
    """A work batch with trees."""

    store: StoreDir
    batch: BatchDir

    def end(
        self,
        task: str,
        edits: Mapping[bytes, Edit] | None,
        *,
        round_: int = 1,
        type_: OutcomeType = "result",
    ) -> Digest:
        """Commit an attempt that made these edits, and return its change set.

        None: it has no change set, because the task is not isolated or, if it failed, because none could be recorded.
        """
        if edits is None:
            return self.end_with(task, Digest(""), round_=round_, type_=type_)
        contents = {content for edit in edits.values() for content in edit if content is not None}
        changes = [change_of(path, edit) for path, edit in edits.items()]
        *_, digest = put_objects(self.store, *sorted(contents), encode_change_set(changes))
        return self.end_with(task, digest, round_=round_, type_=type_)

    def end_with(self, task: str, changes: Digest, *, round_: int = 1, type_: OutcomeType = "result") -> Digest:
        """Commit an attempt with a change set, and return the change set."""
        (shard,) = self.batch.plan().shards
        item = read_command_ids(self.store, self.batch, read_work(self.batch)).index(CommandId(task))
        unit = WorkUnit(shard=shard.id, start=item, end=item + 1, tasks=(WORK_TASK,), round=round_)
        make_batch_directories(self.batch)
        committer = OutcomeCommitter(self.batch.files, self.batch.root, new_holder_id())
        reason: CommandReason | None = None if type_ != "failed" else "exit" if changes else "check"
        outcome = attempt_outcome(unit, type_, reason, {None: 0, "exit": 1}.get(reason), changes=changes)
        committer.commit_outcomes([outcome], epoch=round_, round_=round_)
        committer.close()
        return changes

    def reopen(self, task: str, round_: int) -> None:
        """Request that a task runs again after a round."""
        requests = RequestStore(self.batch.files, self.batch.root)
        requests.append(Open(rounds={CommandId(task): round_}), by="a test", at_ns=time.time_ns())


def make_isolated_batch(
    store_root: Path,
    root: Path,
    tasks: Sequence[str],
    *,
    needs: Sequence[tuple[str, str]] = (),
    isolation: Isolation = "worktree",
    others: Mapping[str, Isolation | UnsetType] = {},
    repository: Path | None = None,
    files: Mapping[bytes, bytes] = {},
    at_ns: int = 0,
    trees: Path = Path("/trees"),
) -> IsolatedBatch:
    """Make a batch of isolated tasks. `needs` are pairs of a task and the task that it needs.

    The files are written below `root`. The store is created if it does not exist. `repository` is the git work tree, by
    default `root`. `trees` is the directory of the trees. `others` has the isolation of tasks that have another one.
    """
    for path, content in files.items():
        place = root / os.fsdecode(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    store = create_store(RealFiles(), store_root)[0]
    is_worktree = isolation == "worktree"
    settings = TreeSettings(
        directory=os.fsencode(trees),
        repository=os.fsencode((repository or root).resolve()) if is_worktree else b"",
        base=BASE if is_worktree else "",
    )
    work = Work(
        source="test",
        root=os.fsencode(root.resolve()),
        order=tuple(map(CommandId, tasks)),
        edges=tuple(WorkEdge(CommandId(task), CommandId(on)) for task, on in needs),
        trees=settings,
    )
    commands = [Command(id=CommandId(task), run="true", isolation=others.get(task, isolation)) for task in tasks]
    return IsolatedBatch(store, make_work_batch(store, commands, work, at_ns=at_ns or time.time_ns()))
