"""Small trees of files, on a real disk, and changes of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from codebatch.errors import ObjectMissing
from codebatch.model.change import ProposedChange, TreeChange
from codebatch.model.digest import Digest, digest_bytes
from codebatch.operations.changes.apply import apply_writes
from codebatch.operations.changes.checks import FileOutcome
from codebatch.operations.changes.file_writes import FileWrite, plan_writes
from codebatch.system.files.tree_writer import RealTreeCalls, TreeCalls

Tree = Mapping[bytes, "TreeFile"]


class TreeFile(NamedTuple):
    """The content of a file, and its permissions. The content of a link is its target."""

    content: bytes
    mode: int = 0o644
    kind: Literal["file", "link"] = "file"

    @property
    def is_executable(self) -> bool:
        """Whether it is a file that its owner may execute."""
        return self.kind == "file" and bool(self.mode & stat.S_IXUSR)


class MemoryContents:
    """Contents by digest. `sizes` overrides the sizes of some contents."""

    def __init__(self, contents: Sequence[bytes], sizes: Mapping[bytes, int] = {}) -> None:
        self.contents = {digest_bytes(content): content for content in contents}
        self.sizes = {digest_bytes(content): size for content, size in sizes.items()}

    def size(self, digest: Digest) -> int:
        return self.sizes.get(digest) or len(self.read(digest))

    def read(self, digest: Digest) -> bytes:
        if digest not in self.contents:
            raise ObjectMissing(f"object {digest}")
        return self.contents[digest]


class UnsyncedCalls(RealTreeCalls):
    """Real calls without sync(2), which takes seconds on a busy machine."""

    def __init__(self) -> None:
        self.syncs = 0

    def sync(self) -> None:
        self.syncs += 1


def write_tree(root: Path, tree: Tree) -> None:
    """Write the files of a tree below a directory."""
    for path, file in tree.items():
        place = root / os.fsdecode(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.kind == "link":
            place.symlink_to(os.fsdecode(file.content))
            continue
        place.write_bytes(file.content)
        place.chmod(file.mode)


def read_tree(root: Path) -> dict[bytes, TreeFile]:
    """Return the files below a directory. Links are not followed."""
    found: dict[bytes, TreeFile] = {}
    for above, directories, names in os.walk(os.fsencode(root)):
        for name in (*directories, *names):
            place = os.path.join(above, name)
            status = os.lstat(place)
            path = os.path.relpath(place, os.fsencode(root))
            if stat.S_ISLNK(status.st_mode):
                found[path] = TreeFile(os.readlink(place), kind="link")
            elif name in names:
                found[path] = TreeFile(Path(os.fsdecode(place)).read_bytes(), stat.S_IMODE(status.st_mode))
    return found


def read_directories(root: Path) -> set[bytes]:
    """Return the paths of the directories below a directory."""
    return {os.fsencode(path.relative_to(root)) for path in root.rglob("*") if path.is_dir() and not path.is_symlink()}


def proposed_changes(before: Tree, after: Tree, task: str = "rename") -> list[ProposedChange]:
    """Return the changes that make one tree from another."""
    changes = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old is None or new is None or old.content != new.content or old.is_executable != new.is_executable:
            change = TreeChange(
                path=path,
                kind="link" if "link" in (getattr(old, "kind", ""), getattr(new, "kind", "")) else "file",
                before=None if old is None else digest_bytes(old.content),
                after=None if new is None else digest_bytes(new.content),
                was_executable=old is not None and old.is_executable,
                executable=new is not None and new.is_executable,
            )
            changes.append(ProposedChange(change=change, task=task, added=0, removed=0))
    return changes


def tree_writes(before: Tree, after: Tree, *, is_reversed: bool = False) -> list[FileWrite]:
    """Return the writes that make one tree from another, or undo this."""
    return plan_writes(proposed_changes(before, after), is_reversed=is_reversed)


def tree_contents(*trees: Tree) -> MemoryContents:
    """Return the contents of all files of some trees."""
    return MemoryContents([file.content for tree in trees for file in tree.values()])


def apply_tree(
    root: Path,
    before: Tree,
    after: Tree,
    *,
    is_reversed: bool = False,
    is_partial: bool = False,
    is_dry: bool = False,
    calls: TreeCalls | None = None,
    contents: MemoryContents | None = None,
) -> list[FileOutcome]:
    """Apply the changes between two trees to a directory."""
    return apply_writes(
        calls or UnsyncedCalls(),
        os.fsencode(root),
        tree_writes(before, after, is_reversed=is_reversed),
        contents or tree_contents(before, after),
        is_partial=is_partial,
        is_dry=is_dry,
    )


def reasons(outcomes: Sequence[FileOutcome]) -> dict[bytes, str]:
    """Return the reasons of the refused files."""
    return {outcome.write.path: outcome.reason for outcome in outcomes if outcome.state == "refused"}


def states(outcomes: Sequence[FileOutcome]) -> dict[bytes, str]:
    """Return the state of each file."""
    return {outcome.write.path: outcome.state for outcome in outcomes}
