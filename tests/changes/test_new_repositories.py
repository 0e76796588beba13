"""Changes that would make a directory a git repository, whose configuration git trusts, are refused."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from codebatch.git.new_commits import TreeBlob, blob_id
from codebatch.model.change import ListedChange, TreeChange
from codebatch.model.digest import digest_bytes
from codebatch.operations.changes.apply import apply_writes
from codebatch.operations.changes.commit_plan import CommitGroup, plan_commits
from codebatch.operations.changes.file_writes import plan_write
from codebatch.store.reserved_names import find_repositories, is_bare_repository
from tests.changes.trees import MemoryContents, UnsyncedCalls, read_tree

X = b"x"
CONTENTS = MemoryContents([X])
N_HEAD, N_OBJECTS, N_REFS = b"n/HEAD", b"n/objects/x", b"n/refs/x"
REASON = "directory n would be a git repository of its own"
EXISTING = "directory n is another repository"


def make_head(place: Path) -> None:
    place.write_text("ref: refs/heads/x\n")


def make_executable(place: Path) -> None:
    place.touch(0o755)


ENTRIES: dict[str, Sequence[Callable[[Path], object] | None]] = {
    "HEAD": (
        None,
        make_head,
        lambda place: place.write_text("0" * 40),
        lambda place: place.symlink_to("refs/heads/x"),
        lambda place: place.write_text("other"),
        Path.mkdir,
    ),
    "objects": (None, Path.mkdir, make_executable, lambda place: place.symlink_to("/tmp")),
    "refs": (None, Path.mkdir, make_executable, lambda place: place.symlink_to("/tmp")),
    "commondir": (None, lambda place: place.write_text("../common")),
}


def test_every_directory_that_git_takes_for_a_repository_is_one(tmp_path: Path) -> None:
    """The oracle is git. Its judgement also needs the contents of files."""
    common = tmp_path / "common"
    for name in ("objects", "refs"):
        (common / name).mkdir(parents=True)
    taken = 0
    for number, makers in enumerate(itertools.product(*ENTRIES.values())):
        directory = tmp_path / str(number)
        directory.mkdir()
        for name, make in zip(ENTRIES, makers, strict=True):
            if make is not None:
                make(directory / name)
        names = {entry.name.encode() for entry in directory.iterdir()}
        is_bare = is_bare_repository(names.__contains__)
        assert find_repositories(
            [b"d/" + name for name in names], [b"d/" + name for name in names], lambda _: False
        ) == ({b"d"} if is_bare else set())
        if not names or (not is_bare and b"HEAD" not in names):
            continue
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
        asked = subprocess.run(
            ["git", "rev-parse", "--git-dir"], cwd=directory, env=environment, capture_output=True, check=False
        )
        if asked.returncode == 0:
            taken += 1
            assert is_bare, names
    assert taken > 20


def creation(path: bytes) -> TreeChange:
    return TreeChange(path=path, before=None, after=digest_bytes(X))


def apply_creations(root: Path, *paths: bytes, is_partial: bool = False) -> dict[bytes, str]:
    """Create files below a directory. Return the state of each, or the reason why it is refused."""
    writes = [plan_write(creation(path), "t") for path in paths]
    outcomes = apply_writes(UnsyncedCalls(), os.fsencode(root), writes, CONTENTS, is_partial=is_partial)
    return {outcome.write.path: outcome.reason or outcome.state for outcome in outcomes}


def commit_creations(*commits: Sequence[bytes], tree: Sequence[bytes] = (), prefix: bytes = b"") -> dict[bytes, str]:
    """Plan commits that create files. Return the reason of each that is refused."""
    groups = [
        CommitGroup(
            task=str(number),
            changes=tuple(ListedChange(change=creation(path), added=1, removed=0) for path in commit),
        )
        for number, commit in enumerate(commits)
    ]
    blobs = {path: TreeBlob("100644", blob_id(X)) for path in tree}
    plan = plan_commits(groups, blobs, CONTENTS, tree_name="commit 1", read_blob=lambda _: b"", prefix=prefix)
    return {path: reason for path, _, reason in plan.refused}


SETS = [
    (N_HEAD, N_OBJECTS, N_REFS, b"n/config"),
    (N_HEAD, b"n/commondir"),
    (b"n/head", b"n/Objects/x", b"n/REFS/x"),
    (b"n/HE\xe2\x80\x8cAD", b"n/objects. ", b"n/refs::$DATA"),
    (N_HEAD, b"n/objects", b"n/refs"),
]


@pytest.mark.parametrize("paths", SETS)
def test_set_that_makes_a_repository_is_refused(tmp_path: Path, paths: Sequence[bytes]) -> None:
    (tmp_path / ".git").mkdir()
    assert apply_creations(tmp_path, *paths, b"m/x") == dict.fromkeys(sorted(paths), REASON) | {
        b"m/x": "other files were refused"
    }
    assert read_tree(tmp_path) == {}
    assert apply_creations(tmp_path, *paths, b"m/x", is_partial=True)[b"m/x"] == "written"
    assert {*read_tree(tmp_path)} == {b"m/x"}
    assert commit_creations(paths) == dict.fromkeys(paths, REASON)


@pytest.mark.parametrize("last", [N_HEAD, N_OBJECTS, N_REFS])
def test_repository_that_is_made_in_steps_is_refused_in_the_last_one(tmp_path: Path, last: bytes) -> None:
    first = [path for path in (N_HEAD, N_OBJECTS, N_REFS) if path != last]
    for path in first:
        assert apply_creations(tmp_path, path) == {path: "written"}
    assert apply_creations(tmp_path, last, b"n/config") == {last: REASON, b"n/config": REASON}
    assert commit_creations([first[0]], [first[1]], [last, b"n/config"]) == {last: REASON, b"n/config": REASON}
    assert commit_creations([last], tree=first) == {last: REASON}
    assert apply_creations(tmp_path, b"n/config") == {b"n/config": "written"}


@pytest.mark.parametrize("names", [("HEAD", "objects", "refs"), ("HEAD", "commondir")])
def test_nothing_is_written_into_a_repository(tmp_path: Path, names: Sequence[str]) -> None:
    (tmp_path / "n").mkdir()
    for name in names:
        (tmp_path / "n" / name).touch()
    assert apply_creations(tmp_path, b"n/config", b"n/hooks/x") == {b"n/config": EXISTING, b"n/hooks/x": EXISTING}
    tree = [f"n/{name}".encode() for name in names]
    assert commit_creations([b"n/config", b"n/hooks/x"], tree=tree) == dict.fromkeys(
        [b"n/config", b"n/hooks/x"], REASON
    )


def test_root_is_a_repository_only_without_its_own_git_directory(tmp_path: Path) -> None:
    names = [b"HEAD", b"objects/x", b"refs/x"]
    assert apply_creations(tmp_path, *names) == dict.fromkeys(names, "the root would be a git repository of its own")
    assert commit_creations(names, prefix=b"sub/") == dict.fromkeys(
        names, "the root would be a git repository of its own"
    )
    assert commit_creations(names) == {}
    (tmp_path / ".git").mkdir()
    assert {*apply_creations(tmp_path, *names).values()} == {"written"}


@pytest.mark.parametrize(
    "paths",
    [
        (b"HEAD", b"n/objects/x", b"n/refs/x"),
        (b"n/HEAD", b"objects/n", b"refs/n"),
        (b"n/HEADS", b"n/objects", b"n/refs"),
    ],
)
def test_names_of_a_repository_in_several_directories_are_written(tmp_path: Path, paths: Sequence[bytes]) -> None:
    assert {*apply_creations(tmp_path, *paths).values()} == {"written"}
    assert commit_creations(paths) == {}


def test_repository_that_is_undone_is_not_made_again(tmp_path: Path) -> None:
    """A deletion is undone by a creation."""
    writes = [
        plan_write(TreeChange(path=path, before=digest_bytes(X), after=None), "t", is_reversed=True)
        for path in (N_HEAD, N_OBJECTS, N_REFS)
    ]
    outcomes = apply_writes(UnsyncedCalls(), os.fsencode(tmp_path), writes, CONTENTS)
    assert {outcome.reason for outcome in outcomes} == {REASON}
