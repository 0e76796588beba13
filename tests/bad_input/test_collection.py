"""Garbage collection by the command line: after runs, during runs, and in stores that cannot be written."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.support.command_line import UNPRIVILEGED, CommandLine, make_many, permissions_bind, wait_until, write
from tests.support.worker_processes import live_worker_pids

KEEP_ONE = "[store]\nkeep = 1\n"


def _run_three_times(codebatch: CommandLine) -> list[str]:
    """Run codebatch on three versions of a tree, and return the standard error of each run."""
    write(codebatch.directory / "tree" / "same.py", "y = 1\n")
    notes = []
    for version in range(3):
        write(codebatch.directory / "tree" / "a.py", f"x = {version}\n")
        notes.append(codebatch("run", "tree", "--pipeline", "parse").notes)
    return notes


def test_run_retains_the_configured_number_of_batches_and_names_removed_batches(codebatch: CommandLine) -> None:
    write(codebatch.directory / "codebatch.toml", KEEP_ONE)
    notes = _run_three_times(codebatch)
    (retained,) = codebatch("batch", "list", "--json").json
    assert "collected" not in notes[0]
    lines = [line for note in notes[1:] for line in note.splitlines() if line.startswith("collected 1 batch")]
    assert len(lines) == 2
    assert retained["batch_id"] not in "".join(lines)
    assert codebatch("query", "outputs", "--json").records
    assert codebatch("gc", "--json").json["batches"] == []
    assert codebatch("config", "show", "--json").json["store"]["value"] == {"keep": 1}


def test_gc_retains_pinned_batches_and_answers_from_the_rest(codebatch: CommandLine) -> None:
    _run_three_times(codebatch)
    first, second, third = (row["batch_id"] for row in codebatch("batch", "list", "--json").json)
    codebatch("pin", first)
    assert codebatch("store-stats", "--json").json["pinned"] == [first]
    assert codebatch("gc", "--keep", "1", "--dry-run").lines[0] == f"batch     {second}"
    assert len(codebatch("batch", "list", "--json").json) == 3
    collected = codebatch("gc", "--keep", "1", "--json").json
    assert (collected["batches"], collected["dry_run"]) == ([second], False)
    for batch in (first, third):
        assert len(codebatch("files", "--batch", batch, "--json").records) == 2
    assert codebatch("summary", "--batch", second, "--json", status=2).error["code"] == "unknown_id"
    codebatch("unpin", first)
    assert codebatch("gc", "--keep", "1", "--json").json["batches"] == [first]
    assert codebatch("run", "tree", "--pipeline", "parse", "--json").json["action"] == "up to date"


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        ("gc --keep 0", 2, "usage"),
        ("gc --keep many", 2, "usage"),
        ("gc --store nowhere", 4, "store_not_found"),
        ("pin nothing", 2, "unknown_id"),
        ("pin ../../etc", 2, "invalid_id"),
        ("unpin latest", 2, "unknown_id"),
        ("pin", 2, "usage"),
    ],
)
def test_invalid_gc_or_pin_is_reported(codebatch: CommandLine, arguments: str, status: int, code: str) -> None:
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    codebatch("run", "tree", "--pipeline", "parse", "-q")
    assert codebatch(*arguments.split(), "--json", status=status).error["code"] == code


@pytest.mark.parametrize("wrong", ["keep = 0", 'keep = "all"', "keeps = 1"])
def test_invalid_store_configuration_is_rejected(codebatch: CommandLine, wrong: str) -> None:
    write(codebatch.directory / "codebatch.toml", f"[store]\n{wrong}\n")
    assert codebatch("config", "show", "--json", status=2).error["code"] == "invalid_configuration"


def _processes_of_run(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    coordinator = psutil.Process(process.pid)
    return [*coordinator.children(recursive=True), coordinator]


@pytest.mark.slow
def test_gc_does_not_affect_a_stopped_run(codebatch: CommandLine, digest_of_many: str) -> None:
    make_many(codebatch.directory / "many", 40)
    process = codebatch.start("run", "many", "-j", "2", "--json")
    wait_until(lambda: len(live_worker_pids(codebatch.directory / ".codebatch")) > 0, "a worker is alive")
    family = _processes_of_run(process)
    for one in family:
        one.send_signal(signal.SIGSTOP)
    assert codebatch("gc", "--keep", "1", "--json", status=4).error["code"] == "store_in_use"
    codebatch("gc", "--dry-run")
    for one in family:
        one.send_signal(signal.SIGCONT)
    assert codebatch.finish(process).json["result_digest"] == digest_of_many
    codebatch("gc", "--keep", "1")
    assert codebatch("run", "many", "--json").json["action"] == "up to date"


@pytest.mark.slow
def test_stopped_worker_locks_the_store_only_while_its_coordinator_lives(
    codebatch: CommandLine, digest_of_many: str
) -> None:
    """The batch is not finished, so neither the batch nor its bases are removed."""
    make_many(codebatch.directory / "many", 40)
    codebatch("run", "many", "--task", "parse", "-q")
    process = codebatch.start("run", "many", "-j", "2", "--json")
    wait_until(lambda: len(live_worker_pids(codebatch.directory / ".codebatch")) > 0, "a worker is alive")
    workers = _processes_of_run(process)[:-1]
    for worker in workers:
        worker.send_signal(signal.SIGSTOP)
    assert codebatch("gc", "--json", status=4).error["code"] == "store_in_use"
    process.kill()
    process.communicate()
    psutil.wait_procs(workers, timeout=60)
    assert codebatch("gc", "--keep", "1", "--json").json["batches"] == []
    assert codebatch("run", "many", "--json").json["result_digest"] == digest_of_many


@permissions_bind
def test_read_only_store_is_not_collected(codebatch: CommandLine) -> None:
    _run_three_times(codebatch)
    ids = [row["batch_id"] for row in codebatch("batch", "list", "--json").json]
    store = codebatch.directory / ".codebatch"
    directories = [Path(root) for root, _, _ in os.walk(store)]
    files = [path for path in store.rglob("*") if path.is_file() and not path.is_symlink()]
    for path in [*files, *directories]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    bound = CommandLine(codebatch.directory, prefix=UNPRIVILEGED)
    try:
        refused = bound("gc", "--keep", "1", "--json", status=4, has_answer=True).json
        assert (refused["batches"], refused["freed_bytes"]) == ([], 0)
        assert {each["reason"] for each in refused["unremoved"]} == {"Permission denied"}
        assert {each["name"] for each in refused["unremoved"]} >= {*ids[:2]}
        assert len(bound("gc", "--keep", "1", "--dry-run", "--json").json["batches"]) == 2
        ran = bound("run", "--batch", "latest")
        assert "collected" not in ran.notes
        assert "stays" not in ran.notes
    finally:
        for path in [*directories, *files]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert len(codebatch("batch", "list", "--json").json) == 3


_GROUP = 54321


def _line_of_user(directory: Path, user: int, umask: str) -> CommandLine:
    """Return a command line of another user of a group. The user may read all files, and write only files of its own
    and of the group.
    """
    capability = "+dac_read_search"  # The interpreter may be in a directory that only root can read.
    options = f"--reuid={user} --regid={_GROUP} --clear-groups --inh-caps={capability} --ambient-caps={capability}"
    shell = ("sh", "-c", f'umask {umask}; exec "$@"', "sh")
    return CommandLine(directory, prefix=("setpriv", *options.split(), "--bounding-set=-all,+dac_read_search", *shell))


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root, and setpriv")
@pytest.mark.parametrize("umask", ["002", "022"], ids=["group may write", "only the owner may write"])
def test_second_user_of_a_group_can_run_and_collect_garbage(tmp_path: Path, umask: str) -> None:
    """In the second case, the first user creates batches that no other user may remove."""
    directory = tmp_path / "shared"
    directory.mkdir()
    os.chown(directory, 54001, _GROUP)
    directory.chmod(0o2775)
    first = _line_of_user(directory, 54001, "002")
    first("init", "-q")
    (directory / "a.py").write_text("x = 0\n")
    assert {path.stat().st_mode & 0o777 for path in (directory / ".codebatch").rglob("*") if path.is_file()} == {0o664}
    for user, mask in ((54001, umask), (54002, "002"), (54001, umask), (54002, "002")):
        (directory / "a.py").write_text(f"x = {user}{(directory / 'a.py').read_text()}")
        ran = _line_of_user(directory, user, mask)("run", "-q", "--store", ".codebatch")
        assert "not removed" not in ran.notes, "50 batches are kept by default"
    (directory / "codebatch.toml").write_text(KEEP_ONE)
    second = _line_of_user(directory, 54002, "002")
    before = [row["batch_id"] for row in second("batch", "list", "--store", ".codebatch", "--json").json]
    status = 0 if umask == "002" else 4
    collected = second("gc", "--store", ".codebatch", "--json", status=status, has_answer=True).json
    assert collected["batches"] == before[:-1]
    if umask == "022":
        hidden = {each["name"].split(".")[1] for each in collected["unremoved"] if each["name"].startswith("batches/")}
        assert hidden == {before[0], before[2]}
        first("gc", "--store", ".codebatch")
    assert [path.name for path in (directory / ".codebatch" / "batches").iterdir()] == before[-1:]


def test_older_batches_are_settled_and_still_answer(codebatch: CommandLine) -> None:
    _run_three_times(codebatch)
    ids = [row["batch_id"] for row in codebatch("batch", "list", "--json").json]
    batches = codebatch.directory / ".codebatch" / "batches"
    assert [(batches / batch_id / "settled.json").exists() for batch_id in ids] == [True, True, False]
    before = [_answers(codebatch, batch_id) for batch_id in (ids[0], ids[2])]
    assert codebatch("gc", "--json").json["settled"] == [ids[2]]
    assert codebatch("gc").lines == ["nothing to remove"]
    assert [_answers(codebatch, batch_id) for batch_id in (ids[0], ids[2])] == before
    assert codebatch("run", "tree", "--pipeline", "parse", "--json").json["action"] == "up to date"
    (outputs,) = (batches / ids[2] / "outputs").iterdir()
    (outputs / "manifest.json").unlink()
    assert codebatch("batch", "list", "--json").json[2]["status"] == "DAMAGED"
    assert codebatch("status", "--json", status=4).error["code"] == "store_corrupt"
    again = codebatch("run", "tree", "--pipeline", "parse", "--json").json
    assert (again["action"], again["batch_id"] in ids) == ("new", False)


def _answers(codebatch: CommandLine, batch: str) -> list[object]:
    shard = codebatch("shards", "--task", "parse", "--batch", batch, "--json").json
    return [
        shard,
        codebatch("status", "--batch", batch, "--json").json,
        codebatch("tasks", "--batch", batch, "--json").json,
        codebatch("query", "outputs", "--batch", batch, "--json").records,
        codebatch("run-shard", "--task", "parse", "--shard", shard[0]["shard_id"], "--batch", batch, "--json").json,
        codebatch("resume", "--batch", batch, "--json").json["result_digest"],
    ]


@pytest.mark.slow
def test_concurrent_runs_collections_and_queries_succeed(codebatch: CommandLine) -> None:
    write(codebatch.directory / "codebatch.toml", KEEP_ONE)
    tree = codebatch.directory / "tree"
    make_many(tree, 10)
    codebatch("run", "tree", "--pipeline", "parse")
    error_codes: dict[str, set[str]] = {"gc": set(), "files": set()}
    for version in range(3):
        write(tree / "a.py", f"x = {version}\n")
        running = codebatch.start("run", "tree", "--pipeline", "parse", "--json")
        while running.poll() is None:
            for command, codes in error_codes.items():
                answer = codebatch.ends(command, "--json")
                is_answer = answer.status in (
                    0,
                    3,
                )  # A batch that is still running gives an incomplete answer and says so.
                codes.add("" if is_answer else answer.error["code"])
                assert answer.json if is_answer else not answer.stdout
        assert codebatch.finish(running).json["status"] == "COMPLETED"
    assert error_codes["gc"] <= {"", "store_in_use"}
    assert error_codes["files"] <= {"", "unknown_id"}
    codebatch("gc")
    assert len(codebatch("files", "--json").records) == 11
    assert len(codebatch("batch", "list", "--json").json) == 1
    assert codebatch("run", "tree", "--pipeline", "parse", "--json").json["action"] == "up to date"
