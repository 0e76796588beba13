"""Interrupted batches of shell commands: the program that runs them is killed, or cancels its commands."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from bench.graphs import Graph, Job, Span, sleeps, witnessed
from bench.measuring import BrokenSideError, Side, environment
from bench.rows import Row, Target, figure_row
from bench.runners import CODEBATCH, MAKE, NINJA, PARALLEL, STORE, TASK, XARGS, Runner, runners_here
from bench.setting import Setting, without

_SOURCE = "design of work batches, §9.4"
_SLOTS = 4
_SECONDS_MAX = 120.0
_POLL_SECONDS = 0.01

_COMMANDS = 60
_COMMAND_SECONDS = 0.6
_NO_REPEATS = Target(limit=0, source=_SOURCE)

_CANCEL_SECONDS = Target(limit=0.3, source=_SOURCE)
_PEER_SECONDS_MAX = 5.0
_PIDS = "pids"
_VICTIM = "victim.sh"
_DYING = {
    "commands that die at once": "",
    "commands that take half a second to die": "trap 'sleep 0.5; exit 1' TERM\n",
}
_CANCELLED_BY_SIGNAL = (PARALLEL, XARGS, MAKE, NINJA, TASK)


class _RepeatCounts(msgspec.Struct, frozen=True):
    """Counts of a second call: repeated starts, those while the first start still ran, and jobs that never ended."""

    again: int
    at_once: int
    missing: int


def killed(setting: Setting) -> Iterator[Row]:
    """Kill the program at half and call it again at once: count the commands that begin a second time."""
    graph = sleeps(_COMMANDS, _COMMAND_SECONDS)
    runners = runners_here()
    counts_by_runner: dict[str, list[_RepeatCounts]] = {runner.name: [] for runner in runners}
    for _ in range(setting.runs):
        for runner in runners:
            counts_by_runner[runner.name].append(_killed_at_half(runner, graph, setting.scratch / runner.program))
    corpus = f"{setting.runs} kills, {_COMMANDS} sleeps each, {_SLOTS} slots"
    for runner in runners:
        counts = counts_by_runner[runner.name]
        yield figure_row(
            "commands-killed",
            f"begun again after kill -9 at half: {runner.name}",
            corpus,
            [sum(count.again for count in counts)],
            f"of {_COMMANDS * setting.runs}",
            target=_NO_REPEATS if runner is CODEBATCH else None,
            peer=f"{sum(count.at_once for count in counts)} while the same command ran; "
            f"{sum(count.missing for count in counts)} never ran to the end",
        )


def _killed_at_half(runner: Runner, graph: Graph, directory: Path) -> _RepeatCounts:
    side = runner.side(graph, directory, _SLOTS)
    side.prepare()
    with _running(side.command, side) as first:
        _wait(lambda: sum(span.ended is not None for span in witnessed(directory)) >= len(graph) // 2, runner.name)
        first.kill()
        first.wait()
        for call in runner.commands_again(_SLOTS):
            with _running(call, side) as again:
                if again.wait(_SECONDS_MAX) != 0:
                    raise BrokenSideError(f"{runner.name} does not go on: {' '.join(call)}")
    spans = witnessed(directory)
    without(directory)()
    return _count(graph, spans)


def _count(graph: Graph, spans: Sequence[Span]) -> _RepeatCounts:
    spans_by_job: dict[str, list[Span]] = {}
    for span in spans:
        spans_by_job.setdefault(span.name, []).append(span)
    pairs = [pair for mine in spans_by_job.values() for pair in itertools.pairwise(mine)]
    return _RepeatCounts(
        again=len(pairs),
        at_once=sum(before.ended is None or before.ended > after.began for before, after in pairs),
        missing=sum(all(span.ended is None for span in spans_by_job.get(job.name, [])) for job in graph),
    )


def cancelled(setting: Setting) -> Iterator[Row]:
    """Cancel four commands from another process: measure until the last is dead, minus the time they need to die."""
    graph = tuple(Job(name=f"t{number}", run=f"sh {_VICTIM}") for number in range(_SLOTS))
    for what, trap in _DYING.items():
        corpus = f"{_SLOTS} {what}"
        alone = sorted(_die_alone(setting.scratch / "alone", trap) for _ in range(setting.runs))[setting.runs // 2]
        peer = f"alone they take {alone:.3f} s after SIGTERM"
        cancel = [_cancel(setting.scratch / CODEBATCH.program, graph, trap) - alone for _ in range(setting.runs)]
        yield figure_row(
            "commands-cancelled",
            "`codebatch cancel` until the last is dead",
            corpus,
            cancel,
            "s",
            target=_CANCEL_SECONDS,
            peer=peer,
        )
        for runner in _CANCELLED_BY_SIGNAL:
            if runner.path() is None:
                continue
            seconds_until_dead = [
                _terminate(runner, setting.scratch / runner.program, graph, trap) for _ in range(setting.runs)
            ]
            dead = [seconds - alone for seconds in seconds_until_dead if seconds is not None]
            left = f"; in {len(seconds_until_dead) - len(dead)} of {len(seconds_until_dead)} turns they lived on"
            yield figure_row(
                "commands-cancelled",
                f"SIGTERM to {runner.name} until the last is dead",
                corpus,
                dead or [_PEER_SECONDS_MAX],
                "s",
                peer=peer + (left if len(dead) < len(seconds_until_dead) else ""),
            )


def _write_victim(directory: Path, trap: str) -> None:
    (directory / _VICTIM).write_text(f"{trap}echo $$ >> {_PIDS}\nwhile :; do sleep 0.05; done\n")


def _die_alone(directory: Path, trap: str) -> float:
    """Return the seconds from SIGTERM to the process groups of the commands until all are dead."""
    directory.mkdir()
    _write_victim(directory, trap)
    here = [
        subprocess.Popen(["sh", _VICTIM], cwd=directory, stderr=subprocess.DEVNULL, start_new_session=True)
        for _ in range(_SLOTS)
    ]
    _wait(lambda: len(_victims(directory)) == _SLOTS, "sh")
    began = time.perf_counter()
    for process in here:
        os.killpg(process.pid, signal.SIGTERM)
    for process in here:
        process.wait()
    without(directory)()
    return time.perf_counter() - began


def _cancel(directory: Path, graph: Graph, trap: str) -> float:
    side = CODEBATCH.side(graph, directory, _SLOTS)
    side.prepare()
    _write_victim(directory, trap)
    with _running(side.command, side), _victims_of(directory, CODEBATCH) as victims:
        began = time.perf_counter()
        with _running([side.command[0], "cancel", "--batch", "latest", "--store", STORE], side) as cancel:
            if not _all_dead(victims, _SECONDS_MAX):
                raise BrokenSideError("codebatch cancel leaves commands alive")
            seconds = time.perf_counter() - began
            if cancel.wait(_SECONDS_MAX) != 0:
                raise BrokenSideError(f"codebatch cancel ended with {cancel.returncode}")
    without(directory)()
    return seconds


def _terminate(runner: Runner, directory: Path, graph: Graph, trap: str) -> float | None:
    """Return the seconds from SIGTERM to the program until its commands are dead, or None if they survive."""
    side = runner.side(graph, directory, _SLOTS)
    side.prepare()
    _write_victim(directory, trap)
    with _running(side.command, side) as process, _victims_of(directory, runner) as victims:
        began = time.perf_counter()
        process.terminate()
        are_dead = _all_dead(victims, _PEER_SECONDS_MAX)
        seconds = time.perf_counter() - began
    without(directory)()
    return seconds if are_dead else None


@contextlib.contextmanager
def _running(command: Sequence[str], side: Side) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that leads a session. On exit, kill the remaining processes of its group."""
    process = subprocess.Popen(
        list(command),
        cwd=side.cwd,
        env={**environment(), **side.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _victims(directory: Path) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return [int(line) for line in (directory / _PIDS).read_text().splitlines()]
    return []


@contextlib.contextmanager
def _victims_of(directory: Path, runner: Runner) -> Iterator[list[int]]:
    """Yield pidfds of the commands once all run. On exit, kill the commands."""
    _wait(lambda: len(_victims(directory)) == _SLOTS, runner.name)
    descriptors = [os.pidfd_open(pid) for pid in _victims(directory)]
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            os.close(descriptor)


def _all_dead(victims: Sequence[int], seconds_max: float) -> bool:
    deadline = time.monotonic() + seconds_max
    return all(select.select([victim], [], [], max(0.0, deadline - time.monotonic()))[0] for victim in victims)


def _wait(condition: Callable[[], bool], program: str) -> None:
    deadline = time.monotonic() + _SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise BrokenSideError(f"{program} does not come so far in {_SECONDS_MAX:.0f} s")
        time.sleep(_POLL_SECONDS)
