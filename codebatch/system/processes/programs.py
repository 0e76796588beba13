"""Running of a program as a filter: bytes in, bytes out, with limits of time and output size."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from codebatch.system.clock import running_ns

_PIECE_BYTES = 1 << 16
_TAIL_BYTES = 2_000
_DRAIN_SECONDS = 0.2
_LINE_CHARACTERS_MAX = 200


class ProgramFailed(Exception):
    """The error that a program returned no usable output. The message is the reason."""


def run_with_input(arguments: Sequence[str], directory: Path, data: bytes, *, seconds: float, bytes_max: int) -> bytes:
    """Run a program with `data` on standard input, and return its standard output.

    Raises ProgramFailed if the program ends with another status than 0, or exceeds the limit of `seconds` or
    `bytes_max`. The program leads its own session, which is killed at the end.
    """
    try:
        process = subprocess.Popen(
            list(arguments),
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ProgramFailed(f"it cannot be started: {getattr(error, 'strerror', None) or error}") from error
    try:
        output, error_output = _exchange_data(process, data, running_ns() + int(seconds * 1e9), seconds, bytes_max)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        process.wait()
    if process.returncode:
        lines = error_output.decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        raise ProgramFailed(
            f"it ended with status {process.returncode}{': ' + last[:_LINE_CHARACTERS_MAX] if last else ''}"
        )
    return output


def _exchange_data(
    process: subprocess.Popen[bytes], data: bytes, end_ns: int, seconds: float, bytes_max: int
) -> tuple[bytes, bytes]:
    """Write `data` to the program.

    After the program has ended, return its standard output and the end of its standard error.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    output, error_output = bytearray(), bytearray()
    unwritten = memoryview(data)
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(pipe.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        ended_ns: int | None = None
        while selector.get_map():
            if process.poll() is not None and ended_ns is None:
                # Orphaned processes of the program may keep its pipes open, so wait only a limited time after its end.
                ended_ns = running_ns()
            if ended_ns is not None and running_ns() > ended_ns + _DRAIN_SECONDS * 1e9:
                break
            if running_ns() > end_ns:
                raise ProgramFailed(f"it did not end within {seconds:g} seconds")
            for key, _ in selector.select(_DRAIN_SECONDS / 2):
                if key.fileobj is process.stdin:
                    unwritten = _write_available(selector, process.stdin, unwritten)
                elif key.fileobj is process.stdout:
                    _read_available(selector, process.stdout, output)
                    if len(output) > bytes_max:
                        raise ProgramFailed(f"it printed more than {bytes_max:,} bytes")
                else:
                    _read_available(selector, process.stderr, error_output)
                    del error_output[:-_TAIL_BYTES]
    while process.poll() is None:
        if running_ns() > end_ns:
            raise ProgramFailed(f"it did not end within {seconds:g} seconds")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_DRAIN_SECONDS)
    return bytes(output), bytes(error_output)


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
