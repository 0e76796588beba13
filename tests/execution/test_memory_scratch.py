"""Tests of scratch directories in memory: they are outside the store, and none remains (SPEC.md "Scratch")."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codebatch.system.files.memory_scratch import MEMORY_DIRECTORY, sweep_memory_scratch, try_memory_scratch
from codebatch_workers.lint.python.ruff import RuffRunner
from tests.support.command_line import CommandLine
from tests.support.source_files import source
from tests.support.worker_processes import live_worker_pids

_HOLD = (
    "import sys, time; from pathlib import Path; from codebatch.system.files.memory_scratch import try_memory_scratch; "
)
_HOLD += "held = try_memory_scratch(Path(sys.argv[1])); print(held.path, flush=True); time.sleep(600)"


def test_memory_scratch_is_private_and_removed_with_its_object(tmp_path: Path) -> None:
    scratch = try_memory_scratch(tmp_path)
    assert scratch is not None
    assert scratch.path.stat().st_mode & 0o777 == 0o700
    (scratch.path / "file").write_bytes(b"x")
    del scratch
    assert list(tmp_path.iterdir()) == []


def test_sweep_removes_scratch_of_dead_processes_only(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", _HOLD, tmp_path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    path = Path(process.stdout.readline().decode().strip())
    (path / "deep").mkdir()
    (path / "deep" / "file").write_bytes(b"x")
    assert sweep_memory_scratch(tmp_path) == 0
    assert path.is_dir()
    process.kill()
    process.communicate()
    assert sweep_memory_scratch(tmp_path) == 1
    assert list(tmp_path.iterdir()) == []


def test_sweep_ignores_foreign_files(tmp_path: Path) -> None:
    name = f"codebatch-{os.geteuid()}-"
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    (tmp_path / f"{name}link").symlink_to(target)
    (tmp_path / f"{name}file").write_bytes(b"")
    (tmp_path / f"{name}open").mkdir(mode=0o700)
    (tmp_path / f"{name}open").chmod(0o755)
    (tmp_path / "other").mkdir(mode=0o700)
    before = sorted(tmp_path.iterdir())
    assert sweep_memory_scratch(tmp_path) == 0
    assert sorted(tmp_path.iterdir()) == before


def test_memory_scratch_is_none_without_the_directory(tmp_path: Path) -> None:
    assert try_memory_scratch(tmp_path / "missing") is None
    assert sweep_memory_scratch(tmp_path / "missing") == 0


@pytest.mark.skipif(not MEMORY_DIRECTORY.is_dir(), reason="this system has no shared memory directory")
def test_ruff_continues_in_the_store_if_its_memory_scratch_disappears(tmp_path: Path) -> None:
    text = "import os\nassert (1, 2)\n"
    ruff = RuffRunner(["F401", "F631"], tmp_path, try_memory_scratch())
    before = ruff.check([source("a.py", text)])
    assert ruff.memory_directory is not None
    shutil.rmtree(ruff.memory_directory.path)
    assert [finding.code for finding in before[0]] == ["F401", "F631"]
    # For the same source object, the runner would reuse its answer.
    assert ruff.check([source("a.py", text)]) == before
    assert ruff.memory_directory is None


@pytest.mark.skipif(not MEMORY_DIRECTORY.is_dir(), reason="this system has no shared memory directory")
def test_killed_run_leaves_no_scratch_after_the_next_run(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(80):
        (tree / f"module_{number}.py").write_text("import os\n" + "def f(x):\n    return x + 1\n\n\n" * 100)
    run = CommandLine(tmp_path)
    arguments = ["run", str(tree), "--store", str(tmp_path / "store"), "-j", "1", "-q"]
    process = run.start(*arguments)
    scratch_paths: list[Path] = []
    while not scratch_paths:
        assert process.poll() is None, "the run ended before its worker had scratch in memory"
        scratch_paths = [path for pid in live_worker_pids(tmp_path / "store") for path in _open_memory_paths(pid)]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    run(*arguments)
    assert [path for path in scratch_paths if path.exists()] == []


def _open_memory_paths(pid: int) -> list[Path]:
    """Return the open paths of a process below the memory directory."""
    targets = []
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                targets.append(Path(os.readlink(f"/proc/{pid}/fd/{name}")))
    return [path for path in targets if path.parent == MEMORY_DIRECTORY]
