"""Repair of damaged results by `diagnose --repair` and `run`: damage is reported once, and repaired under all names."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from codebatch.system.files.files import RealFiles
from tests.cli.run.test_explain_miss import FILES, SHARDS
from tests.cli.run.test_verify import FICKLE
from tests.support.command_line import (
    UNPRIVILEGED,
    CommandLine,
    make_many,
    make_modules,
    permissions_bind,
    set_apart,
    wait_until,
    write,
    write_own_task,
)


@pytest.fixture
def shared(codebatch: CommandLine) -> CommandLine:
    """A project with two batches. The second one shares the results of all files but one with the first."""
    write(codebatch.directory / "codebatch.toml", SHARDS)
    make_modules(codebatch.directory / "tree", FILES)
    set_apart(codebatch, "tree")
    codebatch("run", "tree")
    write(codebatch.directory / "tree" / "m11.py", "import sys\n")
    codebatch("run", "tree")
    return codebatch


def shard_files(codebatch: CommandLine, task: str, batch: int = -1) -> list[Path]:
    """Return the shard files of a task in a batch, in path order."""
    root = sorted(codebatch.directory.glob(".codebatch/batches/batch-*"))[batch]
    return sorted(root.glob(f"outputs/*/{task}/*"))


def flip(path: Path) -> None:
    """Change a byte in place, so that the file is damaged under all its names."""
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x10
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def plant(path: Path) -> None:
    path.unlink()
    (path / "below").mkdir(parents=True)


def _contents(codebatch: CommandLine) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(codebatch.directory.glob(".codebatch/batches/*/outputs/*/*/*"))}


def _leftovers(codebatch: CommandLine) -> list[Path]:
    return [*codebatch.directory.glob(".codebatch/batches/.*"), *codebatch.directory.glob(".codebatch/**/*.tmp")]


def test_damage_is_reported_once_with_all_names_and_repaired(shared: CommandLine) -> None:
    sound = _contents(shared)
    first = shard_files(shared, "symbols")[0]
    assert os.stat(first).st_nlink == 3, "two outputs and a reused result share the file"
    flip(first)
    assert shared("diagnose", "--json").json["damaged"] == [], "metadata and sizes do not show the damage"
    (line,) = shared("diagnose").lines
    assert line.endswith(": no damage found in metadata and sizes; verify all data with --full")
    for batch in ("latest", "latest~1"):
        assert shared("inspect", "tree/m00.py", "--batch", batch, "--json", status=4).error["code"] == "store_corrupt"
    assert shared("diagnose", "--sample", "100%", "--json", status=4, has_answer=True).json["fully_read"] == 23
    report = shared("diagnose", "--full", "--json", status=4, has_answer=True)
    (damage,) = report.json["damaged"]
    assert [Path(name).parts[-2] for name in damage["names"]] == ["symbols", "results", "symbols"]
    assert len({Path(name).parts[1] for name in damage["names"]}) == 2
    assert (report.error["code"], report.error["hint"]) == (
        "store_corrupt",
        "repair it with: codebatch diagnose --repair",
    )
    repair = shared("diagnose", "--repair", "--json").json
    assert ([repaired["names"] for repaired in repair["repaired"]], repair["damaged"]) == ([damage["names"]], [])
    assert os.stat(first).st_nlink == 3
    assert _contents(shared) == sound
    assert _leftovers(shared) == []
    assert shared("diagnose", "--full").lines == ["2 batches, 2 snapshots, 23 shard files (47 paths): no damage"]


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink, plant])
def test_run_repairs_damage_in_a_complete_batch(shared: CommandLine, damage: Callable[[Path], None]) -> None:
    """Damage in file tasks and in a project task is repaired by one run, and both batches are as before.

    The cached first screen is removed, because `run` could answer from it.
    """
    sound = _contents(shared)
    for headline in shared.directory.glob(".codebatch/cache/headline-*"):
        headline.unlink()
    for path in (shard_files(shared, "lint")[0], shard_files(shared, "lint")[-1], shard_files(shared, "duplicates")[1]):
        damage(path)
    ended = shared("run", "tree", "--json")
    assert (ended.json["action"], ended.json["executed"]) == ("up to date", 0)
    assert "running the tasks again" in ended.notes
    assert _contents(shared) == sound
    assert shared("diagnose", "--full", "--json").json["damaged"] == []
    assert "executed again" not in shared("run", "tree").notes


def test_run_repairs_damage_in_results_reused_by_an_unfinished_batch(shared: CommandLine) -> None:
    """The results come from the older batch, which has them too. Nothing is executed."""
    (outputs,) = {path.parent.parent for path in shard_files(shared, "lint")}
    sound = _contents(shared)
    os.rename(outputs, shared.directory / "outputs")
    reused = [*shared.directory.glob(".codebatch/batches/*/results/*.shard")]
    whole = reused[0].read_bytes()
    cut(reused[0])
    (damage,) = shared("diagnose", "--json", status=4, has_answer=True).json["damaged"]
    assert str(reused[0]).endswith(damage["names"][0])
    reused[0].write_bytes(whole)
    for path in reused:
        path.unlink()
    assert shared("diagnose", "--json", status=4, has_answer=True).json["damaged"]
    answer = shared("inspect", "tree/m00.py", "--json", status=4)
    assert answer.error["hint"] == "repair it with: codebatch diagnose --repair"
    ended = shared("run", "tree", "--json")
    assert (ended.json["action"], ended.json["status"]) == ("resumed", "COMPLETED")
    assert "executed again" not in ended.notes
    assert _contents(shared) == sound


def test_damaged_failures_are_repaired(codebatch: CommandLine) -> None:
    """Both the failure of a task and the failure of a task that needs it are repaired."""
    failing = "def task(file):\n    if file.path == b'b.py':\n        raise ValueError\n    return []\n"
    write_own_task(codebatch.directory, "one", failing)
    for name in "abc":
        write(codebatch.directory / "tree" / f"{name}.py", "x = 1\n")
    set_apart(codebatch, "tree")
    codebatch("run", "tree", status=3)
    sound = _contents(codebatch)
    for task in ("one", "analyze"):
        flip(shard_files(codebatch, task)[0])
    codebatch("diagnose", "--repair")
    assert _contents(codebatch) == sound


def test_empty_batch_is_repaired(codebatch: CommandLine) -> None:
    (codebatch.directory / "empty").mkdir()
    codebatch("run", "empty", "--allow-empty")
    sound = _contents(codebatch)
    for path in sound:
        path.unlink() if path.suffix == ".zst" else None
    codebatch("diagnose", "--repair")
    assert _contents(codebatch) == sound


@pytest.mark.parametrize("name", ["pins", "cache", "locks"])
def test_link_in_place_of_a_directory_is_damage_and_not_followed(
    codebatch: CommandLine, tmp_path: Path, name: str
) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".")
    (tmp_path / "elsewhere").mkdir()
    path = codebatch.directory / ".codebatch" / name
    if path.exists():
        shutil.rmtree(path)
    path.symlink_to(tmp_path / "elsewhere")
    assert f"{name} is not a directory" in codebatch("diagnose", status=4, has_answer=True).text
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_nondeterministic_result_is_not_repaired(codebatch: CommandLine) -> None:
    root = codebatch.directory
    mood = write(root / "mood", "fine")
    write_own_task(root, "fickle", FICKLE.format(mood=str(mood)))
    write(root / "tree" / "m05.py", "x = 1\n")
    set_apart(codebatch, "tree")
    codebatch("run", "tree")
    (path,) = shard_files(codebatch, "fickle")
    sound = path.read_bytes()
    flip(path)
    damaged = path.read_bytes()
    mood.write_text("another")
    report = codebatch("diagnose", "--repair", "--json", status=4, has_answer=True)
    (damage,) = report.json["damaged"]
    assert damage["problem"].endswith("not repaired: executing its task again gave a different result")
    assert report.error["hint"] == "make a new batch with: codebatch run --again PATH"
    path.unlink()
    error = codebatch("run", "tree", "--json", status=4).error
    assert error["hint"] == "make a new batch with: codebatch run --again PATH"
    assert not path.exists()
    path.write_bytes(damaged)
    mood.write_text("fine")
    codebatch("diagnose", "--repair")
    assert path.read_bytes() == sound


def test_result_of_another_installation_is_not_repaired(codebatch: CommandLine) -> None:
    root = codebatch.directory
    own = "from codebatch_workers.api import Metric\n"
    own += "def task(file):\n    yield Metric(path=file.path.decode(), metric='m', value=1)\n"
    task = write_own_task(root, "one", own)
    write(root / "tree" / "a.py", "x = 1\n")
    set_apart(codebatch, "tree")
    codebatch("run", "tree")
    flip(shard_files(codebatch, "one")[0])
    write(task, own + "# another\n")
    report = codebatch("diagnose", "--repair", "--json", status=4, has_answer=True)
    assert (
        "planned with another version of one (different implementation_digest)" in report.json["damaged"][0]["problem"]
    )


def test_damaged_documents_do_not_prevent_repair_of_other_files(shared: CommandLine) -> None:
    write(shared.directory / ".codebatch" / "untrusted.json", "{}\n")
    first, latest = sorted(shared.directory.glob(".codebatch/batches/batch-*"))
    flip(latest / "plan.json")
    flip(shard_files(shared, "parse")[0])
    snapshot, _ = sorted(shared.directory.glob(".codebatch/snapshots/snap-*"))
    cut(snapshot / "files.index.jsonl.zst")
    (shared.directory / ".codebatch" / "untrusted.json").unlink()
    report = shared("diagnose", "--repair", "--json", status=4, has_answer=True).json
    assert {Path(damage["names"][0]).name for damage in report["damaged"]} == {latest.name, snapshot.name}
    assert len(report["repaired"]) == 1, "the batch with an undamaged plan allows the repair"
    flip(first / "batch.json")
    write(shared.directory / ".codebatch" / "untrusted.json", "{}\n")
    report = shared("diagnose", "--json", status=4, has_answer=True).json
    named = {Path(damage["names"][0]).name for damage in report["damaged"]}
    assert named == {"untrusted.json", first.name, latest.name, snapshot.name}


def test_repair_runs_beside_a_writer(shared: CommandLine) -> None:
    make_many(shared.directory / "many", 40)
    set_apart(shared, "many")
    process = shared.start("run", "many", "-j", "1", "--json")
    wait_until(
        lambda: len([*shared.directory.glob(".codebatch/batches/batch-*/outcomes/*")]) > 0, "an outcome is published"
    )
    flip(shard_files(shared, "lint", 1)[0])
    shared("diagnose", "--repair")
    assert shared.finish(process).json["status"] == "COMPLETED"
    assert shared("diagnose", "--full", "--json").json["damaged"] == []


@pytest.mark.slow
def test_killed_repair_is_completed_by_the_next_repair(shared: CommandLine) -> None:
    sound = _contents(shared)
    for _ in range(3):
        for task in ("lint", "symbols"):
            flip(shard_files(shared, task)[0])
        process = shared.start("diagnose", "--repair")
        wait_until(lambda: _has_executed_hidden_work(shared), "the repair has executed work")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        wait_until(lambda: not _is_held(shared.directory), "the workers of the repair end")
        assert {path for path in _contents(shared) if "/batches/." not in str(path)} == {*sound}
        shared("diagnose", "--repair")
        assert _contents(shared) == sound
        assert _leftovers(shared) == []


def _is_held(directory: Path) -> bool:
    """Return whether a writer holds the lock of the store, as a worker does while it lives."""
    lock = RealFiles().try_lock(directory / ".codebatch" / "locks" / "store")
    if lock is not None:
        lock.release()
    return lock is None


def _has_executed_hidden_work(codebatch: CommandLine) -> bool:
    """Return whether the repair has executed work, which it does in a temporary batch."""
    return _matches_any(codebatch.directory, ".codebatch/batches/.*.tmp/outcomes/*.r1")


def _matches_any(directory: Path, pattern: str) -> bool:
    """Return whether a path matches a pattern. Directories may be removed during the search."""
    with contextlib.suppress(FileNotFoundError):
        return any(directory.glob(pattern))
    return False


def test_interrupted_resume_repairs_nothing(codebatch: CommandLine) -> None:
    """Open work prevents repair: a repair would report the outputs of before the resume."""
    root = codebatch.directory
    gate = write(root / "gate", "fails")
    write(root / "own.py", GATED.format(gate=str(gate)))
    write(root / "codebatch.toml", "[tasks.gated]\npython = 'own.py:task'\n")
    write(root / "tree" / "a.py", "x = 1\n")
    set_apart(codebatch, "tree")
    codebatch("run", "tree", status=3)
    gate.unlink()
    process = codebatch.start("resume", "--json")
    wait_until(lambda: any(root.glob(".codebatch/batches/*/leases/*.2")), "the resume has claimed a lease")
    cut(shard_files(codebatch, "parse")[0])
    for number in (signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    # Two threads may receive the signals, so either can be the first.
    assert process.returncode in (130, 143), stderr
    assert b"executing again" not in stderr
    assert b'"interrupted"' in stderr
    gate.write_text("open")
    assert codebatch("resume", "--json").json["status"] == "COMPLETED"


GATED = """
import time
from pathlib import Path
from codebatch_workers.api import Metric


def task(file):
    while not Path({gate!r}).exists():
        time.sleep(0.01)
    assert Path({gate!r}).read_text() != "fails"
    yield Metric(path=file.path.decode(), metric="m", value=1)
"""


@pytest.fixture
def _default_hangup_handler() -> Iterator[None]:
    """Let started processes receive SIGHUP, although nohup(1) may have started the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_default_hangup_handler")
def test_interrupted_repair_is_reported_and_the_next_repair_continues(codebatch: CommandLine) -> None:
    root = codebatch.directory
    gate = write(root / "gate", "open")
    write_own_task(root, "gated", GATED.format(gate=str(gate)))
    write(root / "tree" / "a.py", "x = 1\n")
    set_apart(codebatch, "tree")
    codebatch("run", "tree")
    sound = _contents(codebatch)
    for first, arguments in (
        (signal.SIGINT, ("diagnose", "--repair")),
        (signal.SIGHUP, ("run", "tree")),
        (signal.SIGINT, ("resume",)),
    ):
        (path,) = shard_files(codebatch, "gated")
        cut(path)
        gate.unlink()
        process = codebatch.start(*arguments, "--json")
        wait_until(lambda: _matches_any(root, ".codebatch/batches/.*.tmp/leases/*"), "the repair has claimed a lease")
        for number in (first, signal.SIGTERM):  # The second signal does not wait for an item.
            process.send_signal(number)
            wait_until(partial(_has_received_signal, process.pid, number), "the signal is delivered")
        stdout, stderr = process.communicate(timeout=60)
        assert process.returncode == 128 + first, stderr
        assert b"the repair was stopped" in stdout or b"stopped while repairing damage" in stderr
        gate.write_text("open")
    codebatch("run", "tree")
    assert _contents(codebatch) == sound


def _has_received_signal(pid: int, number: int) -> bool:
    """Return whether a signal is no longer pending.

    If two are pending, the handler of the second one begins first.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return not any(int(mask, 16) >> (number - 1) & 1 for mask in re.findall(r"^(?:Sig|Shd)Pnd:\s*(\w+)", status, re.M))


@permissions_bind
def test_read_only_store_is_diagnosed_but_not_repaired(shared: CommandLine) -> None:
    flip(shard_files(shared, "lint")[0])
    before = _contents(shared)
    store = shared.directory / ".codebatch"
    directories = [Path(root) for root, _, _ in os.walk(store)]
    for path in directories:
        path.chmod(0o555)
    bound = CommandLine(shared.directory, prefix=UNPRIVILEGED)
    try:
        assert len(bound("diagnose", "--full", "--json", status=4, has_answer=True).json["damaged"]) == 1
        assert bound("diagnose", "--repair", "--json", status=4).error["code"] == "store_unwritable"
    finally:
        for path in directories:
            path.chmod(0o755)
    assert _contents(shared) == before
