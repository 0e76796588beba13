"""Tests of the logs of attempts: which part of the output they keep, however it was written."""

from __future__ import annotations

import errno
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from codebatch.system.files.files import RealFiles
from codebatch_workers.commands.log import EVIDENCE_BYTES_MAX, AttemptLogWriter
from codebatch_workers.commands.masking import SecretMasker
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.disk import Disk

ROOT = Path("/logs")


def write_log(writes: list[bytes], bytes_max: int) -> tuple[bytes, AttemptLogWriter]:
    """Write some data to a log. Return its content and the writer."""
    files = RealFiles(Disk().calls())
    files.make_directory(ROOT)
    files.make_directory(ROOT / "scratch")
    log = AttemptLogWriter(files, ROOT / "log", ROOT / "scratch", bytes_max, masker=SecretMasker())
    for data in writes:
        log.write(data)
    log.close()
    return files.read(ROOT / "log"), log


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=40), st.integers(4, 200))
def test_log_retains_the_beginning_and_the_end_and_counts_the_rest(writes: list[bytes], bytes_max: int) -> None:
    output = b"".join(writes)
    log, about = write_log(writes, bytes_max)
    assert about.bytes == len(output)
    assert about.evidence == output[-EVIDENCE_BYTES_MAX:].decode("utf-8", "replace")
    head = bytes_max // 2
    quarter = bytes_max // 4
    tail = max(0, len(output) - head)
    kept = tail if tail <= 2 * quarter else quarter + (tail % quarter or quarter)
    left_out = tail - kept
    line = f"… {left_out:,} bytes omitted …\n" if left_out else ""
    if line and not output[:head].endswith(b"\n"):
        line = f"\n{line}"
    assert log == output[:head] + line.encode() + output[len(output) - kept :][: kept or None] * bool(kept)


def test_output_refused_by_a_full_disk_is_omitted_and_counted() -> None:
    refusing = False

    def watch(operation: Operation) -> Fate | None:
        full = OSError(errno.ENOSPC, "No space left on device")
        return Fate(full, share=0.5) if refusing and operation.call == "write" else None

    files = RealFiles(WatchedCalls(Disk().calls(), watch))
    files.make_directory(ROOT)
    log = AttemptLogWriter(files, ROOT / "log", ROOT / "scratch", 1000, masker=SecretMasker())
    log.write(b"before\n")
    refusing = True
    log.write(b"meanwhile\n")
    refusing = False
    log.write(b"after\n")
    log.close()
    assert files.read(ROOT / "log").decode() == "before\nafter\n… 10 bytes omitted …\n"
    assert log.evidence == "before\nmeanwhile\nafter\n"
    assert log.bytes == 23
    assert log.notes == ("10 bytes of the output could not be written to the log",)


def test_end_of_the_output_that_a_full_disk_refuses_is_noted() -> None:
    refusing = False

    def watch(operation: Operation) -> Fate | None:
        return Fate(OSError(errno.ENOSPC, "full")) if refusing and operation.call == "write" else None

    files = RealFiles(WatchedCalls(Disk().calls(), watch))
    files.make_directory(ROOT)
    files.make_directory(ROOT / "scratch")
    log = AttemptLogWriter(files, ROOT / "log", ROOT / "scratch", 16, masker=SecretMasker())
    log.write(b"12345678abcdef")
    refusing = True
    log.close()
    assert files.read(ROOT / "log") == b"12345678"
    assert log.notes == ("6 bytes of the output could not be written to the log",)


def test_reported_lines_are_in_the_log_and_the_first_five_are_notes() -> None:
    files = RealFiles(Disk().calls())
    files.make_directory(ROOT)
    files.make_directory(ROOT / "scratch")
    log = AttemptLogWriter(files, ROOT / "log", ROOT / "scratch", 10_000, masker=SecretMasker())
    log.write_note("only in the log")
    for text in ("x" * 300, "y" * 301, "3", "4", "5", "6"):
        log.report(text)
    log.close()
    assert log.notes == ("x" * 300, f"{'y' * 300}…", "3", "4", "5")
    lines = files.read(ROOT / "log").decode().splitlines()
    assert lines == [f"codebatch: {text}" for text in ("only in the log", "x" * 300, "y" * 301, "3", "4", "5", "6")]
