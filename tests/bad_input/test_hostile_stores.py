"""Stores that an attacker planted in a cloned or unpacked tree, or beside it, cause no harm.

Most tests check that no byte outside of the store has changed.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.model.documents import encode_document
from codebatch.model.outcome import HolderId
from codebatch.store.batches.holders import HolderFile
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import open_store
from codebatch.store.ownership import is_in_index
from codebatch.system.files.files import RealFiles
from codebatch.system.host import this_host
from tests.bad_input.conftest import manifest
from tests.bad_input.test_store_fuzz import ask
from tests.support.command_line import DEADLINE_SECONDS, SCRIPT, UNPRIVILEGED, CommandLine, permissions_bind, write
from tests.support.fork_server import run_forked

FORGED = {"GIT_AUTHOR_NAME": "m", "GIT_AUTHOR_EMAIL": "m@x", "GIT_COMMITTER_NAME": "m", "GIT_COMMITTER_EMAIL": "m@x"}
HEX = "0123456789abcdef" * 2
BROKEN = "def broken(:\n    pass\n"

with_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(codebatch: CommandLine, cwd: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", *arguments], cwd=cwd, env=codebatch.environment | FORGED, check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def commit(codebatch: CommandLine, repository: Path) -> None:
    if not (repository / ".git").exists():
        git(codebatch, repository, "init", "-q", ".")
    git(codebatch, repository, "add", "-f", ".")
    git(codebatch, repository, "commit", "-qm", "x")


@pytest.fixture
def finished(codebatch: CommandLine) -> Path:
    """Return a complete store in `evil/project/.codebatch`.

    Its tree has one error. A directory beside it has a file that must not be lost.
    """
    write(codebatch.directory / "outside" / HEX / "precious", "do not lose me\n")
    project = codebatch.directory / "evil" / "project"
    write(project / "bad.py", BROKEN)
    codebatch("run", ".", "-q", "--store", ".codebatch", cwd=project, status=0)
    return project / ".codebatch"


# --- A store that came with the tree is not trusted ---------------------------------------------------------------


@with_git
@pytest.mark.parametrize("name", [".gitignore", "CACHEDIR.TAG", "store.json", "made-here", "objects", "locks"])
def test_cloned_store_with_links_writes_nothing_outside(codebatch: CommandLine, name: str) -> None:
    precious = write(codebatch.directory / "home" / "precious", "SECRET\n")
    (codebatch.directory / "home" / "directory").mkdir()
    evil = codebatch.directory / "home" / "evil"
    write(evil / "a.py", "x = 1\n")
    (evil / ".codebatch").mkdir()
    target = "../../directory" if name in ("objects", "locks") else "../../precious"
    (evil / ".codebatch" / name).symlink_to(target)
    commit(codebatch, evil)
    git(codebatch, evil.parent, "clone", "-q", "evil", "clone")
    before = manifest(codebatch.directory)
    error = codebatch("run", ".", "--json", cwd=evil.parent / "clone", status=4).error
    assert error["code"] == "store_foreign"
    assert "--store" in error["hint"]
    assert manifest(codebatch.directory) == before
    assert precious.read_text() == "SECRET\n"


@with_git
def test_store_link_in_a_clone_creates_no_store(codebatch: CommandLine) -> None:
    evil = codebatch.directory / "evil"
    for target in ("../empty", "nowhere", ".codebatch"):
        shutil.rmtree(evil, ignore_errors=True)
        (codebatch.directory / "empty").mkdir(exist_ok=True)
        write(evil / "a.py", "x = 1\n")
        (evil / ".codebatch").symlink_to(target)
        before = manifest(codebatch.directory)
        for command in ("run .", "snapshot .", "status", "errors", "init", "batch init"):
            assert codebatch(*command.split(), "--json", cwd=evil, status=4).error["code"] == "store_foreign", command
        assert manifest(codebatch.directory) == before
    (evil / ".codebatch").unlink()
    (evil / ".codebatch").symlink_to("../empty")
    codebatch("run", ".", "-q", "--store", ".codebatch", cwd=evil)  # The user trusts a store by naming it.
    assert (codebatch.directory / "empty" / "store.json").is_file()


def _by_clone(codebatch: CommandLine, project: Path, target: Path) -> None:
    (project / ".codebatch" / ".gitignore").unlink()
    for directory in sorted((project / ".codebatch").rglob("*")):
        if directory.is_dir() and not directory.is_symlink() and not any(directory.iterdir()):
            write(directory / ".keep", "")
    commit(codebatch, project)
    git(codebatch, project.parent, "clone", "-q", str(project), str(target))


def _by_copy(_: CommandLine, project: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", project, target], check=True)


def _by_hard_links(_: CommandLine, project: Path, target: Path) -> None:
    subprocess.run(["cp", "-al", project, target], check=True)


def _by_archive(_: CommandLine, project: Path, target: Path) -> None:
    target.mkdir()
    subprocess.run(f"tar -c --format=pax -C '{project}' . | tar -xp -C '{target}'", shell=True, check=True)


@with_git
@pytest.mark.parametrize("deliver", [_by_clone, _by_copy, _by_hard_links, _by_archive])
def test_delivered_store_is_untrusted_unless_named(
    codebatch: CommandLine, finished: Path, deliver: Callable[[CommandLine, Path, Path], None]
) -> None:
    target = codebatch.directory / "target"
    deliver(codebatch, finished.parent, target)
    for command in ("run .", "errors", "summary", "status", "batch list", "init", "snapshot ."):
        error = codebatch(*command.split(), "--json", cwd=target, status=4).error
        assert error["code"] == "store_foreign", command
        assert "--store" in error["hint"]
        assert "CODEBATCH_STORE" in error["hint"]
    batch = ("--batch", next((target / ".codebatch" / "batches").glob("batch-*")).name)
    assert "syntax-error" in codebatch("errors", *batch, "--store", ".codebatch", cwd=target).text
    variable = CommandLine(codebatch.directory, {"CODEBATCH_STORE": ".codebatch"})
    assert "syntax-error" in variable("errors", *batch, cwd=target).text


def test_store_moves_with_its_project_and_survives_permission_changes(codebatch: CommandLine, finished: Path) -> None:
    moved = codebatch.directory / "moved"
    finished.parent.parent.rename(moved)
    subprocess.run(["chmod", "-R", "go-rwx", moved], check=True)
    subprocess.run(["touch", *(moved / "project" / ".codebatch").iterdir()], check=True)
    error = codebatch("errors", "--json", cwd=moved / "project", status=3).error
    assert error["code"] == "no_batch"
    # The tree is at a new path, so it is listed again. The results in the store are reused.
    assert codebatch("run", ".", "--json", cwd=moved / "project").json["executed"] == 0
    assert "syntax-error" in codebatch("errors", cwd=moved / "project").text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", ["", "store.json"])
def test_store_of_another_user_is_untrusted(codebatch: CommandLine, finished: Path, name: str) -> None:
    os.chown(finished / name, 4242, -1)
    error = codebatch("errors", "--json", cwd=finished.parent, status=4).error
    assert error["code"] == "store_foreign"
    assert "another user" in error["message"]
    codebatch("errors", "--store", ".codebatch", cwd=finished.parent)


@with_git
@pytest.mark.parametrize("kind", ["plain", "version 4", "split", "linked work tree", "no git at hand", "sha256"])
def test_store_tracked_by_git_is_untrusted(codebatch: CommandLine, kind: str) -> None:
    """git overwrites ignored files silently, so a pull may put a forged batch into the user's own store."""
    top = codebatch.directory / "top"
    write(top / ".clang-format", "x")
    write(top / "vendor" / ".codebatch" / "readme", "not a store, and not this one")
    write(top / "bad.py", BROKEN)
    if kind == "sha256":
        git(codebatch, top, "init", "-q", "--object-format=sha256", ".")
    commit(codebatch, top)
    if kind == "version 4":
        git(codebatch, top, "update-index", "--index-version", "4")
    if kind == "split":
        git(codebatch, top, "config", "core.splitIndex", "true")
        git(codebatch, top, "update-index", "--split-index")
    project = top
    if kind == "linked work tree":
        project = codebatch.directory / "linked"
        git(codebatch, top, "worktree", "add", "-q", str(project))
    codebatch("run", ".", "-q", cwd=project)
    assert (top / ".codebatch" / "store.json").exists()
    git(codebatch, top, "add", ".")
    codebatch("errors", cwd=project)
    write(top / ".codebatch" / "batches" / "batch-20990101-000000-000000-abcdef" / "batch.json", "forged")
    git(codebatch, top, "add", "-f", ".codebatch/batches/batch-20990101-000000-000000-abcdef/batch.json")
    if kind == "no git at hand":
        codebatch.environment["PATH"] = str(codebatch.directory)
    for command in ("errors", "run ."):
        error = codebatch(*command.split(), "--json", cwd=project, status=4).error
        assert error["code"] == "store_foreign"
        assert "git tracks" in error["message"]
    shutil.rmtree(top / ".codebatch")
    error = codebatch("run", ".", "--json", cwd=project, status=4).error
    assert error["hint"].endswith(f"git -C {top} rm -r --cached .codebatch")
    assert not (top / ".codebatch").exists()
    subprocess.run(["git", "rm", "-qr", "--cached", ".codebatch"], cwd=top, check=True)
    codebatch("run", ".", "-q", cwd=project)


@with_git
@pytest.mark.parametrize("kind", ["a gitfile that leads nowhere", "no index", "a broken index", "not a repository"])
def test_store_below_an_unreadable_git_repository_is_trusted(codebatch: CommandLine, kind: str) -> None:
    write(codebatch.directory / "bad.py", BROKEN)
    if kind == "a gitfile that leads nowhere":  # This is the state of a submodule that is mounted alone.
        write(codebatch.directory / ".git", "gitdir: ../.git/modules/x\n")
    elif kind == "not a repository":
        (codebatch.directory / ".git").mkdir()
    else:
        git(codebatch, codebatch.directory, "init", "-q", ".")
    codebatch("run", ".", "-q")
    if kind == "a broken index":
        write(codebatch.directory / ".git" / "index", "DIRC\0\0\0\5")
    assert "syntax-error" in codebatch("errors").text


@with_git
@pytest.mark.parametrize("seed", range(8))
def test_git_index_search_finds_every_store_path(codebatch: CommandLine, seed: int) -> None:
    """Compare with the names that were added to the index, which are similar to the store's.

    A superfluous query of git is not an error.
    """
    chance = random.Random(seed)
    around = (".a", ".codebatch-", ".codebatch.", ".codebatc", ".codebatchignore", "sub/.codebatch-", "sub/a", "!", "z")
    names = {f"{chance.choice(around)}{chance.randrange(10**9)}" for _ in range((0, 1, 40, 4000)[seed % 4])}
    names |= {chance.choice((".codebatch/x", ".codebatch", "sub/.codebatch/q/r"))} if seed < 4 else set()
    algorithm, digits = chance.choice((("sha1", 40), ("sha256", 64)))
    git(codebatch, codebatch.directory, "init", "-q", f"--object-format={algorithm}", ".")
    lines = "".join(f"100644 {'1' * digits}\t{name}\n" for name in sorted(names))
    subprocess.run(
        ["git", "update-index", "--index-info"], input=lines.encode(), cwd=codebatch.directory, check=True,
        env=codebatch.environment,
    )  # fmt: skip
    if names:
        git(codebatch, codebatch.directory, "update-index", "--skip-worktree", "--", min(names))
    for path in (".codebatch", "sub/.codebatch"):
        if any(name == path or name.startswith(f"{path}/") for name in names):
            assert is_in_index(codebatch.directory / ".git", path.encode())
        else:
            assert is_in_index(codebatch.directory / ".git", path.encode()) is False


def test_concurrent_store_creators_all_own_the_store(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    for number in range(5):
        place = codebatch.directory / str(number)
        place.mkdir()
        processes = [
            subprocess.Popen(
                [SCRIPT, "snapshot", "../a.py"], cwd=place, env=codebatch.environment, stderr=subprocess.PIPE
            )
            for _ in range(6)
        ]
        for process in processes:
            codebatch.finish(process)
        assert len(codebatch("snapshot", "list", "--json", cwd=place).json) == 1


# --- A store that is named is trusted, but no link in it is followed -----------------------------------------------


def _entries(store: Path) -> list[str]:
    """Return one entry of each kind of file and directory in a store."""
    batch = next((store / "batches").iterdir())
    entries = ["batches", "objects", "snapshots", "cache", "locks", "locks/store", "store.json"]
    for directory in ("objects", "snapshots", "cache"):
        entries += [f"{directory}/{item.name}" for item in (store / directory).iterdir()]
    entries += [str(item.relative_to(store)) for item in (batch, *batch.iterdir())]
    for kind in (*(path for path in batch.iterdir() if path.is_dir()), next((batch / "outputs").iterdir())):
        by_suffix = {item.suffix: item for item in kind.iterdir()}
        entries += [str(item.relative_to(store)) for item in by_suffix.values()]
    return [*entries, str(next(batch.glob("outputs/*/parse/*")).relative_to(store))]


def _status(codebatch: CommandLine, *arguments: str) -> int:
    """Return the exit status of a command, which must be 0 or 4.

    Commands that start no worker run in this process.
    """
    if arguments[0] == "run":
        forked = run_forked([SCRIPT, *arguments], Path.cwd(), codebatch.environment, DEADLINE_SECONDS)
        assert forked is not None
        returned, stdout, stderr = forked
    else:
        answer = ask(arguments)
        returned, stdout, stderr = answer.status, answer.stdout, answer.stderr.encode()
    status = 4 if returned == 4 else 0
    codebatch.check(" ".join(arguments), returned, stdout, stderr, status)
    assert status == 0 or b"codebatch did not create" in stderr, stderr
    return status


@pytest.mark.slow
def test_linked_store_entries_are_rejected_or_ignored(
    codebatch: CommandLine, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each entry is replaced by a link to its moved original: it is rejected or ignored, and nothing is written."""
    monkeypatch.chdir(finished.parent)
    pristine = codebatch.directory / "pristine" / ".codebatch"
    shutil.copytree(finished, pristine, symlinks=True)
    refused = set()
    for place in _entries(finished):
        path, elsewhere = finished / place, codebatch.directory / "outside" / "elsewhere"
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
        before = manifest(codebatch.directory)
        for command in ("errors", "status", "run .", "run . --again", "gc --keep 1"):
            if _status(codebatch, *command.split(), "--store", ".codebatch") == 4:
                refused.add(place)
        assert manifest(codebatch.directory) == before, place
        shutil.rmtree(finished)
        shutil.rmtree(elsewhere) if elsewhere.is_dir() else elsewhere.unlink()
        shutil.copytree(pristine, finished, symlinks=True)
    assert {"batches", "objects", "snapshots", "cache", "locks", "locks/store", "store.json"} <= refused


@pytest.mark.parametrize("place", ["objects", "snapshots", "batches", "cache", "locks"])
def test_run_creates_nothing_through_a_link(codebatch: CommandLine, place: str) -> None:
    codebatch("init", "store")
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    (codebatch.directory / "outside").mkdir()
    shutil.rmtree(codebatch.directory / "store" / place)
    (codebatch.directory / "store" / place).symlink_to("../outside")
    before = manifest(codebatch.directory)
    assert codebatch("run", "tree", "--store", "store", "--json", status=4).error["code"] == "store_foreign"
    assert manifest(codebatch.directory) == before


@pytest.mark.parametrize("place", ["scratch", "holders", "journal", "leases", "results", "outcomes", "outputs"])
def test_planted_batch_removes_and_writes_nothing_outside(codebatch: CommandLine, place: str) -> None:
    """The attacker wrote the file of a dead worker, so they know its ID.

    They give this name to a directory of the victim.
    """
    write(codebatch.directory / "outside" / HEX / "precious", "do not lose me\n")
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    codebatch("snapshot", "tree", "--store", "store", "-q")
    codebatch("batch", "init", "--store", "store", "-q")
    batch = next((codebatch.directory / "store" / "batches").iterdir())
    host = this_host()
    dead = HolderFile(
        holder=HolderId(HEX), role="worker", pid=1, host=type(host)(name=host.name, boot="0" * 32), since_ns=1
    )
    write(batch / "holders" / HEX, encode_document(dead))
    if place == "holders":
        shutil.move(batch / place / HEX, codebatch.directory / "outside" / "holder")
    (batch / place).rmdir() if not any((batch / place).iterdir()) else None
    (batch / place).symlink_to("../../../outside")
    before = manifest(codebatch.directory)
    error = codebatch("run", "--batch", "latest", "--store", "store", "--json", status=4).error
    assert error["code"] == "store_foreign"
    assert manifest(codebatch.directory) == before


# --- Special files -------------------------------------------------------------------------------------------------


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as endpoint:
        here = os.open(".", os.O_RDONLY)
        try:
            os.chdir(path.parent)  # A socket's path may only be short.
            endpoint.bind(path.name)
        finally:
            os.chdir(here)
            os.close(here)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [_fifo, _socket, _endless, _directory])
@pytest.mark.parametrize("place", ["store.json", ".gitignore", "CACHEDIR.TAG"])
def test_special_file_in_a_store_is_an_immediate_error(
    codebatch: CommandLine, place: str, make: Callable[[Path], None]
) -> None:
    (codebatch.directory / ".codebatch").mkdir()
    make(codebatch.directory / ".codebatch" / place)
    write(codebatch.directory / "a.py", "x = 1\n")
    before = manifest(codebatch.directory)
    for named in ((), ("--store", ".codebatch")):
        assert codebatch("run", ".", "--json", *named, status=4).error["code"] == "store_foreign"
    assert manifest(codebatch.directory) == before


@pytest.mark.parametrize("make", [_fifo, _socket, _endless, _directory])
def test_special_file_in_a_batch_is_never_waited_for(
    codebatch: CommandLine, finished: Path, make: Callable[[Path], None]
) -> None:
    store = open_store(RealFiles(), finished)
    batch = resolve_batch(store, None).root
    snapshot = next((finished / "snapshots").iterdir())
    (index,) = (finished / "objects").glob("*.idx")
    outputs = next(batch.glob("outputs/*/m*"))
    for path in (batch / "batch.json", batch / "plan.json", outputs, snapshot / "snapshot.json", index):
        content = path.read_bytes()
        path.unlink()
        make(path)
        ended = codebatch.ends("errors", "--batch", batch.name, "--store", finished, "--json")
        assert ended.status == 0 or (ended.status, ended.error["code"]) == (4, "store_foreign"), path
        # A file of the snapshot to be published is an obstacle, unless another file can replace it.
        is_in_the_way = path.parent == snapshot and path.is_dir()
        codebatch("run", finished.parent, "--store", finished, "--json", status=4 if is_in_the_way else 0)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        path.write_bytes(content)


# --- An incomplete store -------------------------------------------------------------------------------------------


def test_only_known_leftovers_count_as_an_unfinished_store(codebatch: CommandLine) -> None:
    tag = "Signature: 8a477f597d28d172789f06886806bc55\n# This directory is a codebatch store.\n"
    leftovers = {".gitignore": "*", "CACHEDIR.TAG": tag[:20] + "\0" * 9, f".store.json.{HEX}.tmp": "torn"}
    foreign = {
        ".gitignore": "*.pyc\n",
        "CACHEDIR.TAG": tag + "more",
        "thesis.txt": "x",
        "batches/batch-20990101-000000-000000-abcdef/batch.json": "{}",
        "objects/x.pack": "x",
        "locks": "a file",
        "store.json.tmp": "x",
    }
    for number, (name, content) in enumerate(leftovers.items()):
        root = codebatch.directory / f"ours{number}"
        write(root / ".codebatch" / name, content)
        write(root / "a.py", "x = 1\n")
        codebatch("run", ".", "-q", cwd=root)
        assert (root / ".codebatch" / ".gitignore").read_text() == "*\n"
        assert (root / ".codebatch" / "CACHEDIR.TAG").read_text() == tag
        codebatch("errors", "-q", cwd=root)
    for number, (name, content) in enumerate(foreign.items()):
        root = codebatch.directory / f"other{number}"
        planted = write(root / ".codebatch" / name, content)
        assert codebatch("run", ".", "--json", cwd=root, status=4).error["code"] == "store_foreign", name
        assert planted.read_text() == content
        assert len([*(root / ".codebatch").iterdir()]) == 1


@permissions_bind
def test_unreadable_store_is_reported(tmp_path: Path) -> None:
    codebatch = CommandLine(tmp_path, prefix=UNPRIVILEGED)
    write(tmp_path / "a.py", "x = 1\n")
    codebatch("run", ".", "-q")
    batch = next((tmp_path / ".codebatch" / "batches").iterdir())
    for path in (batch / "batch.json", batch / "outputs", batch, tmp_path / ".codebatch" / "store.json"):
        mode = path.stat().st_mode
        path.chmod(0)
        error = codebatch("errors", "--json", "--store", ".codebatch", status=4).error
        path.chmod(mode)
        assert error["code"] == "store_error", path
        assert "cannot read" in error["message"]


@permissions_bind
def test_unreadable_batch_hides_no_other_batch(tmp_path: Path) -> None:
    codebatch = CommandLine(tmp_path, prefix=UNPRIVILEGED)
    for tree in ("one", "other"):
        write(tmp_path / tree / "a.py", f"import os  # {tree}\n")
        codebatch("run", tree, "-q", "--store", "store")
    older, latest = sorted((tmp_path / "store" / "batches").iterdir())
    latest.chmod(0)
    try:
        listed = codebatch("batch", "list", "--store", "store", "--json")
        assert {row["batch_id"]: row["status"] for row in listed.json} == {
            older.name: "COMPLETED",
            latest.name: "DAMAGED",
        }
        assert f"{latest.name}: cannot read" in listed.notes
        summary = codebatch("summary", "--store", "store", "--json")
        assert summary.json["batch_id"] == older.name
        assert f"{latest.name} skipped: cannot read" in summary.notes
        assert codebatch("run", "one", "--store", "store", "--json").json["action"] == "up to date"
    finally:
        latest.chmod(0o755)
