"""Tests of the listing by git: settings of the tree, the user and the environment do not change it."""

from __future__ import annotations

import gc
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.errors import SourceUnreadable
from codebatch.snapshotting.listing import ListedTree
from codebatch.snapshotting.path_explanation import explain_path
from codebatch.snapshotting.snapshot import SourceRules

from .conftest import Workbench


def test_snapshot_takes_tracked_and_untracked_but_not_ignored_files(bench: Workbench) -> None:
    bench.write("tracked.py")
    bench.write("kept.log")
    bench.write(".gitignore", "*.log\n")
    bench.git("init", "-q")
    bench.git("add", "-f", "tracked.py", "kept.log")
    bench.write("new.py")
    bench.write("new.log")
    assert bench.paths() == [b".gitignore", b"kept.log", b"new.py", b"tracked.py"]


def test_fsmonitor_program_of_a_tree_is_not_run(bench: Workbench) -> None:
    mark = bench.source.parent / "mark"
    trap = bench.source.parent / "trap"
    trap.write_text(f"#!/bin/sh\necho ran >> {mark}\n")
    trap.chmod(0o755)
    bench.write("a.py")
    bench.commit()
    bench.git("config", "core.fsmonitor", str(trap))
    subprocess.run(["git", "status"], cwd=bench.source, capture_output=True, check=True)
    assert mark.exists(), "git did not run the program, so the test proves nothing"
    mark.unlink()
    assert bench.paths() == [b"a.py"]
    sub = bench.write("sub/b.py").parent
    bench.paths(sub)
    assert not mark.exists()


def test_user_and_clone_settings_do_not_change_the_snapshot(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("a.py")
    bench.write("b.txt")
    bench.commit()
    bench.write("c.txt")
    plain = bench.take().snapshot_id
    home = bench.source.parent / "home"
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/ignore").write_text("*.txt\n")
    (home / "excludes").write_text("*.txt\n")
    (home / ".gitconfig").write_text(f"[core]\n\texcludesFile = {home}/excludes\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (bench.source / ".git/info/exclude").write_text("*.txt\n")
    assert bench.take(rehash=True).snapshot_id == plain


def test_git_location_variables_in_the_environment_are_ignored(
    bench: Workbench, make_bench: Callable[[], Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    other_bench = make_bench()
    other_bench.write("secret.py")
    other_bench.commit()
    bench.write("a.py")
    bench.commit()
    monkeypatch.setenv("GIT_DIR", str(other_bench.source / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other_bench.source))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other_bench.source / ".git/index"))
    assert bench.paths() == [b"a.py"]


@pytest.mark.parametrize(
    "variables",
    [
        {"GIT_OBJECT_DIRECTORY": "/nowhere", "GIT_COMMON_DIR": "/nowhere", "GIT_CEILING_DIRECTORIES": "/"},
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "{0}/run"},
        {"GIT_CONFIG_PARAMETERS": "'core.fsmonitor={0}/run'"},
        {"GIT_CONFIG_GLOBAL": "/dev/zero", "GIT_CONFIG_SYSTEM": "/dev/zero", "GIT_CONFIG_NOSYSTEM": "0"},
        {"GIT_TRACE": "{0}/trace", "GIT_TRACE2_EVENT": "{0}/trace", "GIT_TRACE_SETUP": "{0}/trace"},
        {"GIT_EXEC_PATH": "/nowhere", "GIT_GLOB_PATHSPECS": "1", "GIT_ICASE_PATHSPECS": "1"},
    ],
)
def test_git_behaviour_variables_in_the_environment_are_ignored(
    bench: Workbench, variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.py")
    bench.commit()
    (tmp_path / "run").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "run").chmod(0o755)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    assert bench.take().notes == []
    assert [path.name for path in tmp_path.iterdir() if path.name in ("ran", "trace")] == []


def test_configured_work_tree_elsewhere_is_ignored(bench: Workbench, make_bench: Callable[[], Workbench]) -> None:
    other_bench = make_bench()
    other_bench.write("secret.py")
    bench.write("a.py")
    bench.commit()
    bench.git("config", "core.worktree", str(other_bench.source))
    assert bench.paths() == [b"a.py"]


def test_a_linked_work_tree_is_listed_by_git(bench: Workbench) -> None:
    bench.write("a.py")
    bench.write(".gitignore", "*.log\n")
    bench.commit()
    linked = bench.source.parent / "linked"
    bench.git("worktree", "add", "-q", str(linked))
    (linked / "x.log").write_text("x")
    assert (linked / ".git").is_file()
    result = bench.take(linked)
    assert [entry.path for entry in bench.load(result).entries] == [b".gitignore", b"a.py"]
    assert result.notes == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize("below", ["", "sub"])
def test_tree_of_another_user_is_listed_by_git(bench: Workbench, below: str) -> None:
    bench.write("sub/a.py")
    bench.write(".gitignore", "*.log\n")
    bench.commit()
    bench.write("sub/x.log")
    for path in [bench.source, *bench.source.rglob("*")]:
        os.chown(path, 12345, 12345, follow_symlinks=False)
    result = bench.take(bench.source / below)
    assert not any("directory walk" in note for note in result.notes)
    assert b"x.log" not in b"".join(entry.path for entry in bench.load(result).entries)


def test_conflicted_index_lists_each_file_once(bench: Workbench) -> None:
    bench.write("a.py", "base\n")
    bench.commit()
    bench.git("checkout", "-qb", "other")
    bench.write("a.py", "theirs\n")
    bench.git("commit", "-qam", "theirs")
    bench.git("checkout", "-q", "-")
    bench.write("a.py", "ours\n")
    bench.git("commit", "-qam", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        bench.git("merge", "other")
    assert bench.git("ls-files", "-u").count("\n") == 3
    assert bench.paths() == [b"a.py"]


def test_tracked_but_deleted_file_is_absent_until_it_returns(bench: Workbench) -> None:
    bench.write("a.py")
    bench.write("gone/b.py")
    bench.commit()
    shutil.rmtree(bench.source / "gone")
    bench.settle()
    assert bench.paths() == [b"a.py"]
    bench.settle()
    assert bench.paths() == [b"a.py"]
    bench.write("gone/b.py")
    assert bench.paths() == [b"a.py", b"gone/b.py"]


def test_directory_replaced_by_a_link_does_not_lead_outside(bench: Workbench) -> None:
    outside = bench.source.parent / "outside"
    outside.mkdir()
    (outside / "b.py").write_text("secret")
    bench.write("d/b.py")
    bench.write(".gitignore", "/d\n")
    bench.git("init", "-q")
    bench.git("add", "-f", "d/b.py")
    shutil.rmtree(bench.source / "d")
    (bench.source / "d").symlink_to(outside)
    assert bench.paths() == [b".gitignore"]


def test_nested_repository_is_listed_by_its_own_rules(bench: Workbench) -> None:
    bench.write(".gitignore", "*.log\n")
    bench.write("inner/a.log")
    bench.write("inner/b.tmp")
    bench.write("inner/.gitignore", "*.tmp\n")
    bench.commit(cwd=bench.source / "inner")
    bench.git("init", "-q")
    assert bench.paths() == [b".gitignore", b"inner/.gitignore", b"inner/a.log"]


def test_nested_repository_that_is_also_a_root_hides_no_other_root(bench: Workbench) -> None:
    for path in ("first", "outer", "outer/inner"):
        bench.write(f"{path}/a.py")
    for path in ("outer/inner", "outer"):
        bench.git("init", "-q", cwd=bench.source / path)
    roots = [bench.source / path for path in ("first", "outer", "outer/inner")]
    assert bench.paths(*roots) == [b"first/a.py", b"outer/a.py", b"outer/inner/a.py"]


def test_submodule_is_listed_or_an_entry_if_not_checked_out(
    bench: Workbench, make_bench: Callable[[], Workbench]
) -> None:
    library = make_bench()
    library.write("lib.py")
    library.commit()
    bench.write("a.py")
    bench.git("init", "-q")
    bench.git("submodule", "add", "-q", str(library.source), "vendor/lib")
    bench.commit()
    full = bench.take()
    assert [entry.path for entry in bench.load(full).entries] == [b".gitmodules", b"a.py", b"vendor/lib/lib.py"]
    bench.settle()
    bench.take()
    assert bench.take().reused
    bench.git("submodule", "-q", "deinit", "-f", "--all")
    bench.settle()
    empty = bench.take()
    entry = bench.load(empty).entries[-1]
    assert (entry.path, entry.kind, entry.size, entry.object) == (b"vendor/lib", "submodule", 0, "")
    assert "1 submodule not checked out, for example vendor/lib" in empty.notes
    bench.settle()
    bench.take()
    assert bench.take().reused
    bench.write("vendor/lib/stray.py")
    assert bench.paths() == [b".gitmodules", b"a.py", b"vendor/lib/stray.py"]
    (bench.source / "vendor/lib/stray.py").unlink()
    bench.git("submodule", "update", "--init", "-q")
    assert bench.take().snapshot_id == full.snapshot_id


def test_file_replaced_by_a_directory_is_listed_as_the_directory(bench: Workbench) -> None:
    bench.write("a", "file\n")
    bench.write(".gitignore", "*.log\n")
    bench.commit()
    (bench.source / "a").unlink()
    bench.write("a/b.py")
    bench.write("a/c.log")
    assert bench.paths() == [b".gitignore", b"a/b.py"]


def test_ignored_directory_is_walked_if_named(bench: Workbench) -> None:
    bench.write(".gitignore", "/build\n")
    bench.write("build/sub/a.py")
    bench.write("build/forced.py")
    bench.git("init", "-q")
    bench.git("add", "-f", "build/forced.py")
    for root, expected in (
        (bench.source / "build", [b"forced.py", b"sub/a.py"]),
        (bench.source / "build/sub", [b"a.py"]),
    ):
        result = bench.take(root)
        assert [entry.path for entry in bench.load(result).entries] == expected
        assert result.notes == [
            "files of the project are listed by a directory walk: it is ignored by the enclosing repository"
        ]


def test_subdirectory_obeys_the_ignore_files_above(bench: Workbench) -> None:
    bench.write(".gitignore", "*.log\n")
    bench.write("src/a.py")
    bench.write("src/a.log")
    bench.git("init", "-q")
    assert bench.paths(bench.source / "src") == [b"a.py"]


def test_same_tree_without_git_has_the_same_id(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write(".gitignore", "*.log\n/build/\n!keep.log\n")
    bench.write("a.py")
    bench.write("a.log")
    bench.write("sub/keep.log")
    bench.write("build/keep.log")
    bench.commit()
    by_git = bench.take()
    monkeypatch.setenv("PATH", str(bench.source.parent))
    walked = bench.take(rehash=True)
    assert walked.snapshot_id == by_git.snapshot_id
    assert walked.notes == ["files of the project are listed by a directory walk: git is not installed"]


def test_unreadable_repository_is_walked_and_reported(bench: Workbench) -> None:
    bench.write("a.py")
    bench.commit()
    (bench.source / ".git/index").write_bytes(b"no index")
    result = bench.take()
    assert result.entries == 1
    assert result.notes[0].startswith("files of the project are listed by a directory walk: ")
    assert "index" in result.notes[0]


def test_repository_of_a_later_format_is_walked_and_reported(bench: Workbench) -> None:
    """To an older git, a repository with reftables has a later format."""
    bench.write("a.py")
    bench.write(".gitignore", "*.log\n")
    bench.write("b.log")
    bench.commit()
    bench.git("config", "core.repositoryFormatVersion", "1")
    bench.git("config", "extensions.later", "true")
    result = bench.take()
    assert [entry.path for entry in bench.load(result).entries] == [b".gitignore", b"a.py"]
    assert result.notes == [
        "files of the project are listed by a directory walk: unknown repository extension found: later"
    ]


@pytest.mark.parametrize("below", ["", "d1"])
@pytest.mark.parametrize(
    "message", ["git waits for a FIFO", pytest.param("git does not answer; does a .gitignore", marks=pytest.mark.slow)]
)
def test_listing_after_a_git_timeout_matches_git(
    bench: Workbench, below: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git waits for a FIFO in place of an ignore file. For the same tree without the FIFO, git answers."""
    if "FIFO" not in message:  # Simulate a system that does not show what a process waits for.
        monkeypatch.setattr("codebatch.git.repository.waits_for_fifo", lambda _: False)
    choose = random.Random(below)
    names = ["a", "b", "c.log", "d1", "e2", "keep.log"]
    for number in range(120):
        path = (
            "/".join(f"d{choose.randrange(3)}" for _ in range(choose.randrange(4))) + f"/{choose.choice(names)}{number}"
        )
        bench.write(path.lstrip("/"))
    for directory in ("", "d0/", "d1/", "d1/d0/", "d2/d1/"):
        patterns = choose.choices(["*7*", "/d0/", "!*.log*", "d2", "*.log*", "d1/**/a*", "/d1/d2/*3"], k=3)
        bench.write(f"{directory}.gitignore", "\n".join(patterns))
    bench.commit()
    for number in range(60):
        bench.write(f"d{number % 3}/d{number % 2}/{choose.choice(names)}-{number}")
        bench.write(f"d{number % 3}/{choose.choice(names)}-{number}")
    bench.git("init", "-q", cwd=bench.write("d1/inner/x.py").parent)
    plain = bench.take(bench.source / below)
    assert plain.notes == []
    os.mkfifo(bench.write("d1/last/y.py").parent / ".gitignore")
    silent = bench.take(bench.source / below)
    assert f"are listed by git's index and a directory walk: {message}" in silent.notes[0]
    expected = {entry.path for entry in bench.load(plain).entries}
    assert {entry.path for entry in bench.load(silent).entries} == expected | {
        b"last/y.py" if below else b"d1/last/y.py"
    }


@pytest.mark.parametrize("name", ["HEAD", "commondir", "config", "index"])
def test_blocked_git_repository_is_walked(bench: Workbench, name: str) -> None:
    bench.write("a.py")
    bench.write("inner/b.py")
    bench.commit()
    bench.git("init", "-q", cwd=bench.source / "inner")
    why = "listed by a directory walk: git waits for a FIFO where it expects a file"
    for repository, notes in (
        (".git", [f"files of the project are {why}"]),
        ("inner/.git", [f"files of the project are {why}", f"files of inner are {why}"]),
    ):
        (bench.source / repository / name).unlink(missing_ok=True)
        os.mkfifo(bench.source / repository / name)
        result = bench.take()
        assert {entry.path for entry in bench.load(result).entries} == {b"a.py", b"inner/b.py"}
        assert set(notes) <= set(result.notes)


def test_fifo_in_place_of_a_tracked_file_is_skipped_and_reported(bench: Workbench) -> None:
    bench.write("a.py")
    bench.write("pipe")
    bench.commit()
    (bench.source / "pipe").unlink()
    os.mkfifo(bench.source / "pipe")
    result = bench.take()
    assert result.entries == 1
    assert [(item.path, item.reason) for item in result.skipped] == [(b"pipe", "fifo")]
    assert "skipped 1 fifo, for example pipe" in result.notes


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user to be refused")
@pytest.mark.parametrize("is_repository", [True, False])
def test_unreadable_directory_is_an_error_unless_excluded(
    is_repository: bool,
) -> None:
    root = Path(tempfile.mkdtemp())
    root.chmod(0o777)
    bench = Workbench(root)
    bench.write("a.py")
    bench.write("locked/b.py").parent.chmod(0)
    if is_repository:
        bench.git("init", "-q")
    try:
        assert _as_another_user(bench.take) == "SourceUnreadable: cannot read locked: Permission denied"
        assert _as_another_user(lambda: bench.take(exclude=("/locked/",))) == ""
    finally:
        shutil.rmtree(root)


def _as_another_user(action: Callable[[], object]) -> str:
    """Run an action in a forked child as another user. Return the SourceUnreadable that it raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            action()
            status = 0
        except SourceUnreadable as error:
            os.write(writer, f"SourceUnreadable: {error}".encode())
            status = 0
        except BaseException as error:
            os.write(writer, repr(error).encode())
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, "rb") as file:
        report = file.read().decode()
    os.waitpid(child, 0)
    return report


def test_why_names_the_file_line_and_pattern(bench: Workbench) -> None:
    bench.write(".gitignore", "# logs\n*.log\n/out/\n")
    bench.write(".codebatchignore", "*.min.js\n")
    bench.write("a.py")
    bench.write("b.log")
    bench.write("c.min.js")
    bench.write("out/d.py")
    bench.git("init", "-q")
    (bench.source / "link").symlink_to("out")
    answers = {
        name: explain_path([bench.source], bench.source / name, SourceRules(exclude=("*.txt",)))
        for name in ("a.py", "b.log", "c.min.js", "out/d.py", "e.txt", "gone.py", "link", "link/d.py", ".git/HEAD")
    }
    assert {name: (answer.included, answer.mode, answer.rule) for name, answer in answers.items()} == {
        "a.py": (True, "git", "tracked by git, or untracked and not ignored"),
        "b.log": (False, "git", ".gitignore:2:*.log"),
        "c.min.js": (False, "git", ".codebatchignore:1:*.min.js"),
        "out/d.py": (False, "git", ".gitignore:3:/out/"),
        "e.txt": (False, "git", "--exclude *.txt"),
        "gone.py": (False, "git", "it does not exist: No such file or directory"),
        "link": (True, "git", "tracked by git, or untracked and not ignored"),
        "link/d.py": (False, "git", "link is a symbolic link, and links are not followed"),
        ".git/HEAD": (False, "git", "it is in .git, which is always excluded"),
    }
    assert (
        explain_path([bench.source / "out"], Path("/etc/passwd"), SourceRules()).rule == "it is outside the given paths"
    )


def test_snapshot_without_git_leaves_no_garbage_cycles(bench: Workbench) -> None:
    """For a large tree, such a cycle would be a third of all memory and would be freed late."""
    bench.write("a.py")
    gc.collect()
    gc.disable()
    try:
        assert "not a git repository" in bench.take(bench.source).notes[0]
        assert not [candidate for candidate in gc.get_objects() if isinstance(candidate, ListedTree)]
    finally:
        gc.enable()
