"""Tests of the contract between commands and their supervisor, for real commands and their simulated twins.

Each case is a script with the acts that the twin simulates.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from codebatch.protocol.launch import ATTEMPT_VARIABLE
from codebatch.system.processes import proc
from codebatch.system.processes.command_processes import (
    CommandStarter,
    ProcessEnded,
    ProcessNotStarted,
    ProcessStart,
    RunningProcess,
)
from codebatch.system.processes.memory import kill_marked
from codebatch.system.processes.processes import set_subreaper
from codebatch_workers.commands.process import RealCommandStarter
from tests.support.commands import Act, Exits, Holds, Ignores, Leaves, Machine, Takes, TwinCommands, Writes

MB = 1 << 20
LONG = 1000.0
PATIENCE_SECONDS = 30.0


class Stage:
    """The place where commands are started, real ones or twins."""

    def __init__(self, directory: Path, is_real: bool) -> None:
        self.is_real = is_real
        self._directory = directory
        self._now_ns = 0
        self._programs: dict[tuple[str, ...], Sequence[Act]] = {}
        self._machine = Machine(self._programs, lambda: self._now_ns, self._pass)
        self._commands: CommandStarter = RealCommandStarter() if is_real else TwinCommands(self._machine)
        self._marks = 0

    def start(self, script: str, *acts: Act, stdin: Path | None = None) -> RunningProcess:
        """Start a script. Its twin performs the given acts."""
        arguments = ("/bin/sh", "-c", script)
        self._programs[arguments] = acts
        return self.start_program(*arguments, stdin=stdin)

    def start_program(
        self, *arguments: str, stdin: Path | None = None, directory: Path | None = None, **variables: str
    ) -> RunningProcess:
        """Start a program by its arguments."""
        self._marks += 1
        mark = f"{os.getpid()}.{self._directory.name}.{self._marks}"
        environment = {**os.environ, ATTEMPT_VARIABLE: mark, **variables}
        return self._commands.start(
            ProcessStart(
                arguments=arguments,
                directory=directory or self._directory,
                environment=environment,
                stdin=stdin,
                mark=mark,
            )
        )

    def read_all(self, running: RunningProcess) -> bytes:
        """Return everything that a command writes until it ends."""
        output = bytearray()
        self.wait(running, running.has_ended, output)
        while data := running.read():
            output += data
        return bytes(output)

    def wait(self, running: RunningProcess, condition: Callable[[], bool], output: bytearray | None = None) -> None:
        """Wait until a condition of a command holds."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline
            running.wait(0.05, None)
            data = running.read()
            if output is not None:
                output += data

    def wait_output(self, running: RunningProcess, expected: bytes) -> None:
        """Wait until a command has written some bytes."""
        output = bytearray()
        self.wait(running, lambda: expected in output, output)

    def _pass(self, seconds: float, condition: Callable[[], bool]) -> None:
        end_ns = self._now_ns + round(seconds * 1e9)
        while not condition() and self._now_ns < end_ns:
            self._now_ns += 1_000_000


@pytest.fixture(params=["real", "twin"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    set_subreaper(True)
    yield Stage(tmp_path, request.param == "real")
    set_subreaper(False)


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Stage]:
    set_subreaper(True)
    yield Stage(tmp_path, True)
    set_subreaper(False)


def ended(running: RunningProcess) -> int:
    """Close a command that has ended. Return its exit status."""
    end = running.close()
    assert isinstance(end, ProcessEnded)
    return end.exit_status


def test_exit_status_is_reported(stage: Stage) -> None:
    running = stage.start("exit 7", Exits(7))
    assert stage.read_all(running) == b""
    assert ended(running) == 7


def test_signal_is_reported_as_a_negative_status(stage: Stage) -> None:
    running = stage.start("kill -SEGV $$", Exits(-signal.SIGSEGV))
    stage.read_all(running)
    assert ended(running) == -signal.SIGSEGV


def test_output_before_the_end_is_read_completely(stage: Stage) -> None:
    running = stage.start("echo out; echo err >&2; echo out", Writes(b"out\nerr\nout\n"))
    assert stage.read_all(running) == b"out\nerr\nout\n"
    assert ended(running) == 0


def test_silent_command_has_no_output_and_runs(stage: Stage) -> None:
    running = stage.start("sleep 1000", Takes(LONG))
    running.wait(0.01, None)
    assert (running.read(), running.has_ended()) == (b"", False)
    running.kill_and_wait(everything=True, seconds=PATIENCE_SECONDS)
    assert ended(running) == -signal.SIGKILL


def test_command_that_closes_its_output_continues(stage: Stage) -> None:
    running = stage.start("echo bye; exec >&- 2>&-; sleep 0.2; exit 3", Writes(b"bye\n"), Takes(0.2), Exits(3))
    stage.wait_output(running, b"bye\n")
    running.wait(0.01, None)
    assert running.read() == b""
    assert not running.has_ended()
    stage.read_all(running)
    assert ended(running) == 3


def test_signal_to_the_group_ends_the_command(stage: Stage) -> None:
    running = stage.start("echo on; sleep 1000; true", Writes(b"on\n"), Takes(LONG))
    stage.wait_output(running, b"on\n")
    running.signal_group(signal.SIGTERM)
    stage.read_all(running)
    assert ended(running) == -signal.SIGTERM


def test_command_that_ignores_the_signal_is_killed(stage: Stage) -> None:
    script = "trap '' TERM; echo on; while :; do sleep 0.1; done"
    running = stage.start(script, Ignores(signal.SIGTERM), Writes(b"on\n"), Takes(LONG))
    stage.wait_output(running, b"on\n")
    running.signal_group(signal.SIGTERM)
    running.wait(0.1, None)
    assert not running.has_ended()
    assert running.kill_and_wait(everything=True, seconds=PATIENCE_SECONDS) == []
    assert running.has_ended()
    assert ended(running) == -signal.SIGKILL


def test_background_process_does_not_delay_the_end_of_a_command(stage: Stage) -> None:
    running = stage.start("sleep 1000 & echo started", Leaves("sleep"), Writes(b"started\n"))
    assert stage.read_all(running) == b"started\n"
    assert running.has_other_processes()
    assert running.kill_and_wait(everything=False, seconds=PATIENCE_SECONDS) == []
    assert not running.has_other_processes(), "a process of the command's session is left"
    assert ended(running) == 0


def test_process_in_a_session_of_its_own_is_left_and_named(stage: Stage) -> None:
    running = stage.start("setsid sleep 1000 & sleep 0.1", Leaves("sleep", is_detached=True), Takes(0.1))
    stage.read_all(running)
    (left,) = running.kill_and_wait(everything=False, seconds=PATIENCE_SECONDS)
    assert left.endswith(" sleep")
    assert not running.has_other_processes()
    assert running.kill_and_wait(everything=True, seconds=PATIENCE_SECONDS) == []
    assert ended(running) == 0


def test_detached_processes_can_all_be_ended(stage: Stage) -> None:
    script = "(setsid sh -c 'sleep 1000 & setsid sleep 1000' &) ; sleep 0.2"
    running = stage.start(script, Leaves("sh", is_detached=True), Leaves("sleep", is_detached=True), Takes(0.2))
    stage.read_all(running)
    assert running.kill_and_wait(everything=True, seconds=PATIENCE_SECONDS) == []
    assert running.kill_and_wait(everything=False, seconds=PATIENCE_SECONDS) == [], "a process was left"
    assert ended(running) == 0


def test_memory_includes_all_started_processes(stage: Stage) -> None:
    hold = f"{sys.executable} -c 'x = bytearray([1]) * {40 * MB}; print(1, flush=True); input()'"
    running = stage.start(f"sleep 1000 | {hold}", Holds(41 * MB), Writes(b"1\n"), Takes(LONG))
    stage.wait_output(running, b"1\n")
    assert 40 * MB < running.resident_bytes() < 400 * MB
    running.kill_and_wait(everything=True, seconds=PATIENCE_SECONDS)
    running.close()


def test_missing_program_is_not_started(stage: Stage) -> None:
    with pytest.raises(ProcessNotStarted, match="no-such-program: No such file or directory"):
        stage.start_program("no-such-program")


def test_running_command_can_be_released(stage: Stage) -> None:
    running = stage.start("exec sleep 1000", Takes(LONG))
    assert running.close() is None
    running.signal_group(signal.SIGKILL)


# -- Properties that only processes have ------------------------------------------------------------------------------


def test_missing_directory_is_reported(real: Stage, tmp_path: Path) -> None:
    with pytest.raises(ProcessNotStarted, match="gone: No such file or directory"):
        real.start_program("true", directory=tmp_path / "gone")


def test_file_that_is_not_a_program_is_reported(real: Stage, tmp_path: Path) -> None:
    with pytest.raises(ProcessNotStarted, match="Permission denied"):
        real.start_program(str(tmp_path))


def test_program_is_searched_on_the_path_of_the_command(real: Stage, tmp_path: Path) -> None:
    """Search as execvpe(3) does: skip files that cannot be executed, and report them if no other program is found."""
    for name, mode in (("plain", 0o644), ("runs", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text(f"#!/bin/sh\necho {name} from $PWD\n")
        (tmp_path / name / "tool").chmod(mode)
    (tmp_path / "tool").write_text("never")
    running = real.start_program("tool", PATH=f"{tmp_path}/gone:{tmp_path}/plain:runs:/bin")
    assert real.read_all(running) == f"runs from {tmp_path}\n".encode()
    assert ended(running) == 0
    for path, why in ((f"{tmp_path}/gone", "No such file"), (f"{tmp_path}/gone:{tmp_path}/plain", "Permission denied")):
        with pytest.raises(ProcessNotStarted, match=f"^tool: {why}"):
            real.start_program("tool", PATH=path)
    assert Path.cwd() != tmp_path


def test_null_byte_in_an_argument_is_reported(real: Stage) -> None:
    with pytest.raises(ProcessNotStarted, match="null byte"):
        real.start_program("echo", "a\0b")


def test_oversized_argument_is_reported(real: Stage) -> None:
    with pytest.raises(ProcessNotStarted, match="too long"):
        real.start_program("echo", "a" * (200 << 10))


def test_standard_input_is_empty_by_default(real: Stage) -> None:
    running = real.start("cat; echo end")
    assert real.read_all(running) == b"end\n"
    assert ended(running) == 0


def test_fifo_without_a_writer_is_empty_input(real: Stage, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    running = real.start("cat; echo end", stdin=tmp_path / "fifo")
    assert real.read_all(running) == b"end\n"
    assert ended(running) == 0


def test_command_inherits_no_descriptors_or_signal_masks(real: Stage) -> None:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    # A shell has the ends of a pipe open while it makes one, so the script uses none.
    running = real.start("ls /proc/$$/fd; exec grep -E '^(SigIgn|SigBlk)' /proc/self/status")
    output = real.read_all(running)
    os.close(descriptor)
    *inherited, blocked, ignored = output.split(b"\n")[:-1]
    assert inherited == [b"0", b"1", b"2"]
    # Signals ignored before stay ignored, as nohup(1) requires. The two that Python ignores must not be inherited.
    ours = Path("/proc/self/status").read_text(encoding="ascii").partition("SigIgn:\t")[2][:16]
    pythons = {signal.SIGPIPE, signal.SIGXFSZ}
    # The C library reserves two signals that no program can use. posix_spawn(3) ignores them.
    usable = sum(1 << (number - 1) for number in signal.valid_signals() - pythons)
    assert [int(mask.split()[1], 16) & usable for mask in (blocked, ignored)] == [0, int(ours, 16) & usable]
    assert ended(running) == 0


def test_command_has_no_controlling_terminal(real: Stage) -> None:
    running = real.start("tty; (: < /dev/tty) 2>/dev/null || echo none")
    assert real.read_all(running) == b"not a tty\nnone\n"
    running.close()


def test_a_storm_of_forks_is_ended(real: Stage) -> None:
    script = "for i in $(seq 50); do (setsid sh -c 'while :; do sleep 0.05; done' &); done; echo on; sleep 1000"
    running = real.start(script)
    real.wait_output(running, b"on\n")
    running.signal_group(signal.SIGTERM)
    assert running.kill_and_wait(everything=True, seconds=PATIENCE_SECONDS) == []
    assert running.has_ended()
    assert not proc.child_pids(running.pid)
    running.close()
    left = [proc.process_stat(pid) for pid in proc.child_pids(os.getpid()) if proc.process_name(pid) in ("sh", "sleep")]
    assert all(one is None or one.is_zombie for one in left)


def test_attempt_ignores_processes_of_an_earlier_attempt(real: Stage) -> None:
    first = real.start("setsid sleep 1000 & sleep 0.1")
    real.read_all(first)
    (left,) = first.kill_and_wait(everything=False, seconds=PATIENCE_SECONDS)
    first.close()
    second = real.start("sleep 1000")
    assert second.kill_and_wait(everything=True, seconds=PATIENCE_SECONDS) == []
    second.close()
    pid = int(left.split()[0])
    status = proc.process_stat(pid)
    assert status is not None
    assert not status.is_zombie
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_started_processes_inherit_the_attempt_mark(real: Stage) -> None:
    running = real.start("setsid sh -c 'sleep 1000 & echo on; wait' & wait")
    real.wait_output(running, b"on\n")
    variable = ATTEMPT_VARIABLE.encode()
    (mark,) = [value for name, value in proc.process_environment(running.pid) if name == variable]
    killed, deadline = 0, time.monotonic() + PATIENCE_SECONDS
    while killed < 3 and time.monotonic() < deadline:  # During execve(2), a process has no environment.
        killed += kill_marked(ATTEMPT_VARIABLE, {mark.decode()})
    assert killed >= 3
    real.read_all(running)
    assert ended(running) == -signal.SIGKILL


def test_cpu_time_is_reported(real: Stage) -> None:
    running = real.start(f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.2: pass'")
    real.read_all(running)
    end = running.close()
    assert end is not None
    assert 0.2 <= end.cpu_seconds < PATIENCE_SECONDS
