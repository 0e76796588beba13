"""How often files were changed, as git has it: of histories of any shape, and of none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from codebatch.system.git import GitError
from codebatch.system.git_history import History, find_head, read_history

from .git_repositories import DAY, NOW, git, make_repository

GIT = shutil.which("git") or "git"


def history(directory: Path, **bounds: float) -> History:
    where = os.fsencode(directory)
    return read_history(GIT, where, find_head(GIT, where), **bounds)  # type: ignore[arg-type]


def test_each_commit_of_the_last_year_that_changes_a_file_counts(tmp_path: Path) -> None:
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
    assert history(tmp_path) == History(changes={b"a": 2, strange: 2, b"\nb": 1}, commits=2, is_cut=False)


def test_of_a_directory_of_a_repository_paths_are_below_it(tmp_path: Path) -> None:
    make_repository(tmp_path, [(NOW, {b"a": b"", b"x/y/b": b""}), (NOW, {b"x/y/b": b"1"})])
    (tmp_path / "x/y").mkdir(parents=True)
    assert history(tmp_path / "x/y").changes == {b"b": 2}
    (tmp_path / "z").mkdir()
    with pytest.raises(GitError, match="not in 'HEAD'"):
        find_head(GIT, os.fsencode(tmp_path / "z"))


def test_merges_are_no_changes_and_branches_are(tmp_path: Path) -> None:
    make_repository(tmp_path, [(NOW - 3, {b"a": b"0"}), (NOW - 2, {b"a": b"1"})])
    git(tmp_path, "-c", "user.name=n", "-c", "user.email=n", "checkout", "-q", "-b", "side", "main~1")
    (tmp_path / "b").write_text("b")
    git(tmp_path, "add", "b")
    who = ("-c", "user.name=n", "-c", "user.email=n")
    git(tmp_path, *who, "commit", "-qm", "b")
    git(tmp_path, *who, "merge", "-qm", "m", "main")
    assert history(tmp_path, commits_max=9).changes == {b"b": 1}  # The others are years before it.
    assert history(tmp_path).commits == 1


def test_what_is_cut_says_so_and_is_of_the_newest_commits(tmp_path: Path) -> None:
    make_repository(tmp_path, [(NOW + each, {b"%d" % each: b""}) for each in range(5)])
    assert history(tmp_path, commits_max=2) == History(changes={b"4": 1, b"3": 1}, commits=2, is_cut=True)
    assert not history(tmp_path, commits_max=5).is_cut
    assert history(tmp_path, seconds_max=0).is_cut
    assert history(tmp_path, bytes_max=1).is_cut


def test_of_a_shallow_repository_the_oldest_commit_counts_for_nothing(tmp_path: Path) -> None:
    make_repository(tmp_path / "whole", [(NOW + each, {b"a": b"%d" % each}) for each in range(5)])
    git(tmp_path, "clone", "-q", "--depth", "3", f"file://{tmp_path}/whole", "part")
    assert find_head(GIT, os.fsencode(tmp_path / "part")).is_shallow
    assert history(tmp_path / "part").changes == {b"a": 2}


def test_without_a_commit_or_a_repository_there_is_no_history(tmp_path: Path) -> None:
    for reason in ("not a git repository", "the git repository has no commit that can be read"):
        with pytest.raises(GitError, match=reason):
            find_head(GIT, os.fsencode(tmp_path))
        git(tmp_path, "init", "-q")


def test_a_repository_has_no_say_in_how_it_is_asked(tmp_path: Path) -> None:
    mark, trap = tmp_path / "mark", tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\necho >> {mark}\n")
    trap.chmod(0o755)
    tree = tmp_path / "tree"
    make_repository(tree, [(NOW, {b"a": b"", b".gitattributes": b"* diff=x\n"}), (NOW, {b"a": b"1"})])
    plain = history(tree)
    os.mkfifo(tree / ".mailmap")
    for name, value in {
        "log.showSignature": "true", "gpg.program": str(trap), "core.pager": str(trap), "pager.log": "true",
        "diff.external": str(trap), "diff.x.command": str(trap), "diff.x.textconv": str(trap), "color.ui": "always",
        "core.fsmonitor": str(trap), "log.follow": "true", "log.showRoot": "false", "diff.renames": "copies",
        "diff.orderFile": ".mailmap", "log.decorate": "full", "diff.relative": "true", "core.quotePath": "true",
        "log.diffMerges": "first-parent", "format.pretty": "oneline", "log.date": "human",
    }.items():  # fmt: skip
        git(tree, "config", name, value)
    assert history(tree) == plain
    assert plain.changes == {b"a": 2, b".gitattributes": 1}
    assert not mark.exists()


@pytest.mark.slow
def test_a_hundred_thousand_commits_are_counted_within_bounds(tmp_path: Path) -> None:
    make_repository(tmp_path, ((NOW + each, {b"a": b"%d" % each}) for each in range(100_001)))
    found = history(tmp_path, seconds_max=600.0)
    assert (found.changes, found.is_cut) == ({b"a": 100_000}, True)
