"""The command line on a pseudo-terminal that the test reads."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import termios
from typing import Literal

from tests.support.command_line import DEADLINE_SECONDS, SCRIPT, CommandLine


def on_a_terminal(
    codebatch: CommandLine,
    *arguments: str,
    shown: Literal["stdout", "stderr"] = "stdout",
    columns: int = 100,
    status: int = 0,
    **environment: str,
) -> tuple[str, str]:
    """Run a command with one output stream on a terminal. Return the output on the terminal and on the other stream."""
    test_end, command_end = os.openpty()
    fcntl.ioctl(command_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [SCRIPT, *arguments],
        cwd=codebatch.directory,
        env={**codebatch.environment, "TERM": "xterm", **environment},
        stdin=subprocess.DEVNULL,
        stdout=command_end if shown == "stdout" else subprocess.PIPE,
        stderr=command_end if shown == "stderr" else subprocess.PIPE,
    )
    os.close(command_end)
    terminal_output = b""
    while True:
        try:
            chunk = os.read(test_end, 65536)
        except OSError:  # EIO: all processes have closed the terminal.
            break
        if not chunk:
            break
        terminal_output += chunk
    os.close(test_end)
    pipe_output = b"".join(filter(None, process.communicate(timeout=DEADLINE_SECONDS)))
    assert process.returncode == status, (terminal_output, pipe_output)
    return terminal_output.decode(), pipe_output.decode()
