"""Tests of the gate `verify`: commands of tasks that `apply` runs in a tree with the changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codebatch.model.digest import digest_bytes
from codebatch.model.entry import Entry, EntryKind
from codebatch.operations.changes.verification import NewFileState, is_inner_link, write_tree
from codebatch.store.objects.pack_writer import PackWriter
from tests.index.batches import make_store
from tests.support.command_line import SCRIPT, CommandLine, write

SETTINGS = """
[tasks.bump]
verify = '''{verify}'''
[[tasks.bump.rewrites]]
lang = "python"
pattern = "old($X)"
rewrite = "new($X)"
bad = "old(1)"
good = "new(1)"
[pipelines.small]
tasks = ["bump", "symbols"]
"""


def project(codebatch: CommandLine, verify: str) -> CommandLine:
    """Return a project in which two files are rewritten, after a run."""
    codebatch.shell("git init -q .; echo .codebatch > .gitignore")
    for name in ("a", "b"):
        write(codebatch.directory / f"{name}.py", f"{name} = old(1)\n")
    write(codebatch.directory / "run.sh", "#!/bin/sh\ngrep -q new a.py b.py\n").chmod(0o755)
    write(codebatch.directory / "codebatch.toml", SETTINGS.format(verify=verify))
    codebatch("run", ".", "--pipeline", "small")
    return codebatch


def contents(root: Path) -> list[str]:
    return [(root / name).read_text() for name in ("a.py", "b.py")]


OLD, NEW = ["a = old(1)\n", "b = old(1)\n"], ["a = new(1)\n", "b = new(1)\n"]


def test_command_sees_the_changed_tree_only_and_the_changes_are_applied(codebatch: CommandLine) -> None:
    command = 'test "$(ls)" = "$(printf "a.py\\nb.py\\ncodebatch.toml\\nrun.sh")" && ./run.sh && touch x "$TMPDIR/y"'
    ended = project(codebatch, command)("apply")
    assert ended.notes.splitlines()[0] == f"verifying 2 changes of bump with: {command}"
    assert contents(codebatch.directory) == NEW
    assert not (codebatch.directory / "x").exists()
    undone = codebatch("apply", "--reverse")
    assert "verifying" not in undone.notes
    assert contents(codebatch.directory) == OLD


def test_failure_refuses_all_changes_of_the_task(codebatch: CommandLine) -> None:
    command = "echo one; echo two; echo three; echo $PWD/four; ! grep -q new a.py"
    project(codebatch, command)
    for options in (["--dry-run"], []):
        lines = codebatch("apply", *options, status=1).lines
        reason = "refused by verify: it ended with status 1: two / three / …/tree/four"
        assert lines[:2] == [f"left out a.py: {reason}", f"left out b.py: {reason}"]
    assert contents(codebatch.directory) == OLD
    assert codebatch("apply", "--path", "b.py", "--dry-run").lines == ["to write b.py", "1 file can be written"]
    assert "verifying" not in codebatch("apply", "--refused", "--dry-run").notes
    ended = codebatch("apply", "--no-commands")
    assert "verifying" not in ended.notes
    assert contents(codebatch.directory) == NEW


def test_name_of_a_branch_is_checked_before_the_command_runs(codebatch: CommandLine) -> None:
    codebatch.shell("git init -q . && git -c user.name=n -c user.email=n@n commit -q --allow-empty -m m")
    ended = project(codebatch, "true")("apply", "--branch", "a..b", status=2)
    assert "verifying" not in ended.notes
    assert "'a..b' cannot be the name of a branch" in ended.notes


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo broken >&2; exit 7", "it ended with status 7: broken"),
        ("pytst-of-nobody -q 2>&-", "it was not found (status 127)"),
        ("./a.py 2>&-", "it cannot be run (status 126)"),
        ("kill -9 $$", "it ended with status -9"),
    ],
)
def test_command_that_also_fails_without_the_changes_refuses_them(
    codebatch: CommandLine, command: str, reason: str
) -> None:
    ended = project(codebatch, command)("apply", status=1)
    refusal = f"refused by verify: it also fails without the changes: {reason}"
    assert ended.lines[:2] == [f"left out a.py: {refusal}", f"left out b.py: {refusal}"]
    assert "Repair it, or add --accept-broken-base" in ended.notes
    assert contents(codebatch.directory) == OLD
    rows = codebatch("apply", "--json", "--dry-run", status=1).json["files"]
    assert {row["reason"] for row in rows} == {refusal}
    accepted = codebatch("apply", "--accept-broken-base")
    assert f"`verify` of bump is not used, because it also fails without the changes: {reason}" in accepted.notes
    assert contents(codebatch.directory) == NEW
    assert codebatch("apply", "--accept-broken-base").lines == ["0 files written, 2 already applied"]


def test_accepting_a_broken_base_does_not_accept_a_failure_of_the_changes(codebatch: CommandLine) -> None:
    project(codebatch, "! grep -q new a.py")("apply", "--accept-broken-base", status=1)
    assert contents(codebatch.directory) == OLD


def test_copy_of_a_killed_apply_is_removed(codebatch: CommandLine, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    project(codebatch, "true")
    codebatch.environment["TMPDIR"] = str(temporary)
    for command in ("apply --dry-run", "gc"):
        settings = SETTINGS.format(verify="kill -9 $PPID; sleep 60")
        write(codebatch.directory / "codebatch.toml", settings)
        codebatch.shell(f"{SCRIPT} apply", status=-9)
        assert len(list(temporary.glob("codebatch-verify-*/tree/a.py"))) == 1
        write(temporary / "codebatch-verify-new" / "lock", "")
        write(codebatch.directory / "codebatch.toml", SETTINGS.format(verify="true"))
        codebatch.shell(f"{SCRIPT} {command}")
        assert [path.name for path in temporary.iterdir()] == ["codebatch-verify-new"]


def test_command_that_takes_too_long_has_failed(codebatch: CommandLine) -> None:
    project(codebatch, "grep -q old a.py || sleep 60")
    settings = (codebatch.directory / "codebatch.toml").read_text()
    write(codebatch.directory / "codebatch.toml", f"project_seconds_max = 2.0\n{settings}")
    assert "refused by verify: it did not end within 2 seconds" in codebatch("apply", "--dry-run", status=1).text


def test_only_the_project_of_the_batch_runs_its_command(codebatch: CommandLine, tmp_path: Path) -> None:
    """Another project, with a task of the same name, applies the changes of the batch with --root."""
    project(codebatch, "exit 1")
    other = tmp_path / "other"
    write(other / "codebatch.toml", SETTINGS.format(verify=f"touch {tmp_path}/canary"))
    ended = codebatch("apply", "--root", str(tmp_path), "--store", str(tmp_path / ".codebatch"), "--dry-run", cwd=other)
    assert f"`verify` of bump is not run: {other}/codebatch.toml is not in the root of the project" in ended.notes
    assert not (tmp_path / "canary").exists()


def test_command_is_not_run_if_two_tasks_change_a_file(codebatch: CommandLine) -> None:
    project(codebatch, "true")
    settings = (codebatch.directory / "codebatch.toml").read_text()
    rewrites = settings[settings.index("[[tasks") : settings.index("[pipelines")].replace("tasks.bump", "tasks.other")
    write(codebatch.directory / "codebatch.toml", settings.replace('"bump", ', '"bump", "other", ') + rewrites)
    codebatch("run", ".", "--pipeline", "small")
    notes = codebatch("apply", status=2).notes
    assert "several tasks change 2 files: a.py (bump, other)" in notes
    assert "verifying" not in notes
    assert codebatch("apply", "bump").lines[-1] == "2 files written"


def test_change_of_the_command_does_not_change_the_key(codebatch: CommandLine) -> None:
    project(codebatch, "true")
    write(codebatch.directory / "codebatch.toml", SETTINGS.format(verify="exit 1"))
    assert codebatch("run", ".", "--pipeline", "small", "--json").json["executed"] <= len(["bump", "symbols", "parse"])
    assert 'tasks.bump.verify = "exit 1"' in codebatch("config", "show").text


@pytest.mark.parametrize("verify", ["[1]", '""', "true"])
def test_invalid_command_is_an_error(codebatch: CommandLine, verify: str) -> None:
    write(codebatch.directory / "codebatch.toml", f"[tasks.a]\nverify = {verify}\nrewrites = []\n")
    error = codebatch("pipelines", "--json", status=2).error
    assert error["message"].startswith("`verify` of the task 'a' must be a shell command")


@pytest.mark.parametrize(
    ("path", "target", "is_inner"),
    [
        (b"a", b"b/c", True),
        (b"d/a", b"../b", True),
        (b"a", b"../b", False),
        (b"d/a", b"../../b", False),
        (b"a", b"/etc", False),
        (b"a", b"", False),
        (b"a", b"b/../c", False),
    ],
)
def test_links_that_may_lead_out_of_the_tree_are_not_created(path: bytes, target: bytes, is_inner: bool) -> None:
    assert is_inner_link(path, target) == is_inner


def test_tree_has_files_links_and_modes_and_nothing_outside(tmp_path: Path) -> None:
    """A planted snapshot has a file below a link, an unsafe path and a link out of the tree."""
    store = make_store(tmp_path)
    with PackWriter(store.objects()) as writer:
        for content in (b"x", b"new", b"d", b"/etc"):
            writer.add(content)

    def entry(path: bytes, content: bytes, kind: EntryKind = "file", *, executable: bool = False) -> Entry:
        return Entry(path, kind, executable, len(content), digest_bytes(content))

    entries = [
        entry(b"../out", b"x"),
        entry(b"d/f", b"x", executable=True),
        entry(b"e", b"d", "symlink"),
        entry(b"gone", b"x"),
        entry(b"out", b"/etc", "symlink"),
        entry(b"sub", b"x", "submodule"),
        entry(b"z", b"x"),
    ]
    changed = {
        b"gone": NewFileState(None, False),
        b"z": NewFileState(digest_bytes(b"new"), True),
    }
    root = tmp_path / "tree"
    write_tree(os.fsencode(root), entries, store.objects(), changed)
    assert sorted(os.listdir(root)) == ["d", "e", "z"]
    assert ((root / "e").readlink(), (root / "e/f").read_bytes(), (root / "z").read_bytes()) == (
        Path("d"),
        b"x",
        b"new",
    )
    assert os.access(root / "d/f", os.X_OK)
    assert os.access(root / "z", os.X_OK)
    assert not (tmp_path / "out").exists()
    with pytest.raises(OSError, match="Not a directory"):
        write_tree(os.fsencode(tmp_path / "two"), [entry(b"a", b"x"), entry(b"a/b", b"x")], store.objects(), {})


def test_command_is_not_run_in_a_copy_that_git_takes_for_a_repository(codebatch: CommandLine) -> None:
    """The project has a `.git`, which its copy has not. git would run the programs that `config` names."""
    for name in ("HEAD", "objects/x", "refs/x"):
        write(codebatch.directory / name, "ref: refs/heads/x\n")
    project(codebatch, f"touch {codebatch.directory}/ran")
    notes = codebatch("apply", status=2).notes
    assert "`verify` is not run: git would take the copy of the files, which has no `.git`, for a repository" in notes
    assert not (codebatch.directory / "ran").exists()
    assert contents(codebatch.directory) == OLD
    codebatch("apply", "--no-commands")
    assert contents(codebatch.directory) == NEW
