"""Calls of the programs of command tasks (codebatch/plugins/command_tasks.py)."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from codebatch.errors import ToolMismatch
from codebatch.model.command_table import CommandTable, CommandTaskLocation
from codebatch.model.program_call import ProgramCall, ProgramEnd, ProgramFailed
from codebatch.plugins.command_tasks import command_environment
from codebatch.system.files.regular_files import file_fingerprint, read_regular
from codebatch.system.processes import proc
from codebatch.system.processes.programs import run_program

OUTPUT_BYTES_MAX = 64 << 20
REPORT_BYTES_MAX = 256 << 20
WRITTEN_BYTES_MAX = 1 << 30
"""Maximum size of a file that a program writes. Its scratch directory can be in memory."""


class CommandProgram:
    """The program of a command task."""

    def __init__(self, name: str, location: CommandTaskLocation, restart_limit: Callable[[], None]) -> None:
        """`restart_limit` restarts the time limit of the current step of the worker."""
        self._name = name
        self._location = location
        self._restart_limit = restart_limit

    @property
    def table(self) -> CommandTable:
        """The settings of the task."""
        return self._location.table

    @property
    def project(self) -> str:
        """The directory of the configuration."""
        return self._location.project

    def run(self, arguments: Sequence[bytes], directory: bytes, home: bytes, report: bytes | None) -> ProgramEnd:
        """Run the program (`TaskProgram.run`)."""
        self._check_unchanged()
        self._restart_limit()
        call = ProgramCall(
            arguments=[self._location.program, *arguments],
            directory=os.fsdecode(directory),
            environment=command_environment(os.environ, self.table, os.fsdecode(home)),
            seconds_max=self._location.call_seconds,
            output_bytes_max=OUTPUT_BYTES_MAX,
            file_bytes_max=WRITTEN_BYTES_MAX,
        )
        try:
            end = run_program(call)
        finally:
            _continue_coordinator()
        self._check_unchanged()
        if report is None:
            return end
        try:
            output = read_regular(Path(os.fsdecode(report)), bytes_max=REPORT_BYTES_MAX, is_link_followed=False)
        except OSError as error:
            reason = f"it ended with status {end.exit_status}, and its report cannot be read: {error.strerror}"
            raise ProgramFailed(reason, end.error_output) from error
        return replace(end, output=output)

    def _check_unchanged(self) -> None:
        """Raise ToolMismatch if a program that the command names is not the one whose content is part of the plan."""
        for path, state in self._location.states.items():
            with contextlib.suppress(OSError):
                if file_fingerprint(path) == state:
                    continue
            raise ToolMismatch(
                f"the program {path} of the task {self._name!r} was replaced during the run",
                hint="start a new run: codebatch run",
            )


def _continue_coordinator() -> None:
    """Continue the coordinator if the program has stopped it.

    If Ctrl-Z has stopped it, it has stopped this worker first. So this code does not run before both are continued.
    """
    parent = proc.process_stat(os.getppid())
    if parent is not None and parent.is_stopped and not parent.is_traced:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(os.getppid(), signal.SIGCONT)
