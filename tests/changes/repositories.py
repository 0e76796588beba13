"""Real git repositories with the files of a tree, and branches made in them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codebatch.git.ancestry import Repository
from codebatch.git.repository import find_git
from codebatch.model.change import ListedChange
from codebatch.model.digest import Digest
from codebatch.operations.changes.branch import NewBranch, OnRefusal, make_branch, prepare_branch
from codebatch.operations.changes.commit_plan import CommitGroup
from tests.changes.trees import MemoryContents, Tree, TreeFile, proposed_changes, read_tree, write_tree
from tests.support.git_repositories import git

PLAN = Digest("ab" * 32)


class UserState(NamedTuple):
    """Everything in a repository that is the user's: references, HEAD, the bytes of the index, and the work tree."""

    references: str
    head: bytes
    index_bytes: bytes
    files: dict[bytes, TreeFile]


def make_work_tree(root: Path, tree: Tree, *options: str) -> str:
    """Make a repository with one commit of a tree, and return the commit. The author is `n <n@n>`."""
    root.mkdir(exist_ok=True)
    git(root, "init", "-q", "-b", "main", *options)
    for name, value in (("user.name", "n"), ("user.email", "n@n"), ("core.autocrlf", "false")):
        git(root, "config", name, value)
    write_tree(root, tree)
    return commit_all(root)


def commit_all(root: Path) -> str:
    """Commit all files, and return the commit."""
    git(root, "add", "-A")
    git(root, "commit", "-qm", "m", "--allow-empty")
    return git(root, "rev-parse", "HEAD")


def user_state(root: Path, *, without: str = "") -> UserState:
    """Return the state of a repository without the branch `without` and without its objects."""
    references = git(root, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    git_directory = Path(git(root, "rev-parse", "--absolute-git-dir"))
    index = git_directory / "index"
    files = read_tree(root)
    return UserState(
        "\n".join(line for line in references if not line.startswith(f"refs/heads/{without} ")),
        (git_directory / "HEAD").read_bytes(),
        index.read_bytes() if index.exists() else b"",
        {path: file for path, file in files.items() if not path.startswith((b".git/", b".codebatch/"))},
    )


def commit_tree(root: Path, commit: str) -> dict[bytes, TreeFile]:
    """Return the files of a commit. Their permissions are 0644 and 0755."""
    listing = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "--full-tree", commit], cwd=root, capture_output=True, check=True
    ).stdout
    found = {}
    for line in filter(None, listing.split(b"\0")):
        head, _, path = line.partition(b"\t")
        mode, _, blob = head.decode().split()
        content = subprocess.run(["git", "cat-file", "blob", blob], cwd=root, capture_output=True, check=True).stdout
        is_link = mode == "120000"
        found[path] = TreeFile(content, 0o755 if mode == "100755" else 0o644, "link" if is_link else "file")
    return found


def group(task: str, before: Tree, after: Tree, *, needs: Sequence[str] = (), title: str = "") -> CommitGroup:
    """Return the changes that make one tree from another, as one commit."""
    changes = proposed_changes(before, after, task)
    listed = tuple(ListedChange(change=each.change, added=1, removed=1) for each in changes)
    return CommitGroup(task=task, needs=tuple(needs), title=title, changes=listed)


def branch_from(
    root: Path,
    parent: str,
    groups: Sequence[CommitGroup],
    contents: MemoryContents,
    *,
    name: str = "new",
    on_refusal: OnRefusal = "stop",
) -> NewBranch:
    """Make a branch in the repository of a directory."""
    program = find_git()
    assert program is not None
    repository = Repository(program, os.fsencode(root))
    start = prepare_branch(repository, name, parent)
    return make_branch(start, groups, contents, plan_digest=PLAN, on_refusal=on_refusal)


def git_files(tree: Mapping[bytes, TreeFile]) -> dict[bytes, tuple[bytes, bool, str]]:
    """Return the parts of files that git keeps."""
    return {path: (file.content, file.is_executable, file.kind) for path, file in tree.items()}
