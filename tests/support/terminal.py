"""The command line on a terminal that the test is."""

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
    """What a terminal of so many columns was sent on one stream, and what a pipe was on the other."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [SCRIPT, *arguments],
        cwd=codebatch.directory,
        env={**codebatch.environment, "TERM": "xterm", **environment},
        stdin=subprocess.DEVNULL,
        stdout=theirs if shown == "stdout" else subprocess.PIPE,
        stderr=theirs if shown == "stderr" else subprocess.PIPE,
    )
    os.close(theirs)
    sent = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # EIO: the last one that had the terminal open has closed it.
            break
        if not piece:
            break
        sent += piece
    os.close(ours)
    piped = b"".join(filter(None, process.communicate(timeout=DEADLINE_SECONDS)))
    assert process.returncode == status, (sent, piped)
    return sent.decode(), piped.decode()
