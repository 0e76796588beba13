"""Changes of needed tasks in a new tree: applied in order, merged, or in conflict. Lists of the changes of a tree."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from codebatch.git.linked_trees import merge_contents
from codebatch.git.repository import find_git
from codebatch.model.change import ListedChange, TreeChange
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import Entry, EntryKind
from codebatch.system.files.writable_tree import TreeFileContent, WritableTree
from codebatch_workers.commands.tree_changes import NeededChangesConflict, NeededChangesWriter, list_changes
from tests.support.git_repositories import git
from tests.support.work_batches import coordinating
from tests.trees.places import Kind, attempt, isolated, make_tree_place, needing

Files = Mapping[str, bytes]
"""The files of a tree. A name that ends with `*` is that of an executable file, with `@` that of a link."""

FIVE = b"1\n2\n3\n4\n5\n"


class Case(NamedTuple):
    base: Files
    first: Files
    second: Files
    merged: Files | None  # None: a conflict.


CASES = {
    "different files": Case(
        {"a": b"1", "b": b"1"}, {"a": b"2", "b": b"1"}, {"a": b"1", "b": b"2"}, {"a": b"2", "b": b"2"}
    ),
    "different lines": Case(
        {"a": FIVE}, {"a": b"x\n2\n3\n4\n5\n"}, {"a": b"1\n2\n3\n4\ny\n"}, {"a": b"x\n2\n3\n4\ny\n"}
    ),
    "same line": Case({"a": FIVE}, {"a": b"x\n2\n3\n4\n5\n"}, {"a": b"y\n2\n3\n4\n5\n"}, None),
    "same change": Case({"a": FIVE}, {"a": b"x"}, {"a": b"x"}, {"a": b"x"}),
    "both create": Case({}, {"a": b"x"}, {"a": b"y"}, None),
    "both create the same": Case({}, {"a": b"x"}, {"a": b"x"}, {"a": b"x"}),
    "both delete": Case({"a": b"1", "b": b""}, {"b": b""}, {"b": b""}, {"b": b""}),
    "delete and edit": Case({"a": b"1"}, {}, {"a": b"2"}, None),
    "edit and delete": Case({"a": b"1"}, {"a": b"2"}, {}, None),
    "binary": Case({"a": b"\0" + FIVE}, {"a": b"\0x" + FIVE}, {"a": b"\0" + FIVE + b"y"}, None),
    "mode and edit": Case({"a": b"1"}, {"a*": b"1"}, {"a": b"2"}, {"a*": b"2"}),
    "edit and mode": Case({"a": b"1"}, {"a": b"2"}, {"a*": b"1"}, {"a*": b"2"}),
    "mode and delete": Case({"a": b"1"}, {"a*": b"1"}, {}, {}),
    "link and edit": Case({"a": b"1"}, {"a@": b"x"}, {"a": b"2"}, None),
    "edit and link": Case({"a": b"1"}, {"a": b"2"}, {"a@": b"x"}, None),
    "link": Case({"a": b"1"}, {"a@": b"x"}, {"a": b"1"}, {"a@": b"x"}),
    "other link": Case({"a@": b"x"}, {"a@": b"y"}, {"a@": b"z"}, None),
    "directory and file": Case({}, {"a/b": b"x"}, {"a": b"y"}, None),
    "file and directory": Case({}, {"a": b"x"}, {"a/b": b"y"}, None),
    "file becomes directory": Case({"a": b"1"}, {"a/b": b"2"}, {"a": b"1", "c": b""}, {"a/b": b"2", "c": b""}),
    "directory becomes file": Case({"a/b": b"1"}, {"a": b"2"}, {"a/b": b"1", "c": b""}, {"a": b"2", "c": b""}),
    "directory becomes link": Case({"a/b": b"1"}, {"a@": b"../c"}, {"a/b": b"1", "a/new": b""}, None),
}


def files_of(tree: Files) -> dict[bytes, TreeFileContent]:
    return {
        name.rstrip("*@").encode(): TreeFileContent(content, name.endswith("@"), name.endswith("*"))
        for name, content in tree.items()
    }


def entries_of(tree: Files) -> dict[bytes, Entry]:
    return {
        path: Entry(
            path,
            "symlink" if file.is_link else "file",
            file.is_executable,
            len(file.content),
            digest_bytes(file.content),
        )
        for path, file in files_of(tree).items()
    }


def _kind(file: TreeFileContent) -> EntryKind:
    return "symlink" if file.is_link else "file"


def changes_between(before: Files, after: Files) -> list[ListedChange]:
    return [
        ListedChange(change=change, added=0, removed=0)
        for change in list_changes(entries_of(before), entries_of(after))[0]
    ]


def write_tree(root: Path, tree: Files) -> None:
    with WritableTree(bytes(root)) as written:
        for path, file in files_of(tree).items():
            written.write(path, file)


def read_files(root: Path) -> dict[bytes, TreeFileContent]:
    paths = [
        os.fsencode(os.path.relpath(os.path.join(directory, name), root))
        for directory, directories, names in os.walk(root)
        for name in [*names, *(name for name in directories if os.path.islink(os.path.join(directory, name)))]
    ]
    with WritableTree(bytes(root)) as tree:
        files = {path: tree.read(path) for path in paths}
    return {path: file for path, file in files.items() if file is not None}


def apply(root: Path, base: Files, *versions: Files) -> frozenset[bytes]:
    """Write a tree and apply the changes that each version makes to it. Return their paths."""
    contents: dict[Digest, bytes] = {
        digest_bytes(content): content for tree in (base, *versions) for content in tree.values()
    }
    write_tree(root, base)
    git = find_git()
    assert git is not None
    with WritableTree(bytes(root)) as tree:
        writer = NeededChangesWriter(tree, contents.__getitem__, lambda *three: merge_contents(git, *three))
        for number, version in enumerate(versions):
            writer.apply(f"task{number}", changes_between(base, version))
        writer.check()
        return writer.paths


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_changes_of_two_tasks(tmp_path: Path, case: Case) -> None:
    if case.merged is None:
        with pytest.raises(NeededChangesConflict, match=r"tasks conflict:\n  a\S*, changed by task1: "):
            apply(tmp_path, case.base, case.first, case.second)
    else:
        paths = apply(tmp_path, case.base, case.first, case.second)
        assert read_files(tmp_path) == files_of(case.merged)
        both = (*changes_between(case.base, case.first), *changes_between(case.base, case.second))
        assert paths == {listed.change.path for listed in both}


CONTENTS = st.sampled_from([b"", b"x", b"1\n2\n", b"1\n2\n3\n4\n5\n6\n", b"0\n2\n3\n4\n5\n6\n", b"1\n2\n3\n4\n5\n7\n"])
NAMES = st.sampled_from(["a", "b", "d/e", "d/f/g"]).flatmap(
    lambda name: st.sampled_from([name, f"{name}*", f"{name}@"])
)


def _has_one_of_each(tree: Files) -> bool:
    return len({name.rstrip("*@") for name in tree}) == len(tree) and b"" not in [
        content for name, content in tree.items() if name.endswith("@")
    ]


TREES = st.dictionaries(NAMES, CONTENTS, max_size=4).filter(_has_one_of_each)


def _is_expressible(before: Files, after: Files) -> bool:
    """Return whether no file becomes a link to its own content, or the reverse."""
    old, new = files_of(before), files_of(after)
    return all(
        old[path].is_link == new[path].is_link or old[path].content != new[path].content for path in old.keys() & new
    )


def git_tree(repository: Path, root: Path) -> str:
    """Return the id of the tree that git makes of the files in a directory."""
    work_tree = ("--git-dir", str(repository / ".git"), "--work-tree", str(root))
    git(repository, *work_tree, "add", "--all", ".")
    return git(repository, *work_tree, "write-tree")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(base=TREES, first=TREES, second=TREES)
@example(base={"a": FIVE}, first={"a": FIVE.replace(b"1", b"0")}, second={"a*": FIVE.replace(b"5", b"6"), "b": b""})
def test_merge_equals_that_of_git(
    tmp_path_factory: pytest.TempPathFactory, base: Files, first: Files, second: Files
) -> None:
    """If neither finds a conflict, the tree with the changes of two tasks is the one that `git merge` makes."""
    assume(_is_expressible(base, first) and _is_expressible(base, second))
    place = tmp_path_factory.mktemp("place")
    commits: list[str] = []
    git(place, "init", "-q")
    for number, tree in enumerate((base, first, second)):
        (place / f"{number}").mkdir()
        write_tree(place / f"{number}", tree)
        parents = ["-p", commits[0]] if commits else []
        tree_id = git_tree(place, place / f"{number}")
        identity = ("-c", "user.name=n", "-c", "user.email=n@n")
        commits.append(git(place, *identity, "commit-tree", "-m", "m", *parents, tree_id))
    try:
        merged = git(place, "-c", "merge.renames=false", "merge-tree", "--write-tree", *commits[1:])
        (place / "applied").mkdir()
        apply(place / "applied", base, first, second)
    except (subprocess.CalledProcessError, NeededChangesConflict):
        return
    assert git_tree(place, place / "applied") == merged


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(before=TREES, after=TREES)
def test_changes_turn_one_tree_into_the_other(
    tmp_path_factory: pytest.TempPathFactory, before: Files, after: Files
) -> None:
    if _is_expressible(before, after):
        root = tmp_path_factory.mktemp("tree")
        apply(root, before, after)
        assert read_files(root) == files_of(after)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(before=TREES, after=TREES)
def test_tasks_with_equal_changes_never_conflict(
    tmp_path_factory: pytest.TempPathFactory, before: Files, after: Files
) -> None:
    if _is_expressible(before, after):
        root = tmp_path_factory.mktemp("tree")
        apply(root, before, after, after)
        assert read_files(root) == files_of(after)


def test_conflicts_name_all_tasks_and_are_cut(tmp_path: Path) -> None:
    base = {f"f{number:02}": b"1" for number in range(25)}
    trees = [{name: str(number).encode() for name in base} for number in (2, 3, 4)]
    with pytest.raises(NeededChangesConflict) as caught:
        apply(tmp_path, base, *trees)
    lines = str(caught.value).splitlines()
    assert lines[1] == "  f00, changed by task1: it was changed by task0 too"
    assert lines[-1] == "  and 30 more"
    assert len(lines) == 22


def test_change_of_a_file_that_the_tree_does_not_have(tmp_path: Path) -> None:
    change = TreeChange(path=b"a", before=digest_bytes(b"old"), after=digest_bytes(b"new"))
    with WritableTree(bytes(tmp_path)) as tree:
        writer = NeededChangesWriter(tree, lambda _: b"", lambda *_: None)
        writer.apply("one", [ListedChange(change=change, added=0, removed=0)])
        with pytest.raises(NeededChangesConflict, match="a, changed by one: it is not as that task found it"):
            writer.check()


def needed_conflict(root: Path, *sets: tuple[bytes, ...]) -> str:
    """Create files, one set of paths for each task. Return the lines about conflicts."""
    with WritableTree(bytes(root)) as tree:
        writer = NeededChangesWriter(tree, lambda _: b"x", lambda *_: None)
        for number, paths in enumerate(sets):
            changes = [TreeChange(path=path, before=None, after=digest_bytes(b"x")) for path in paths]
            writer.apply(f"task{number}", [ListedChange(change=change, added=1, removed=0) for change in changes])
        try:
            writer.check()
        except NeededChangesConflict as error:
            return str(error).partition("\n")[2]
    return ""


def test_changes_that_make_a_repository_are_a_conflict(tmp_path: Path) -> None:
    """git would run the programs that its configuration names."""
    reason = "would be a git repository of its own"
    one, two = (b"n/HEAD", b"n/objects/x"), (b"n/refs/x", b"n/config")
    assert needed_conflict(tmp_path, one) == ""
    assert needed_conflict(tmp_path, two) == f"  directory n {reason}"
    assert needed_conflict(tmp_path, (b"HEAD", b"commondir")) == f"  the root {reason}"
    (tmp_path / ".git").touch()
    assert needed_conflict(tmp_path, (b"HEAD", b"commondir")) == ""
    line = "  d/.GIT/config, changed by task1: it belongs to git or codebatch"
    assert needed_conflict(tmp_path, (b"x",), (b"d/.GIT/config",)) == line
    assert not (tmp_path / "d").exists()


def test_writing_never_leaves_the_tree(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/link").symlink_to(tmp_path / "outside")
    (tmp_path / "outside/x").write_bytes(b"kept")
    file = TreeFileContent(b"new", is_link=False, is_executable=False)
    with WritableTree(bytes(tmp_path / "tree")) as tree:
        assert tree.read(b"link/x") is None
        with pytest.raises(NotADirectoryError):
            tree.write(b"link/x", file)
        with pytest.raises(NotADirectoryError):
            tree.remove(b"link/x")
        tree.write(b"link", file)
    assert (tmp_path / "outside/x").read_bytes() == b"kept"
    assert not (tmp_path / "tree/link").is_symlink()


@pytest.mark.parametrize("kind", ["worktree", "copy"])
def test_tree_has_the_changes_of_needed_tasks(tmp_path: Path, kind: Kind) -> None:
    """The changes of needed tasks belong to the state before the command, and not to its own changes."""
    place = make_tree_place(
        tmp_path,
        isolated("sed -i s/1/one/ a; rm sub/b; mv .gitignore ignore; echo x > x.o", "t0", kind=kind),
        isolated("sed -i s/5/five/ a; echo new > new", "t1", kind=kind),
        isolated("cat a new; ls sub; mv ignore .gitignore; echo 6 >> a; rm x.o; echo more >> new", "t2", kind=kind),
        isolated("cat a new", "t3", kind=kind),
    )
    with coordinating(place.place) as coordinator:
        first, second = attempt(coordinator, 0), attempt(coordinator, 1)
        third = attempt(coordinator, 2, tree=needing(t0=first.changes, t1=second.changes))
        last = attempt(coordinator, 3, tree=needing(t0=first.changes, t1=second.changes, t2=third.changes))
    merged = b"one\n2\n3\n4\nfive\n"
    assert place.place.log(2) == merged + b"new\ndeep\n"
    assert place.contents(third) == {
        ".gitignore": b"*.o\n", "a": merged + b"6\n", "ignore": None, "new": b"new\nmore\n", "x.o": None,
    }  # fmt: skip
    listed = {each.change.path: each.change for each in place.changes(third)}
    assert listed[b"a"].before == digest_bytes(merged)
    assert place.place.log(3) == merged + b"6\nnew\nmore\n"
    assert place.changes(last) == []


def test_conflict_ends_the_attempt_before_its_command(tmp_path: Path) -> None:
    place = make_tree_place(
        tmp_path, isolated("echo 1 > a", "t0"), isolated("echo 2 > a", "t1"), isolated("echo began", "t2")
    )
    with coordinating(place.place) as coordinator:
        first, second = attempt(coordinator, 0), attempt(coordinator, 1)
        outcome = attempt(coordinator, 2, tree=needing(t0=first.changes, t1=second.changes))
    assert (outcome.type, outcome.reason, outcome.is_final, outcome.changes) == ("failed", "conflict", True, "")
    assert place.place.log(2).decode() == (
        "codebatch: not started: changes of needed tasks conflict:\n  a, changed by t1: it was changed by t0 too\n"
    )
    assert place.names() == place.registered() == []
