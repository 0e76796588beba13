"""A power cut of a real file system, ext4 in a loop file, in the middle of a run, by FS_IOC_SHUTDOWN.

After the cut, the journal flushes nothing more, and the next mount recovers what the disk has. The test is skipped if
no file system can be mounted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from codebatch.store import layout
from tests.support.command_line import CommandLine, make_many, set_apart
from tests.support.invariants import check_batch, merged
from tests.support.worker_processes import open_latest

FS_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
CUTS = int(os.environ.get("CODEBATCH_PROOF_CUTS", "6"))
FILES = 60
RULE = "[shard]\nfiles_average = 4\nfiles_min = 2\nfiles_max = 8\n"


class LoopDisk:
    """An ext4 file system in a loop file. While it is mounted, it is at `place`."""

    def __init__(self, directory: Path) -> None:
        self._image = directory / "image"
        self.place = directory / "mounted"
        self.place.mkdir()
        os.truncate(os.open(self._image, os.O_CREAT | os.O_WRONLY, 0o600), 64 << 20)

    def make(self) -> str:
        """Make and mount the file system. Return the error message, or an empty text."""
        loop_disk = subprocess.run(["mkfs.ext4", "-q", "-F", self._image], capture_output=True, text=True, check=False)
        return loop_disk.stderr if loop_disk.returncode else self.mount()

    def mount(self) -> str:
        """Mount the file system and recover its journal. Return the error message, or an empty text."""
        mounted = subprocess.run(
            ["mount", "-o", "loop", self._image, self.place], capture_output=True, text=True, check=False
        )
        return mounted.stderr.strip()

    def cut_power(self) -> None:
        """Stop all writes to the disk immediately."""
        fd = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def unmount(self) -> None:
        """Unmount the file system."""
        subprocess.run(["umount", self.place], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LoopDisk]:
    """A mounted file system."""
    (tmp_path / "disk").mkdir()
    loop_disk = LoopDisk(tmp_path / "disk")
    try:
        problem = loop_disk.make()
    except FileNotFoundError as error:
        problem = str(error)
    if problem:
        pytest.skip(f"no file system can be mounted here: {problem}")
    yield loop_disk
    with contextlib.suppress(subprocess.CalledProcessError):
        loop_disk.unmount()


@pytest.mark.slow
def test_run_recovers_from_a_real_power_cut(tmp_path: Path, disk: LoopDisk) -> None:
    make_many(tmp_path / "many", FILES)
    (tmp_path / "codebatch.toml").write_text(RULE, encoding="utf-8")
    codebatch = CommandLine(tmp_path)
    set_apart(codebatch, "many")
    codebatch("run", "many", "--store", "undisturbed", "-q")
    serial = merged(open_latest(tmp_path / "undisturbed"))
    arguments = ("run", "many", "--store", str(disk.place / "store"), "-j", "2", "-q")
    chance = random.Random(2)
    for cut in range(CUTS):
        process = codebatch.start(*arguments, *(("--again",) if cut else ()))
        _wait_for_commits(disk.place, process, before=_registers(disk.place), more=chance.randint(0, 60))
        assert process.poll() is None, "the run ended before the power cut"
        disk.cut_power()
        _kill_all(process)
        disk.unmount()
        assert disk.mount() == ""
        codebatch(*arguments)
        check_batch(open_latest(disk.place / "store"), serial)


def _wait_for_commits(place: Path, process: subprocess.Popen[bytes], *, before: int, more: int) -> None:
    """Wait until there are `more` registers more than `before`, or the process has ended."""
    while process.poll() is None and _registers(place) < before + more:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.005)


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill the coordinator and wait for its workers to end, as a power cut ends all processes."""
    children = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    psutil.wait_procs(children, timeout=10)


def _registers(place: Path) -> int:
    return sum(1 for _ in place.glob(f"store/batches/batch-*/{layout.OUTCOMES}/*"))
