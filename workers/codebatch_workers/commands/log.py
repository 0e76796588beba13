"""The log of an attempt: all bytes that a command writes, except for bytes in the middle if there are too many."""

from __future__ import annotations

import contextlib
from pathlib import Path

from codebatch.errors import StoreError, StoreUnwritable
from codebatch.system.files.files import FileAppender, StoreFiles
from codebatch.system.files.system_calls import PRIVATE_MODE
from codebatch_workers.commands.masking import SecretMasker

EVIDENCE_BYTES_MAX = 8 * 1024
NOTES_MAX = 5
_NOTE_CHARACTERS_MAX = 300
_COPY_BYTES = 1 << 20
_TAIL_NAMES = ("tail-0", "tail-1")


class AttemptLogWriter:
    """The writer of a log. The first half of the size limit holds the beginning of the output.

    Later output goes to two files in turn, each at most a quarter of the limit. `close` appends their content to the
    log. Nothing is synced. A full disk must not disturb the command. So output that cannot be written is only counted.
    """

    def __init__(
        self,
        files: StoreFiles,
        path: Path | str,
        scratch: Path,
        bytes_max: int,
        *,
        masker: SecretMasker,
        end_bytes: int = EVIDENCE_BYTES_MAX,
    ) -> None:
        """`scratch` is the attempt's directory. The last `end_bytes` bytes of output also stay in memory.

        All that is written passes through `masker`. Raises StoreUnwritable.
        """
        self._masker = masker
        self._files = files
        self._scratch = scratch
        try:
            self._head_file = files.open_append(
                path, directory_mode=PRIVATE_MODE
            )  # A user may have removed the directory.
        except FileExistsError:  # An earlier attempt had the same lease, but a crash of the machine lost this lease.
            files.remove(path)
            self._head_file = files.open_append(path, directory_mode=PRIVATE_MODE)
        self._head_bytes_left = bytes_max // 2
        self._tail_bytes = bytes_max // 4
        self._tails: list[tuple[Path, FileAppender, int]] = []
        self._tails_started = 0
        self._recent = b""
        self._end_bytes = end_bytes
        self._omitted_bytes = 0
        self._unwritten_bytes = 0
        self._ends_line = True
        self._notes: list[str] = []
        self.bytes = 0

    @property
    def evidence(self) -> str:
        """The last part of the output as text, at most EVIDENCE_BYTES."""
        self._flush_held()
        return self._recent[-EVIDENCE_BYTES_MAX:].decode("utf-8", "replace")

    @property
    def output_end(self) -> bytes:
        """The last `end_bytes` bytes of the output, from memory."""
        self._flush_held()
        return self._recent

    def write_note(self, text: str) -> None:
        """Append a line of codebatch to the log."""
        self._flush_held()
        self.write(f"codebatch: {text}\n".encode("utf-8", "surrogateescape"))

    def report(self, text: str) -> None:
        """Append a line of codebatch to the log. The line is also a note of the outcome, which people see."""
        self.write_note(text)
        text = self._masker.mask_text(text)
        if len(self._notes) < NOTES_MAX:
            self._notes.append(text if len(text) <= _NOTE_CHARACTERS_MAX else f"{text[:_NOTE_CHARACTERS_MAX]}…")

    @property
    def notes(self) -> tuple[str, ...]:
        """The first reported notes, at most NOTES_MAX, and one about output that could not be written."""
        lost = f"{self._unwritten_bytes:,} bytes of the output could not be written to the log"
        return (*self._notes, lost) if self._unwritten_bytes else tuple(self._notes)

    def write(self, data: bytes) -> None:
        """Append output to the log. When the log has reached half the limit, write to the files for the end instead."""
        self.bytes += len(data)
        self._append_masked(self._masker.feed(data))

    def _flush_held(self) -> None:
        self._append_masked(self._masker.flush())

    def _append_masked(self, data: bytes) -> None:
        self._recent = (
            (self._recent + data)[-self._end_bytes :] if len(data) < self._end_bytes else data[-self._end_bytes :]
        )
        head, overflow = data[: self._head_bytes_left], data[self._head_bytes_left :]
        if head:
            self._head_bytes_left -= len(head)
            self._append_to_log(head)
        while overflow:
            overflow = self._add_to_tail(overflow)

    def close(self) -> None:
        """Complete the log: append a line with the number of omitted bytes, then the end of the output."""
        self._flush_held()
        left_bytes = sum(size for _, _, size in self._tails)
        # The disk may be full, or the scratch directory may have been removed.
        with contextlib.suppress(StoreError, FileNotFoundError):
            if self._omitted_bytes:
                line = f"… {self._omitted_bytes:,} bytes omitted …\n"
                self._head_file.append((line if self._ends_line else f"\n{line}").encode())
            for path, _, size in self._tails:
                for offset in range(0, size, _COPY_BYTES):
                    data = self._files.read_range(path, offset, min(_COPY_BYTES, size - offset))
                    self._head_file.append(data)
                    left_bytes -= len(data)
        self._unwritten_bytes += left_bytes
        for appender in (self._head_file, *(tail for _, tail, _ in self._tails)):
            appender.close()

    def _append_to_log(self, data: bytes) -> None:
        try:
            self._head_file.append(data)
            self._ends_line = data.endswith(b"\n")
        except StoreUnwritable:
            self._note_unwritten(data)

    def _note_unwritten(self, data: bytes) -> None:
        self._omitted_bytes += len(data)
        self._unwritten_bytes += len(data)

    def _add_to_tail(self, data: bytes) -> bytes:
        """Append as many bytes as fit to the current file for the end of the output. Return the remaining bytes."""
        is_full = not self._tails or self._tails[-1][2] >= self._tail_bytes
        if is_full and not self._start_tail():
            self._note_unwritten(data)
            return b""
        path, appender, size = self._tails[-1]
        part = data[: self._tail_bytes - size]
        try:
            appender.append(part)
        except StoreUnwritable:
            self._note_unwritten(part)
        else:
            self._tails[-1] = (path, appender, size + len(part))
        return data[len(part) :]

    def _start_tail(self) -> bool:
        """Start a new file for the end of the output, and remove the older of two. Return false if the write fails."""
        if len(self._tails) == len(_TAIL_NAMES):
            path, appender, size = self._tails.pop(0)
            appender.close()
            self._omitted_bytes += size
        path = self._scratch / _TAIL_NAMES[self._tails_started % len(_TAIL_NAMES)]
        try:
            self._files.remove(path)
            self._tails.append((path, self._files.open_append(path), 0))
        except StoreUnwritable:
            return False
        self._tails_started += 1
        return True
