"""Programs that run as filters: their output is complete, and neither they nor their children delay the caller long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codebatch.model.program_call import ProgramCall, ProgramFailed
from codebatch.system.processes.proc import child_pids
from codebatch.system.processes.processes import OrphanReaper
from codebatch.system.processes.programs import run_program, run_with_input


def _filter(script: str, data: bytes = b"", *, seconds: float = 30.0) -> bytes:
    return run_with_input(("/bin/sh", "-c", script), Path("/"), data, seconds=seconds, bytes_max=1_000_000)


@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_output_is_complete_although_the_program_is_slow(size: int) -> None:
    assert _filter("cat; sleep 0.7; echo late", b"x" * size) == b"x" * size + b"late\n"
    assert _filter("echo early; exec >&- 2>&-; sleep 0.5", b"x" * size) == b"early\n"


def test_orphaned_child_with_open_pipes_does_not_delay_the_end() -> None:
    assert _filter("sleep 100000 & echo done") == b"done\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux finds processes that left their session")
@pytest.mark.parametrize("start", ["setsid", "env -i setsid", "exec setsid sh -c 'setsid $0 $1 &'"])
@pytest.mark.parametrize("end", ["exit 0", "exit 3", "kill -9 $$"])
def test_process_that_left_the_session_is_killed(tmp_path: Path, start: str, end: str) -> None:
    """The end of the FIFO shows that no process has it open any more."""
    os.mkfifo(tmp_path / "held")
    script = f"({start} sleep 600 >held 2>&1 &); echo x >held; {end}"
    reader = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    call = ProgramCall(arguments=("sh", "-c", script), directory=str(tmp_path), seconds_max=30, output_bytes_max=1)
    before = _children()
    run_program(call)
    assert (os.read(reader, 9), os.read(reader, 9), _children()) == (b"x\n", b"", before)
    os.close(reader)


def _children() -> set[int]:
    return set(child_pids(os.getpid()))


def test_reaping_of_orphans_goes_on_after_a_program() -> None:
    before, outer = _children(), OrphanReaper()
    assert _filter("(setsid sleep 600 >/dev/null 2>&1 &); echo x") == b"x\n"
    with subprocess.Popen(("sh", "-c", "(setsid sleep 600 >/dev/null 2>&1 & echo)"), stdout=subprocess.PIPE) as left:
        left.communicate()
    assert len(_children() - before) == 1
    outer.kill_all()
    assert _children() == before


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo no >&2; echo >&2; exit 3", "it ended with status 3: no"),
        ("exit 1", "it ended with status 1"),
        ("sleep 60", "it did not end within 0.5 seconds"),
        ("exec >&- 2>&- <&-; sleep 60", "it did not end within 0.5 seconds"),
        ("head -c 1000001 /dev/zero", "it printed more than 1,000,000 bytes"),
    ],
)
def test_failure_names_its_reason(script: str, why: str) -> None:
    with pytest.raises(ProgramFailed) as caught:
        _filter(script, seconds=0.5 if "sleep" in script else 30.0)
    assert str(caught.value) == why


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can limit another process")
def test_size_of_written_files_is_limited(tmp_path: Path) -> None:
    script = "sleep 0.1; head -c 2000 /dev/zero > big || exit 7"
    call = ProgramCall(
        arguments=("/bin/sh", "-c", script),
        directory=str(tmp_path),
        seconds_max=30,
        output_bytes_max=1,
        file_bytes_max=1024,
    )
    assert run_program(call).exit_status == 7
    assert (tmp_path / "big").stat().st_size == 1024


@pytest.mark.parametrize("seconds", [1e300, float("inf")])
def test_time_limit_can_be_infinite(seconds: float) -> None:
    assert _filter("exec >&- 2>&-; sleep 0.2", seconds=seconds) == b""
