"""A Dask scheduler and its workers, as processes on the loopback interface."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tests.engines.waiting import wait_until


class DaskCluster:
    """A scheduler and workers with one thread each. All processes end with the `with` block."""

    def __init__(self, directory: Path, *arguments: str, protocol: str = "tls", allowed_failures: int = 3) -> None:
        self.file = directory / "scheduler.json"
        self.url = f"dask:{self.file}"
        self._directory = directory
        self._arguments = arguments
        self._environment = {
            **os.environ,
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures),
            "DASK_DISTRIBUTED__WORKER__LIFETIME__RESTART": "false",
        }
        self._processes: list[subprocess.Popen[bytes]] = []
        self.nannies: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start(
            "scheduler", "--host", f"{protocol}://127.0.0.1", "--port", "0", "--no-show", "--scheduler-file", self.file
        )
        wait_until(lambda: self.file.exists() and self.file.read_text().endswith("\n}"))

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker without a nanny, so that it does not start again after its death."""
        options = ("--nthreads", "1", "--nworkers", "1", "--no-nanny", "--local-directory", self._directory)
        return self._start("worker", "--scheduler-file", self.file, *options)

    def start_nanny(self) -> subprocess.Popen[bytes]:
        """Start a worker with a nanny, which starts the worker again after its death."""
        options = ("--nthreads", "1", "--nworkers", "1", "--nanny", "--local-directory", self._directory)
        nanny = self._start("worker", "--scheduler-file", self.file, *options)
        self.nannies.append(nanny)
        return nanny

    def end(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def _start(self, command: str, *arguments: str | Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", command, "--no-dashboard", *map(str, arguments), *self._arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environment,
        )
        self._processes.append(process)
        return process

    def __enter__(self) -> DaskCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
