"""Running of a program: bytes in, bytes out, with limits of time and output size."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from codebatch.model.program_call import ProgramCall, ProgramEnd, ProgramFailed
from codebatch.system.clock import running_ns
from codebatch.system.processes.environment import original_environment
from codebatch.system.processes.process_timer import ProcessTimer
from codebatch.system.processes.processes import has_ended, killing_orphans

_PIECE_BYTES = 1 << 16
_TAIL_BYTES = 4_000
_DRAIN_SECONDS = 0.2
_POLL_SECONDS_MAX = 0.05
_LINE_CHARACTERS_MAX = 200


def run_with_input(arguments: Sequence[str], directory: Path, data: bytes, *, seconds: float, bytes_max: int) -> bytes:
    """Run a program with `data` on standard input, and return its standard output.

    Raises ProgramFailed as `run_program`, and if the program ends with another status than 0.
    """
    end = run_program(
        ProgramCall(
            arguments=arguments,
            directory=str(directory),
            environment=original_environment(),
            input=data,
            seconds_max=seconds,
            output_bytes_max=bytes_max,
        )
    )
    if end.exit_status:
        lines = end.error_output.decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        raise ProgramFailed(
            f"it ended with status {end.exit_status}{': ' + last[:_LINE_CHARACTERS_MAX] if last else ''}"
        )
    return end.output


def run_program(call: ProgramCall) -> ProgramEnd:
    """Run a program until it ends. It leads its own session, which is killed at the end.

    In the main thread, processes that have left this session are killed too. Raises ProgramFailed if the program cannot
    be started or exceeds a limit.
    """
    with killing_orphans():
        return _run_program(call)


def _run_program(call: ProgramCall) -> ProgramEnd:
    try:
        process = subprocess.Popen(
            list(call.arguments),
            cwd=call.directory,
            env=call.environment,
            stdin=subprocess.PIPE if call.input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ProgramFailed(f"it cannot be started: {getattr(error, 'strerror', None) or error}") from error
    try:
        if call.file_bytes_max is not None and sys.platform == "linux":
            with contextlib.suppress(OSError, ValueError):  # It ended, has more rights, or a lower limit already.
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (call.file_bytes_max, call.file_bytes_max))
        output, error_output = _exchange_data(process, call)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        process.wait()
    return ProgramEnd(process.returncode, output, error_output)


def _exchange_data(process: subprocess.Popen[bytes], call: ProgramCall) -> tuple[bytes, bytes]:
    """Write the input to the program.

    After the program has ended, return its standard output and the end of its standard error.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    output, error_output = bytearray(), bytearray()
    unwritten = memoryview(call.input)
    timer = ProcessTimer(process.pid)
    with selectors.DefaultSelector() as selector:
        _register_pipes(selector, process)
        ended_ns: int | None = None
        while selector.get_map():
            if ended_ns is None and has_ended(process):
                # Orphaned processes of the program may keep its pipes open, so wait only a limited time after its end.
                ended_ns = running_ns()
            if ended_ns is not None and running_ns() > ended_ns + _DRAIN_SECONDS * 1e9:
                break
            if timer.seconds() > call.seconds_max:
                raise _overdue_error(call, error_output)
            for key, _ in selector.select(_DRAIN_SECONDS / 2):
                if process.stdin is not None and key.fileobj is process.stdin:
                    unwritten = _write_available(selector, process.stdin, unwritten)
                elif key.fileobj is process.stdout:
                    _read_available(selector, process.stdout, output)
                    if len(output) > call.output_bytes_max:
                        raise ProgramFailed(f"it printed more than {call.output_bytes_max:,} bytes")
                else:
                    _read_available(selector, process.stderr, error_output)
                    del error_output[:-_TAIL_BYTES]
    poll_seconds = 0.0005
    while not has_ended(process):
        if timer.seconds() > call.seconds_max:
            raise _overdue_error(call, error_output)
        time.sleep(poll_seconds)
        poll_seconds = min(2 * poll_seconds, _POLL_SECONDS_MAX)
    return bytes(output), bytes(error_output)


def _register_pipes(selector: selectors.BaseSelector, process: subprocess.Popen[bytes]) -> None:
    for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
        os.set_blocking(pipe.fileno(), False)
        selector.register(pipe, selectors.EVENT_WRITE if pipe is process.stdin else selectors.EVENT_READ)


def _overdue_error(call: ProgramCall, error_output: bytearray) -> ProgramFailed:
    return ProgramFailed(f"it did not end within {call.seconds_max:g} seconds", bytes(error_output), is_overdue=True)


def _write_available(selector: selectors.BaseSelector, pipe: IO[bytes], unwritten: memoryview) -> memoryview:
    """Write as many bytes as the pipe accepts, and return the rest.

    If the program has closed its input, the rest is dropped.
    """
    try:
        unwritten = unwritten[os.write(pipe.fileno(), unwritten[:_PIECE_BYTES]) :] if unwritten else unwritten
    except BlockingIOError:
        return unwritten
    except BrokenPipeError:
        unwritten = unwritten[:0]
    if not unwritten:
        selector.unregister(pipe)
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
    return unwritten


def _read_available(selector: selectors.BaseSelector, pipe: IO[bytes], into: bytearray) -> None:
    try:
        piece = os.read(pipe.fileno(), _PIECE_BYTES)
    except BlockingIOError:
        return
    into += piece
    if not piece:
        selector.unregister(pipe)
