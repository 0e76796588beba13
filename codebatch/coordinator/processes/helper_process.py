"""A helper program of the user that runs beside a coordinator, with limits of time and output.

The program is untrusted: it may print anything, and it may hang. Output beyond the limit is not read. When the program
ends, its whole session is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

from codebatch.model.text.quantities import human_bytes, human_seconds
from codebatch.system.clock import running_ns
from codebatch.system.processes.processes import describe_end

OUTPUT_BYTES_MAX = 1 << 20
_READ_BYTES = 1 << 16


class HelperProcess:
    """One running helper program."""

    def __init__(
        self, arguments: Sequence[str], input_bytes: bytes, seconds: float, environment: Mapping[str, str]
    ) -> None:
        """Start the program with `input_bytes` on its standard input. It may run for `seconds`. Raises OSError."""
        self._seconds = seconds
        self._deadline_ns = running_ns() + round(seconds * 1e9)
        self._is_late = False
        self._output = b""
        with tempfile.TemporaryFile() as stdin:
            stdin.write(input_bytes)
            stdin.seek(0)
            self._process = subprocess.Popen(
                arguments, stdin=stdin, stdout=subprocess.PIPE, env=dict(environment), start_new_session=True
            )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        os.set_blocking(self._pipe, False)

    def has_ended(self) -> bool:
        """Return whether the program has ended.

        If its time is over or its output is too long, kill it and return True.
        """
        has_ended = self._process.poll() is not None
        self._read_output()
        self._is_late = not has_ended and running_ns() >= self._deadline_ns
        if has_ended or self._is_late or len(self._output) > OUTPUT_BYTES_MAX:
            self.end()
            return True
        return False

    @property
    def output(self) -> bytes | None:
        """The standard output, or None if the program failed or printed too much."""
        return None if self.problem else self._output

    @property
    def problem(self) -> str:
        """Why the program has no output: it failed, took too long or printed too much. Empty if it has one."""
        if len(self._output) > OUTPUT_BYTES_MAX:
            return f"printed more than {human_bytes(OUTPUT_BYTES_MAX)}"
        if self._is_late:
            return f"took longer than {human_seconds(self._seconds)}"
        return describe_end(self._process.returncode) if self._process.returncode else ""

    def end(self) -> None:
        """Kill the program and its process group, and reap the program."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read_output(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while len(self._output) <= OUTPUT_BYTES_MAX and (data := os.read(self._pipe, _READ_BYTES)):
                self._output += data
