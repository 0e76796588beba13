"""Asking a program: bytes in, bytes out, within a time and a size, whatever it does."""

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
    """A program did not answer; the text says why."""


def run_with_input(arguments: Sequence[str], directory: Path, data: bytes, *, seconds: float, bytes_max: int) -> bytes:
    """What a program prints that is given some bytes, and ends with status 0. Raises ProgramFailed.

    It leads a session of its own, of which nothing lives on.
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
        printed, told = _talk(process, data, running_ns() + int(seconds * 1e9), seconds, bytes_max)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        process.wait()
    if process.returncode:
        lines = told.decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        raise ProgramFailed(
            f"it ended with status {process.returncode}{': ' + last[:_LINE_CHARACTERS_MAX] if last else ''}"
        )
    return printed


def _talk(
    process: subprocess.Popen[bytes], data: bytes, end_ns: int, seconds: float, bytes_max: int
) -> tuple[bytes, bytes]:
    """What it prints, and the end of what it says on standard error, until it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    printed, told = bytearray(), bytearray()
    left = memoryview(data)
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(pipe.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        ended_ns: int | None = None
        while selector.get_map():
            if process.poll() is not None and ended_ns is None:
                ended_ns = running_ns()  # What it left behind may hold its pipes.
            if ended_ns is not None and running_ns() > ended_ns + _DRAIN_SECONDS * 1e9:
                break
            if running_ns() > end_ns:
                raise ProgramFailed(f"it did not end within {seconds:g} seconds")
            for key, _ in selector.select(_DRAIN_SECONDS / 2):
                if key.fileobj is process.stdin:
                    left = _written(selector, process.stdin, left)
                elif key.fileobj is process.stdout:
                    _read(selector, process.stdout, printed)
                    if len(printed) > bytes_max:
                        raise ProgramFailed(f"it printed more than {bytes_max:,} bytes")
                else:
                    _read(selector, process.stderr, told)
                    del told[:-_TAIL_BYTES]
    while process.poll() is None:
        if running_ns() > end_ns:
            raise ProgramFailed(f"it did not end within {seconds:g} seconds")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_DRAIN_SECONDS)
    return bytes(printed), bytes(told)


def _written(selector: selectors.BaseSelector, pipe: IO[bytes], left: memoryview) -> memoryview:
    """What is left to be written; it need not be read."""
    try:
        left = left[os.write(pipe.fileno(), left[:_PIECE_BYTES]) :] if left else left
    except BlockingIOError:
        return left
    except BrokenPipeError:
        left = left[:0]
    if not left:
        selector.unregister(pipe)
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
    return left


def _read(selector: selectors.BaseSelector, pipe: IO[bytes], into: bytearray) -> None:
    try:
        piece = os.read(pipe.fileno(), _PIECE_BYTES)
    except BlockingIOError:
        return
    into += piece
    if not piece:
        selector.unregister(pipe)
