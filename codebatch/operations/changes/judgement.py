"""The judgement whether a change fits on a tree: that of the work tree for `apply`, that of a commit for `--branch`.

A change fits if the tree has exactly the file that the change was made for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from codebatch.errors import InvalidInput
from codebatch.model.change import ProposedChange
from codebatch.model.digest import Digest
from codebatch.model.entry import display_path, is_safe_path
from codebatch.model.nearest_directories import directories_above
from codebatch.operations.changes.file_writes import FileWrite, plan_writes
from codebatch.store.reserved_names import find_repositories, has_reserved_name


class PathRefused(Exception):
    """A change that does not fit. `reason` says why, for users."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Fit = Literal["done", "fits", "differs"]
"""Whether a write fits on a file: it is done already, it fits, or the file has another content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentFile:
    """The entry at the path of a change. `has_content` compares its content with a digest."""

    kind: Literal["file", "link", "other"]
    is_executable: bool
    has_content: Callable[[Digest], bool]


def check_path(path: bytes) -> None:
    """Raise PathRefused if no change may be at a path, whatever the tree contains."""
    if not is_safe_path(path):
        raise PathRefused("the path leads out of the tree")
    if has_reserved_name(path):
        raise PathRefused("the path belongs to git or codebatch")


def judge_file(write: FileWrite, present: PresentFile | None, place: str = "") -> Fit:
    """Return whether a write fits on the file at its path, or None if nothing is there.

    `place` names the tree in reasons, as in ` in commit 1`. Raises PathRefused if a file of this kind does not fit.
    """
    if present is None:
        if write.before is not None and write.after is not None:
            raise PathRefused(f"it does not exist{place}")
        return "done" if write.after is None else "fits"
    if present.kind != ("link" if write.is_link else "file"):
        raise PathRefused(f"it is not a {'symbolic link' if write.is_link else 'regular file'}{place}")
    has_mode = write.is_link or write.executable in (None, present.is_executable)
    if write.before is not None and present.has_content(write.before):
        return "done" if has_mode and write.before == write.after else "fits"
    if write.after is not None and has_mode and present.has_content(write.after):
        return "done"
    if write.before is None:
        raise PathRefused(f"it already exists{place}")
    return "differs"


def joint_reasons(writes: Sequence[FileWrite], exists: Callable[[bytes], bool]) -> dict[bytes, str]:
    """Map the paths of writes that do not fit together, or together with the tree, to the reason.

    `exists` returns whether the tree has an entry at a path, also a directory.
    """
    times = Counter(write.path for write in writes)
    created = {write.path for write in writes if write.before is None}
    needed = directories_above(write.path for write in writes if write.after is not None)
    repositories = find_repositories(times, created, exists)
    reasons: dict[bytes, str] = {}
    for path, count in times.items():
        if count > 1:
            reasons[path] = "the batch has several changes of this file"
        elif path in created and path in needed:
            reasons[path] = "another change of the batch needs a directory of this name"
        elif above := repositories & {b"", *directories_above([path])}:
            place = f"directory {display_path(min(above))}" if min(above) else "the root"
            reasons[path] = f"{place} would be a git repository of its own"
    return reasons


def refuse_unsafe_patch(proposed: Iterable[ProposedChange]) -> None:
    """Raise InvalidInput if a patch of some changes would write files that git trusts, such as those of a repository.

    The patch may be used in a directory that is not known, so only the paths are checked.
    """
    writes = plan_writes(proposed)
    reasons = joint_reasons(writes, lambda path: path == b".git")
    for write in writes:
        try:
            check_path(write.path)
        except PathRefused as error:
            reasons[write.path] = error.reason
    if reasons:
        path, reason = min(reasons.items())
        raise InvalidInput(
            f"no patch is printed: {display_path(path)}: {reason}",
            hint="leave the file out with --path, or list the changes without --patch",
        )
