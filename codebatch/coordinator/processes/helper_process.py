"""A program that helps a coordinator: run beside it, for so long at most, and heard when it is no more.

It may print whatever it likes, and hang: more than a little is not read, and its session ends with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

from codebatch.system.clock import running_ns

OUTPUT_BYTES_MAX = 1 << 20
_READ_BYTES = 1 << 16


class HelperProcess:
    """One such program."""

    def __init__(self, arguments: Sequence[str], given: bytes, seconds: float, environment: Mapping[str, str]) -> None:
        """Start it, with something on its standard input. Raises OSError."""
        self._deadline_ns = running_ns() + round(seconds * 1e9)
        self._output = b""
        with tempfile.TemporaryFile() as stdin:
            stdin.write(given)
            stdin.seek(0)
            self._process = subprocess.Popen(
                arguments, stdin=stdin, stdout=subprocess.PIPE, env=dict(environment), start_new_session=True
            )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        os.set_blocking(self._pipe, False)

    def has_ended(self) -> bool:
        """Whether it is no more; where its time is over, or it printed too much, it is ended."""
        has_ended = self._process.poll() is not None
        self._read()
        if has_ended or running_ns() >= self._deadline_ns or len(self._output) > OUTPUT_BYTES_MAX:
            self.end()
            return True
        return False

    @property
    def output(self) -> bytes | None:
        """What it printed, None where it did not succeed."""
        is_fit = self._process.returncode == 0 and len(self._output) <= OUTPUT_BYTES_MAX
        return self._output if is_fit else None

    def end(self) -> None:
        """Have it be no more, and its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while len(self._output) <= OUTPUT_BYTES_MAX and (data := os.read(self._pipe, _READ_BYTES)):
                self._output += data
