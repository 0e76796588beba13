"""Work batches whose commands work in trees of their own, with a real worker and real git."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from codebatch.model.change import ListedChange, decode_change_set
from codebatch.model.digest import Digest
from codebatch.model.outcome import TaskOutcome
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.trees import NeededChanges, TreeInput, TreeSettings
from codebatch.protocol.messages import AttemptInput
from codebatch.snapshotting.selection import SourceRules
from codebatch.snapshotting.snapshot import take_snapshot
from codebatch.store.batches.store_directory import create_store
from codebatch.store.work.trees import BatchTrees
from codebatch.system.files.files import RealFiles
from tests.support.git_repositories import git
from tests.support.work_batches import Coordinator, Place, make_place

FILES = {"a": b"1\n2\n3\n4\n5\n", "sub/b": b"b\n", "sub/deep/c": b"c\n", ".gitignore": b"*.o\n"}

Kind = Literal["worktree", "copy"]


def isolated(run: str, id_: str = "a", *, kind: Kind = "worktree", **keys: object) -> Command:
    """Return an isolated command with some settings."""
    return Command(id=CommandId(id_), run=run, isolation=kind, **keys)  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class TreePlace:
    """A work batch on disk whose commands are isolated."""

    place: Place
    trees: BatchTrees
    settings: TreeSettings

    @property
    def root(self) -> Path:
        """The user's directory."""
        return self.place.root

    def read(self, digest: Digest) -> bytes:
        """Return an object of the store."""
        return self.place.store.objects().read(digest)

    def changes(self, outcome: TaskOutcome) -> list[ListedChange]:
        """Return the change set of an outcome. Check that the store has all contents."""
        listed = list(decode_change_set(self.read(outcome.changes)).changes)
        for each in listed:
            for digest in (each.change.before, each.change.after):
                assert digest is None or self.read(digest) is not None
        return listed

    def contents(self, outcome: TaskOutcome) -> dict[str, bytes | None]:
        """Return the new content of each changed path."""
        changes = [each.change for each in self.changes(outcome)]
        return {change.path.decode(): None if change.after is None else self.read(change.after) for change in changes}

    def names(self) -> list[str]:
        """Return the names of all trees."""
        return [str(name) for name in self.trees.names()]

    def registered(self) -> list[str]:
        """Return the paths of all work trees that the repository lists, except its own."""
        lines = git(self.root, "worktree", "list", "--porcelain").splitlines()
        return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")][1:]


def write_files(root: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a directory."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def commit_all(repository: Path) -> str:
    """Commit all files. Return the commit."""
    git(repository, "add", "-A")
    git(repository, "-c", "user.name=n", "-c", "user.email=n@n", "commit", "-q", "-m", "m", "--allow-empty")
    return git(repository, "rev-parse", "HEAD")


def make_tree_place(
    directory: Path,
    *commands: Command,
    files: Mapping[str, bytes] = FILES,
    subdirectory: str = "",
    links: tuple[bytes, ...] = (),
    keep: Literal["failed", "none"] = "failed",
) -> TreePlace:
    """Create a project with some files, and a batch of isolated commands. With a worktree, it is a git repository.

    With `subdirectory`, the root of the batch is this directory of the repository. Otherwise it is its top.
    """
    repository = directory / "root"
    root = repository / subdirectory
    write_files(repository, files)
    settings = TreeSettings(directory=bytes(directory / "trees"), links=links, keep=keep)
    if any(command.isolation == "worktree" for command in commands):
        git(repository, "init", "-q", "-b", "main")
        base = commit_all(repository)
        settings = TreeSettings(
            repository=bytes(repository), base=base, directory=settings.directory, links=links, keep=keep
        )
    else:
        store = create_store(RealFiles(), directory / "store")[0]
        taken = take_snapshot(store.files, store.root, [root], SourceRules(), now=time.time)
        settings = TreeSettings(snapshot=taken.snapshot_id, directory=settings.directory, links=links, keep=keep)
    place = make_place(directory, *commands, trees=settings, root=root)
    return TreePlace(place, BatchTrees(place.store, place.batch.id, settings), settings)


def attempt(coordinator: Coordinator, item: int = 0, *, round_: int = 1, tree: TreeInput | None = None) -> TaskOutcome:
    """Execute an attempt of an isolated command. Return its outcome."""
    coordinator.assign(item, round_=round_, epoch=round_, brief=AttemptInput(tree=tree or TreeInput()))
    return coordinator.result()


def needing(**changes: Digest) -> TreeInput:
    """Return the input of a tree with the change sets of needed tasks."""
    return TreeInput(needed=tuple(NeededChanges(task=task, changes=digest) for task, digest in changes.items()))
