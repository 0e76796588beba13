"""Tests of churn: how often git changed files and functions, in histories of various shapes and without a history."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from codebatch.git.history import FileVersion, blob_hash_prefix, find_head, list_commits, read_commits, read_hunks
from codebatch.git.patches import BlobPair, Hunk
from codebatch.git.repository import GitError
from codebatch.operations.history.function_history import (
    CommitChanges,
    LineRange,
    count_changes,
    count_file_changes,
    select_changes,
)
from tests.support.git_repositories import DAY, NOW, git, make_repository

GIT = shutil.which("git") or "git"
WHO = ("-c", "user.name=n", "-c", "user.email=n")


def commits_of(directory: Path, seconds_max: float = 60.0) -> list[CommitChanges]:
    where = os.fsencode(directory)
    head = find_head(GIT, where)
    listed = list_commits(GIT, where, head, seconds_max=seconds_max)
    history = read_commits(GIT, where, head, listed, seconds_max=seconds_max)
    assert not history.is_cut
    return [CommitChanges(commit.name, commit.parents, history.changes[commit.name]) for commit in listed]


def file_changes(directory: Path) -> dict[bytes, int]:
    return count_file_changes(commits_of(directory))


def function_changes(directory: Path, path: str, functions: Iterable[tuple[int, int]]) -> list[int | None]:
    """Return how many commits changed the lines of each function of a file."""
    where = os.fsencode(directory)
    head = find_head(GIT, where)
    version = FileVersion(path.encode(), blob_hash_prefix((directory / path).read_bytes(), head.commit))
    lines = [LineRange(first, last + 1) for first, last in functions]
    commits, paths = select_changes(commits_of(directory), [version])
    hunks: dict[BlobPair, tuple[Hunk, ...]] = {}
    while (churn := count_changes(commits, hunks, {version: lines}, merges_ahead=1)).missing:
        hunks |= read_hunks(GIT, where, churn.missing, paths).hunks
    counts = [churn.counts[version, function] for function in lines]
    return [count.known if count.is_exact else None for count in counts]


def log_changes(directory: Path, path: str, functions: Iterable[tuple[int, int]]) -> list[int]:
    """Return the same counts by `git log -L`."""
    logs = (git(directory, "log", "--no-merges", "-s", "--format=%h", f"-L{a},{b}:{path}") for a, b in functions)
    return [len(log.split()) for log in logs]


def commit(directory: Path, files: Mapping[str, str]) -> None:
    for path, content in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(content)
    git(directory, "add", "-A")
    git(directory, *WHO, "commit", "-qm", "m")


def lines(**changed: str) -> str:
    """Return thirty lines, some of them replaced: `lines(n7="x")`."""
    return "".join(f"{changed.get(f'n{number}', number)}\n" for number in range(1, 31))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    return tmp_path


def test_churn_counts_each_commit_of_the_last_year_per_file(tmp_path: Path) -> None:
    strange = b"\xff\n\n/\x1b[31m'\"\\"
    make_repository(
        tmp_path,
        [
            (NOW - 366 * DAY, {b"a": b"0", b"old": b"0"}),
            (NOW - 364 * DAY, {b"a": b"1", strange: b"1"}),
            (NOW - DAY, {}),
            (NOW, {b"a": b"2", b"\nb": b"2", strange: b"2"}),
        ],
    )
    assert file_changes(tmp_path) == {b"a": 2, strange: 2, b"\nb": 1}


def test_churn_paths_are_relative_to_the_given_directory(tmp_path: Path) -> None:
    make_repository(tmp_path, [(NOW, {b"a": b"", b"x/y/b": b""}), (NOW, {b"x/y/b": b"1"})])
    (tmp_path / "x/y").mkdir(parents=True)
    assert file_changes(tmp_path / "x/y") == {b"b": 2}
    (tmp_path / "z").mkdir()
    with pytest.raises(GitError, match="not in 'HEAD'"):
        find_head(GIT, os.fsencode(tmp_path / "z"))


def test_churn_ignores_merges_and_counts_branches(tree: Path) -> None:
    commit(tree, {"a": "0"})
    commit(tree, {"a": "1"})
    git(tree, "checkout", "-q", "-b", "side", "main~1")
    commit(tree, {"b": "b"})
    git(tree, *WHO, "merge", "-qm", "m", "main")
    assert file_changes(tree) == {b"a": 2, b"b": 1}


def test_function_churn_counts_commits_that_change_its_lines(tree: Path) -> None:
    commit(tree, {"a": lines()})
    for number in range(3):
        commit(tree, {"a": lines(n25=f"x{number}")})
    commit(tree, {"a": "new\n" * 4 + lines(n25="y", n5="y")})
    commit(tree, {"a": "new\n" * 4 + lines(n25="y", n5="y").replace("\n8\n", "\n")})
    functions = [(7, 17), (26, 31), (18, 22), (1, 4)]
    assert function_changes(tree, "a", functions) == [3, 5, 1, 1] == log_changes(tree, "a", functions)


def test_function_churn_follows_renames(tree: Path) -> None:
    commit(tree, {"a": lines()})
    commit(tree, {"a": lines(n12="x")})
    (tree / "a").unlink()
    commit(tree, {"d/b": lines(n12="y")})
    (tree / "d/b").rename(tree / "c")
    commit(tree, {"other": ""})
    functions = [(10, 14), (20, 22)]
    assert function_changes(tree, "c", functions) == [3, 1] == log_changes(tree, "c", functions)
    assert file_changes(tree)[b"c"] == 4


def test_function_churn_follows_merges(tree: Path) -> None:
    """Both branches change the file, one of them renames it, and one line conflicts."""
    commit(tree, {"a": lines()})
    git(tree, "checkout", "-q", "-b", "side")
    git(tree, "mv", "a", "b")
    commit(tree, {"b": "one\ntwo\n" + lines(n5="side", n20="side")})
    commit(tree, {"b": "one\ntwo\n" + lines(n5="side 2", n20="side")})
    git(tree, "checkout", "-q", "main")
    commit(tree, {"a": lines(n12="main", n20="main")})
    with pytest.raises(Exception, match="merge"):
        git(tree, *WHO, "merge", "-q", "side")
    commit(tree, {"b": "one\ntwo\n" + lines(n5="side 2", n12="main", n20="both") + "end\n"})
    functions = [(6, 8), (12, 16), (20, 24), (28, 33)]
    assert function_changes(tree, "b", functions) == [3, 2, 3, 1] == log_changes(tree, "b", functions)


def test_the_same_change_on_two_branches_counts_once(tree: Path) -> None:
    commit(tree, {"a": lines()})
    git(tree, "checkout", "-q", "-b", "side")
    commit(tree, {"a": lines(n5="x")})
    git(tree, "checkout", "-q", "main")
    commit(tree, {"b": ""})
    commit(tree, {"a": lines(n5="x")})
    git(tree, *WHO, "merge", "-q", "-m", "m", "side")
    assert function_changes(tree, "a", [(4, 6)]) == [2] == log_changes(tree, "a", [(4, 6)])


def test_reverted_change_counts_twice(tree: Path) -> None:
    for text in (lines(), lines(n5="x"), lines()):
        commit(tree, {"a": text})
    assert function_changes(tree, "a", [(4, 6)]) == [3] == log_changes(tree, "a", [(4, 6)])


def test_content_that_resembles_a_patch_is_content(tree: Path) -> None:
    commit(tree, {"a": lines()})
    forged = f"\n@@ -1 +1,9 @@\nindex {'0' * 40}..{'1' * 40} 100644\ndiff --git a/a b/a\n--- a/a\n-- a/b\n++ b/b"
    commit(tree, {"a": lines(n12=forged)})
    commit(tree, {"a": lines(n13=forged)})
    (tree / "a").write_text(lines(n13=forged))
    assert function_changes(tree, "a", [(1, 9), (10, 20)]) == [1, 3] == log_changes(tree, "a", [(1, 9), (10, 20)])


def test_partial_clone_has_file_churn_but_no_function_churn(tree: Path, tmp_path: Path) -> None:
    commit(tree, {"a": lines()})
    git(tree, "mv", "a", "b")
    commit(tree, {"b": lines(n5="x")})
    commit(tree, {"b": lines(n5="y")})
    git(tree, "config", "uploadpack.allowFilter", "true")
    part = tmp_path / "part"
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{tree}", str(part))
    assert file_changes(part) == {b"a": 1, b"b": 2}
    assert function_changes(part, "b", [(4, 6)]) == [None]


def test_function_churn_of_files_without_line_diffs_is_unknown(tree: Path) -> None:
    (tree / ".gitattributes").write_text("*.x -diff\n")
    for text in (lines(), lines(n5="x"), lines(n5="y")):
        commit(tree, {"a.x": text})
    assert function_changes(tree, "a.x", [(4, 6)]) == [None]


def test_truncated_history_contains_the_newest_commits(tmp_path: Path) -> None:
    where = os.fsencode(tmp_path)
    make_repository(tmp_path, [(NOW + number, {b"%d" % number: b""}) for number in range(5)])
    head = find_head(GIT, where)
    assert len(list_commits(GIT, where, head, commits_max=2)) == 3
    listed = list_commits(GIT, where, head)
    history = read_commits(GIT, where, head, listed, seconds_max=0.0)
    assert (history.is_cut, list(history.changes)) == (True, [listed[0].name])
    history = read_commits(GIT, where, head, listed, bytes_max=1)
    assert (history.is_cut, list(history.changes)) == (True, [listed[0].name])


def test_oldest_commit_of_a_shallow_clone_is_not_counted(tmp_path: Path) -> None:
    make_repository(tmp_path / "whole", [(NOW + number, {b"a": b"%d" % number}) for number in range(5)])
    git(tmp_path, "clone", "-q", "--depth", "3", f"file://{tmp_path}/whole", "part")
    assert find_head(GIT, os.fsencode(tmp_path / "part")).is_shallow
    assert file_changes(tmp_path / "part") == {b"a": 2}


def test_merge_is_compared_with_other_parents_only_if_a_function_differs(tree: Path) -> None:
    commit(tree, {"a": lines()})
    git(tree, "checkout", "-q", "-b", "side")
    commit(tree, {"a": lines(n5="side")})
    git(tree, "checkout", "-q", "main")
    commit(tree, {"a": lines(n25="main")})
    git(tree, *WHO, "merge", "-q", "-m", "m", "side")
    version = FileVersion(b"a", blob_hash_prefix((tree / "a").read_bytes(), "0" * 40))
    commits, paths = select_changes(commits_of(tree), [version])
    compared: dict[tuple[int, int], list[bytes]] = {}
    for function in ((24, 27), (4, 7)):
        hunks: dict[BlobPair, tuple[Hunk, ...]] = {}
        while (churn := count_changes(commits, hunks, {version: [LineRange(*function)]}, merges_ahead=1)).missing:
            hunks |= read_hunks(GIT, os.fsencode(tree), churn.missing, paths).hunks
        assert churn.counts[version, LineRange(*function)] == (2, True)
        (merge,) = (candidate for candidate in commits if len(candidate.parents) == 2)
        compared[function] = [old.blob for old in merge.changes[0].old if (old.blob, version.blob) in hunks]
    assert (len(compared[24, 27]), len(compared[4, 7])) == (1, 2)


def test_function_count_is_partial_if_older_commits_are_unknown(tree: Path) -> None:
    """The second commit made the lines from 31 on. Older commits are unknown."""
    for text in (lines(), lines() + "new\n" * 9, lines(n5="x") + "new\n" * 8 + "old\n"):
        commit(tree, {"a": text})
    version = FileVersion(b"a", blob_hash_prefix((tree / "a").read_bytes(), "0" * 40))
    commits, paths = select_changes(commits_of(tree)[:2], [version])
    functions = {version: [LineRange(4, 7), LineRange(31, 40)]}
    hunks = read_hunks(GIT, os.fsencode(tree), count_changes(commits, {}, functions).missing, paths).hunks
    counts = count_changes(commits, hunks, functions, is_whole=False).counts
    assert [counts[version, function] for function in functions[version]] == [(1, False), (2, True)]


def test_history_requires_a_repository_with_a_commit(tmp_path: Path) -> None:
    for reason in ("not a git repository", "the git repository has no readable commit"):
        with pytest.raises(GitError, match=reason):
            find_head(GIT, os.fsencode(tmp_path))
        git(tmp_path, "init", "-q")


def test_repository_settings_do_not_affect_churn(tree: Path) -> None:
    mark, trap = tree / ".git" / "mark", tree / ".git" / "trap"
    trap.write_text(f"#!/bin/sh\necho >> {mark}\n")
    trap.chmod(0o755)
    commit(tree, {"a": lines(), ".gitattributes": "* diff=x\n"})
    commit(tree, {"b": lines(n5="x", n20="x")})
    (tree / "b").rename(tree / "c")
    commit(tree, {"a": lines(n5="x", n20="y"), "d": ""})
    functions = [(1, 8), (9, 30)]
    plain = file_changes(tree), function_changes(tree, "a", functions)
    for name, value in {
        "log.showSignature": "true", "gpg.program": str(trap), "core.pager": str(trap), "pager.log": "true",
        "diff.external": str(trap), "diff.x.command": str(trap), "diff.x.textconv": str(trap), "color.ui": "always",
        "core.fsmonitor": str(trap), "log.follow": "true", "log.showRoot": "false", "diff.renames": "copies",
        "diff.orderFile": ".git/trap", "log.decorate": "full", "diff.relative": "true", "core.quotePath": "false",
        "log.diffMerges": "first-parent", "format.pretty": "oneline", "log.date": "human", "diff.context": "9",
        "diff.interHunkContext": "9", "diff.algorithm": "patience", "diff.noprefix": "true", "diff.renameLimit": "1",
        "diff.mnemonicPrefix": "true", "core.abbrev": "5", "diff.submodule": "log", "diff.wordRegex": ".",
        "diff.suppressBlankEmpty": "true", "diff.colorMoved": "zebra", "core.bigFileThreshold": "1",
    }.items():  # fmt: skip
        git(tree, "config", name, value)
    assert (file_changes(tree), function_changes(tree, "a", functions)) == plain
    assert plain == ({b"a": 2, b"b": 1, b"c": 2, b"d": 1, b".gitattributes": 1}, [2, 2])
    assert not mark.exists()


@pytest.mark.slow
def test_hundred_thousand_commits_are_counted_in_time(tmp_path: Path) -> None:
    make_repository(tmp_path, ((NOW + number, {b"a": b"%d" % number}) for number in range(100_001)))
    assert count_file_changes(commits_of(tmp_path, 600.0)) == {b"a": 100_001}
