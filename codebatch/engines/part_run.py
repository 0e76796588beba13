"""The function that engines call: execute a capsule in a process of its own.

The process of the engine imports only this module. It never runs a task, so a crash of a task does not affect it.
"""

from __future__ import annotations

import os
import socket

from codebatch.model.program_call import ProgramCall, ProgramFailed
from codebatch.system.files.locked_directories import ENGINE_PREFIX, locked_directory
from codebatch.system.processes.programs import run_program
from codebatch.system.processes.python_start import python_start

CAPSULE_MODULE = "codebatch.engines.capsule_process"

PART_SECONDS_MAX = 3600.0
"""Maximum time limit of a part. A capsule may have a lower one, which its process enforces."""

ANSWER_BYTES_MAX = 1 << 30
"""Maximum size of an answer."""

_LINES_SHOWN_MAX = 3
_MARGIN_SECONDS = 60.0


class PartFailed(RuntimeError):
    """The error that a process could not execute a capsule. It has only a text, so every engine can transfer it."""


def run_part(capsule: bytes) -> bytes:
    """Execute a capsule in a new process, and return its answer. Raises PartFailed.

    The process leads its own session. It is killed at its time limit, and when this process ends.
    """
    host = socket.gethostname()
    try:
        start = python_start(CAPSULE_MODULE, str(os.getpid()), environment=os.environ)
        with locked_directory(ENGINE_PREFIX) as directory:
            call = ProgramCall(
                arguments=start.arguments,
                environment=start.environment,
                directory=str(directory),
                input=capsule,
                seconds_max=PART_SECONDS_MAX + _MARGIN_SECONDS,
                output_bytes_max=ANSWER_BYTES_MAX,
            )
            end = run_program(call)
    except (ProgramFailed, OSError) as failure:
        raise PartFailed(f"{host}: {failure}") from None
    if end.exit_status:
        lines = end.error_output.decode("utf-8", "replace").strip().splitlines()[-_LINES_SHOWN_MAX:]
        raise PartFailed(f"{host}: the process ended with status {end.exit_status}: {' / '.join(lines)}")
    return end.output
