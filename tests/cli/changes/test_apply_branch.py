"""Tests of `apply --branch`: its answer, its commits, and the programs and settings of a repository."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from codebatch.model.digest import digest_bytes
from codebatch.model.record import FileChange
from codebatch.store.batches.pins import pinned_ids
from tests.changes.projects import Edits, make_changed_batch
from tests.changes.repositories import commit_all, commit_tree, make_work_tree, user_state
from tests.changes.trees import TreeFile, read_tree
from tests.cli.changes.test_changes import EDITS, FILES
from tests.index.batches import make_saying
from tests.support.command_line import CommandLine, check_schema
from tests.support.git_repositories import git

AFTER = {b"a.py": b"one\nTWO\n", b"caf\xe9.py": b"1\n2\n", b"same.py": b"same\n"}
OWNERS = b"* @all\n/d/ @team @lead # why\n"


def make_project(root: Path, files: Mapping[bytes, bytes] = FILES, edits: Edits = EDITS) -> CommandLine:
    """Return the command line in a repository with a batch that proposes changes of its commit."""
    commit = make_work_tree(root, {path: TreeFile(content) for path, content in files.items()})
    make_changed_batch(root / ".codebatch", root, files, edits, commit=commit)
    return CommandLine(root)


@pytest.fixture
def project(tmp_path: Path) -> CommandLine:
    """The command line in a repository with a batch that proposes three changes."""
    return make_project(tmp_path)


def contents(root: Path, commit: str) -> dict[bytes, bytes]:
    """Return the content of each file of a commit."""
    return {path: file.content for path, file in commit_tree(root, commit).items()}


def subjects(root: Path, branch: str) -> list[str]:
    """Return the subjects of the commits of a branch, oldest first."""
    return git(root, "log", "--reverse", "--format=%s", f"main..{branch}").splitlines()


def test_each_task_has_a_commit_and_files_index_and_head_stay(project: CommandLine, tmp_path: Path) -> None:
    seen = user_state(tmp_path)
    ended = project("apply", "--branch", "rename")
    assert ended.notes.splitlines() == [f"repository: {tmp_path}", "next: git diff main...rename"]
    first, second = git(tmp_path, "log", "--reverse", "--format=%H", "main..rename").split()
    assert ended.lines == [
        f"{first[:12]}  parse: Change 2 files",
        rf"{second[:12]}  symbols: Change caf\xe9.py",
        "2 commits with 3 files made",
    ]
    assert contents(tmp_path, "rename") == AFTER
    assert user_state(tmp_path, without="rename") == seen


def test_json_has_the_commits_and_the_refused_changes(project: CommandLine, tmp_path: Path) -> None:
    answer = project("apply", "--branch", "rename", "--json").json
    check_schema(answer)
    assert answer["schema"] == "codebatch.apply-branch/1"
    assert answer["commits"][-1] == {
        "id": git(tmp_path, "rev-parse", "rename"),
        "task": "symbols",
        "subject": r"symbols: Change caf\xe9.py",
        "files": 1,
    }
    assert (answer["created"], answer["parent"]) == (True, git(tmp_path, "rev-parse", "main"))


def test_dry_run_shows_the_commits_and_makes_none(project: CommandLine, tmp_path: Path) -> None:
    ended = project("apply", "--branch", "rename", "--dry-run")
    assert ended.lines[0] == "commit  parse: Change 2 files"
    assert ended.lines[-1] == "2 commits with 3 files can be made"
    assert git(tmp_path, "branch", "--list", "rename") == ""
    assert not project("apply", "--branch", "rename", "--dry-run", "--json").json["created"]


def test_branch_needs_no_pin_since_git_keeps_the_old_contents(tmp_path: Path) -> None:
    commit = make_work_tree(tmp_path, {path: TreeFile(content) for path, content in FILES.items()})
    store, _ = make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS, commit=commit)
    CommandLine(tmp_path)("apply", "--branch", "rename")
    assert pinned_ids(store) == []


def test_dirty_work_tree_does_not_matter_but_an_old_content_that_was_not_committed_does(
    project: CommandLine, tmp_path: Path
) -> None:
    """The batch was made from the commit. What the user edited since is not in the way of a branch."""
    (tmp_path / "a.py").write_bytes(b"dirty\n")
    (tmp_path / "staged").write_bytes(b"staged\n")
    git(tmp_path, "add", "staged")
    seen = user_state(tmp_path)
    project("apply", "--branch", "one")
    assert contents(tmp_path, "one") == AFTER
    commit = commit_all(tmp_path)
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS, second=1, commit=commit)
    ended = project("apply", "--branch", "two", status=3)
    reason = (
        f"its old content is not the one in commit {commit[:12]}: it was not committed, or a filter of git converts it"
    )
    assert ended.lines == [f"refused  a.py: {reason}", "no commits, 1 refused"]
    assert ended.notes.splitlines()[-1] == "to commit the other files, add --partial"
    assert project("apply", "--branch", "two", "--dry-run", status=3).lines[0] == ended.lines[0]
    answer = project("apply", "--branch", "two", "--partial", "--json", status=3).json
    assert [row["path"] for row in answer["refused"]] == ["a.py"]
    assert [row["subject"] for row in answer["commits"]] == ["parse: Change d/b.py", r"symbols: Change caf\xe9.py"]
    assert contents(tmp_path, "two")[b"a.py"] == b"dirty\n"
    assert seen.references


@pytest.mark.parametrize(
    ("per", "expected"),
    [
        ("task", ["parse: Change 2 files", r"symbols: Change caf\xe9.py"]),
        ("directory", ["parse: Change a.py (.)", "parse: Change d/b.py (d)", r"symbols: Change caf\xe9.py (.)"]),
        (
            "owner",
            ["parse: Change a.py (@all)", "parse: Change d/b.py (@team @lead)", r"symbols: Change caf\xe9.py (@all)"],
        ),
        (
            "files:1",
            ["parse: Change a.py (1 of 2)", "parse: Change d/b.py (2 of 2)", r"symbols: Change caf\xe9.py (1 of 1)"],
        ),
        ("files:9", ["parse: Change 2 files (1 of 1)", r"symbols: Change caf\xe9.py (1 of 1)"]),
    ],
)
def test_changes_of_a_task_are_split_into_commits(tmp_path: Path, per: str, expected: list[str]) -> None:
    project = make_project(tmp_path, {**FILES, b"CODEOWNERS": OWNERS})
    project("apply", "--branch", "rename", "--commit-per", per)
    assert subjects(tmp_path, "rename") == expected
    assert contents(tmp_path, "rename") == {**AFTER, b"CODEOWNERS": OWNERS}


def test_missing_owners_are_named_in_commits_and_in_a_note(project: CommandLine, tmp_path: Path) -> None:
    notes = project("apply", "symbols", "--branch", "rename", "--commit-per", "owner").notes
    assert "the snapshot has no file .github/CODEOWNERS, CODEOWNERS, docs/CODEOWNERS" in notes
    assert subjects(tmp_path, "rename") == [r"symbols: Change caf\xe9.py (no owner)"]


def test_message_replaces_the_subject(project: CommandLine, tmp_path: Path) -> None:
    project("apply", "parse", "--branch", "rename", "--message", "Shout\n\nWhy.")
    assert git(tmp_path, "log", "-1", "--format=%B", "rename").startswith("Shout\n\nWhy.\n\nCodebatch-Plan: ")
    assert project("batch", "show", "--json").json["plan_digest"] in git(tmp_path, "log", "-1", "--format=%B", "rename")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--commit-per", "task"), "--commit-per can only be used with --branch"),
        (("--message", "x"), "--message can only be used with --branch"),
        (("--branch", "b", "--reverse"), "--reverse cannot be used with --branch"),
        (("--branch", "b", "--message", " \n"), "--message is empty"),
        (("--branch", "b", "--message", b"\xff"), "--message is empty, or is not valid UTF-8"),
        (("--branch", "b", "--commit-per", "files:0"), "--commit-per 'files:0' is unknown"),
        (("--branch", "b", "--commit-per", "files"), "--commit-per 'files' is unknown"),
        (("--branch", "b", "--commit-per", "team"), "--commit-per 'team' is unknown"),
        (("--branch", "-b"), "'-b' cannot be the name of a branch"),
        (("--branch", "a..b"), "'a..b' cannot be the name of a branch"),
        (("--branch", b"\xff"), "cannot be the name of a branch"),
        (("--branch", "main"), "branch main exists"),
    ],
)
def test_options_that_cannot_be_used_are_errors(
    project: CommandLine, tmp_path: Path, words: tuple[str | bytes, ...], message: str
) -> None:
    seen = user_state(tmp_path)
    assert message in project("apply", *words, status=2).notes
    assert user_state(tmp_path) == seen


def test_branch_of_no_changes_is_not_created(project: CommandLine, tmp_path: Path) -> None:
    ended = project("apply", "lint", "--branch", "rename")
    assert (ended.lines, ended.notes.splitlines()[-1]) == ([], "no changes")
    assert git(tmp_path, "branch", "--list", "rename") == ""
    project("apply", "--branch", "rename")
    git(tmp_path, "merge", "-q", "rename")
    commit = git(tmp_path, "rev-parse", "HEAD")
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS, second=1, commit=commit)
    assert project("apply", "--branch", "again").lines == [f"3 files already changed in commit {commit[:12]}"]


def test_no_repository_no_commit_and_no_git_are_errors(tmp_path: Path) -> None:
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS)
    project = CommandLine(tmp_path)
    assert f"{tmp_path} is not in a git repository" in project("apply", "--branch", "x", status=2).notes
    git(tmp_path, "init", "-q")
    ended = project("apply", "--branch", "x", status=2)
    assert "has no commit: its files were in no git repository with a commit" in ended.notes
    assert "commit the files and make a new batch" in ended.notes
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/codebatch").symlink_to(shutil.which("codebatch", path=project.environment["PATH"]) or "")
    without = CommandLine(tmp_path, {"PATH": str(tmp_path / "bin")})
    assert "--branch needs git, which is not installed" in without("apply", "--branch", "x", status=2).notes


def test_author_comes_from_settings_of_the_user_or_the_environment(project: CommandLine, tmp_path: Path) -> None:
    git(tmp_path, "config", "--unset", "user.name")
    ended = project("apply", "--branch", "x", status=2)
    assert "git has no name and address for the author of commits" in ended.notes
    assert "git config --global user.name NAME" in ended.notes
    assert git(tmp_path, "branch", "--list", "x") == ""
    (tmp_path / "global").write_text("[user]\n\tname = From Settings\n")
    with_settings = CommandLine(tmp_path, {"GIT_CONFIG_GLOBAL": str(tmp_path / "global")})
    with_settings("apply", "--branch", "x")
    assert git(tmp_path, "log", "-1", "--format=%an <%ae>", "x") == "From Settings <n@n>"
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text("[user]\n\tname = From Home\n")
    at_home = CommandLine(tmp_path, {"HOME": str(tmp_path / "home")})
    for variable in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        del at_home.environment[variable]
    at_home("apply", "--branch", "at-home")
    assert git(tmp_path, "log", "-1", "--format=%an", "at-home") == "From Home"
    names = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@a", "GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@c"}
    dates = {"GIT_AUTHOR_DATE": "1700000000 +0200", "GIT_COMMITTER_DATE": "1700000001 +0200"}
    CommandLine(tmp_path, {**names, **dates})("apply", "--branch", "y")
    shown = git(tmp_path, "log", "-1", "--format=%an %ae %cn %ce %ad %ct", "--date=raw", "y")
    assert shown == "A a@a C c@c 1700000000 +0200 1700000001"
    assert git(tmp_path, "reflog", "show", "--format=%gn %gs", "y") == "C codebatch apply"


@pytest.mark.parametrize("variable", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"])
def test_variables_of_git_do_not_name_another_repository(project: CommandLine, tmp_path: Path, variable: str) -> None:
    CommandLine(tmp_path, {variable: str(tmp_path / "elsewhere")})("apply", "--branch", "x")
    assert contents(tmp_path, "x") == AFTER
    project("apply", "--branch", "x", status=2)
    assert not (tmp_path / "elsewhere").exists()


def test_no_program_of_the_repository_runs(project: CommandLine, tmp_path: Path) -> None:
    """Hooks, a signing program, filters, and a file system monitor would leave a file."""
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\nexit 1\n")
    trap.chmod(0o755)
    hooks = [
        "applypatch-msg", "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction",
        "post-index-change", "post-checkout", "pre-auto-gc", "post-rewrite",
    ]  # fmt: skip
    for hook in hooks:
        shutil.copy(trap, tmp_path / ".git/hooks" / hook)
    settings = {
        "commit.gpgSign": "true", "gpg.program": str(trap), "filter.f.clean": str(trap), "filter.f.smudge": str(trap),
        "filter.f.process": str(trap), "filter.f.required": "true", "core.fsmonitor": str(trap),
        "core.editor": str(trap), "core.pager": str(trap), "diff.external": str(trap),
        "gc.auto": "1", "core.autocrlf": "true", "core.sshCommand": str(trap), "log.showSignature": "true",
        "user.signingKey": "x", "sequence.editor": str(trap),
        "credential.helper": str(trap), "core.askPass": str(trap), "fastimport.unpackLimit": "1",
    }  # fmt: skip
    for name, value in settings.items():
        git(tmp_path, "config", name, value)
    (tmp_path / ".gitattributes").write_text("* filter=f diff=f merge=f text=auto eol=crlf ident\n")
    project("apply", "--branch", "x", "--commit-per", "files:1")
    assert not (tmp_path / "sprung").exists()
    assert contents(tmp_path, "x") == AFTER
    git(tmp_path, "config", "core.hooksPath", str(tmp_path / ".git/hooks"))
    project("apply", "--branch", "y")
    assert not (tmp_path / "sprung").exists()


def test_executable_bits_and_deletions_are_kept(tmp_path: Path) -> None:
    """The modes are those of the commit, also if the file system had other ones when the batch was made."""
    make_work_tree(tmp_path, {b"a.sh": TreeFile(b"1\n", 0o755), b"b": TreeFile(b"1\n"), b"c/d": TreeFile(b"1\n")})
    files = dict.fromkeys((b"a.sh", b"b", b"c/d"), b"1\n")
    edits: Edits = {"parse": {b"a.sh": b"2\n", b"b": b"2\n", b"c/d": None}}
    commit = git(tmp_path, "rev-parse", "HEAD")
    make_changed_batch(tmp_path / ".codebatch", tmp_path, files, edits, commit=commit)
    CommandLine(tmp_path)("apply", "--branch", "x")
    expected = {b"a.sh": TreeFile(b"2\n", 0o755), b"b": TreeFile(b"2\n")}
    assert commit_tree(tmp_path, "x") == expected


def test_planted_changes_do_not_reach_git_or_other_files(tmp_path: Path) -> None:
    """The records of a stranger name paths that no commit may have."""
    commit = make_work_tree(tmp_path, {b"a.py": TreeFile(b"old\n")})
    planted = ["../x", "/etc/x", ".git/hooks/post-commit", ".GIT/config", "d/../../x", "d//x", ".codebatch/x"]
    store, _ = make_changed_batch(tmp_path / ".codebatch", tmp_path, {b"a.py": b"old\n"}, {"parse": {b"a.py": b"n\n"}})
    old, new = digest_bytes(b"old\n"), digest_bytes(b"n\n")
    records = [FileChange(path=path, before=old, after=new, added=1, removed=1) for path in ["a.py", *planted]]
    make_saying(
        store, 1, {"parse": [records]}, second=1, contents={b"a.py": b"old\n"},
        sources=(os.fsencode(tmp_path),), commit=commit,
    )  # fmt: skip
    project = CommandLine(tmp_path)
    rows = project("apply", "--branch", "x", "--partial", "--json", status=3).json["refused"]
    assert [row["path"] for row in rows] == sorted(planted)
    assert contents(tmp_path, "x") == {b"a.py": b"n\n"}


def test_commit_of_a_stranger_is_not_an_option_of_git(tmp_path: Path) -> None:
    make_work_tree(tmp_path, {path: TreeFile(content) for path, content in FILES.items()})
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS, commit="--output=/tmp/x")
    assert "'--output=/tmp/x' is not a commit" in CommandLine(tmp_path)("apply", "--branch", "x", status=2).notes


def test_store_from_elsewhere_needs_trust(tmp_path: Path) -> None:
    make_project(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two", symlinks=True)
    words = ("apply", "--store", tmp_path / "two/.codebatch", "--root", tmp_path / "two", "--branch", "x")
    codebatch = CommandLine(tmp_path)
    assert "nothing is written: the store" in codebatch(*words, status=4).notes
    assert git(tmp_path / "two", "branch", "--list", "x") == ""
    ended = codebatch(*words, "--trust")
    assert ended.notes.splitlines()[-1] == f"next: git -C {tmp_path / 'two'} diff main...x"
    assert contents(tmp_path / "two", "x") == AFTER
    assert git(tmp_path / "one", "branch", "--list", "x") == ""


def test_command_that_pushes_the_branch_is_printed(project: CommandLine, tmp_path: Path) -> None:
    git(tmp_path, "remote", "add", "backup", "/nowhere")
    assert project("apply", "--branch", "x").notes.splitlines()[-1] == "next: git push backup x"
    git(tmp_path, "remote", "add", "other", "/nowhere")
    assert "git push" not in project("apply", "--branch", "z").notes
    git(tmp_path, "remote", "add", "origin", "/nowhere")
    assert project("apply", "--branch", "y'z").notes.splitlines()[-1] == "next: git push origin 'y'\"'\"'z'"


@pytest.mark.parametrize("size", [0, 1000, 30_000])
def test_full_disk_leaves_the_repository_as_it_is(tmp_path: Path, size: int) -> None:
    """A limit of the size of files stops the copy of the contents, or git, which writes a tree of 2,000 names."""
    files = {b"%04d" % number: b"%d\n" % number for number in range(2000)}
    make_project(tmp_path, files, {"parse": {b"0000": b"new\n" * 500}})
    seen = user_state(tmp_path)
    limited = CommandLine(tmp_path, prefix=("prlimit", f"--fsize={size}"))
    assert "cannot create branch x" in limited("apply", "--branch", "x", status=4).notes
    assert user_state(tmp_path) == seen
    CommandLine(tmp_path)("apply", "--branch", "x")


def test_work_tree_on_a_file_system_without_write_permission_is_enough(project: CommandLine, tmp_path: Path) -> None:
    """Only the repository is written to."""
    mode = stat.S_IMODE((tmp_path / "a.py").stat().st_mode)
    (tmp_path / "a.py").chmod(0o400)
    project("apply", "--branch", "x")
    assert stat.S_IMODE((tmp_path / "a.py").stat().st_mode) == 0o400
    (tmp_path / "a.py").chmod(mode)


def test_large_batch_equals_the_applied_tree(tmp_path: Path) -> None:
    """2,000 files: the tree of the branch is the one that `apply` writes."""
    files = {b"d%02d/f%04d.py" % (number % 40, number): b"old = %d\n" % number for number in range(2000)}
    new = {path: content.replace(b"old", b"new") for path, content in files.items()}
    project = make_project(tmp_path, files, {"parse": new})
    project("apply", "--branch", "x")
    project("apply")
    assert git(tmp_path, "diff", "--stat", "x", "--", "d*") == ""
    applied = read_tree(tmp_path)
    assert {path: applied[path].content for path in files} == new


def test_tree_in_a_subdirectory_of_the_repository(tmp_path: Path) -> None:
    inner = {b"sub/" + path: TreeFile(content) for path, content in FILES.items()} | {b"top": TreeFile(b"top\n")}
    commit = make_work_tree(tmp_path, inner)
    _, batch = make_changed_batch(tmp_path / ".codebatch", tmp_path / "sub", FILES, EDITS, commit=commit)
    CommandLine(tmp_path / "sub")("apply", "--batch", batch.id, "--root", ".", "--branch", "x")
    assert contents(tmp_path, "x") == {b"top": b"top\n", **{b"sub/" + path: content for path, content in AFTER.items()}}


def test_git_applies_the_difference_of_the_branch_like_the_patch(project: CommandLine, tmp_path: Path) -> None:
    patch = project("changes", "--patch").stdout
    project("apply", "--branch", "x")
    shown = subprocess.run(
        ["git", "diff", "--binary", "--full-index", "--no-renames", "main", "x"],
        cwd=tmp_path, capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert shown == patch
