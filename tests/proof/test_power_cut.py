"""A real file system, ext4 in a loop file, whose power is cut in the middle of a run: FS_IOC_SHUTDOWN.

Nothing that its journal has not flushed is written any more; what is left is what the next mount recovers. Skipped
where no file system can be mounted.
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
    """A file system of its own, at `place` while it is mounted."""

    def __init__(self, directory: Path) -> None:
        self._image = directory / "image"
        self.place = directory / "mounted"
        self.place.mkdir()
        os.truncate(os.open(self._image, os.O_CREAT | os.O_WRONLY, 0o600), 64 << 20)

    def make(self) -> str:
        """Make and mount it; what is wrong where that cannot be."""
        made = subprocess.run(["mkfs.ext4", "-q", "-F", self._image], capture_output=True, text=True, check=False)
        return made.stderr if made.returncode else self.mount()

    def mount(self) -> str:
        """Mount it, recovering its journal; what is wrong where that cannot be."""
        mounted = subprocess.run(
            ["mount", "-o", "loop", self._image, self.place], capture_output=True, text=True, check=False
        )
        return mounted.stderr.strip()

    def cut_power(self) -> None:
        """Stop writing, here and now."""
        fd = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def unmount(self) -> None:
        """Take it away."""
        subprocess.run(["umount", self.place], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LoopDisk]:
    """A mounted one."""
    (tmp_path / "disk").mkdir()
    made = LoopDisk(tmp_path / "disk")
    try:
        problem = made.make()
    except FileNotFoundError as error:
        problem = str(error)
    if problem:
        pytest.skip(f"no file system can be mounted here: {problem}")
    yield made
    with contextlib.suppress(subprocess.CalledProcessError):
        made.unmount()


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
        assert process.poll() is None, "the power was to be cut while it runs"
        disk.cut_power()
        _kill_all(process)
        disk.unmount()
        assert disk.mount() == ""
        codebatch(*arguments)
        check_batch(open_latest(disk.place / "store"), serial)


def _wait_for_commits(place: Path, process: subprocess.Popen[bytes], *, before: int, more: int) -> None:
    """Until so many registers more are there than before."""
    while process.poll() is None and _registers(place) < before + more:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.005)


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """What a power cut does to processes."""
    children = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    psutil.wait_procs(children, timeout=10)


def _registers(place: Path) -> int:
    return sum(1 for _ in place.glob(f"store/batches/batch-*/{layout.OUTCOMES}/*"))
