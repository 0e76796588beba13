"""The engine `local:N`, with real processes."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from pathlib import Path

import pytest

from codebatch.coordinator.engines.interface import Engine
from codebatch.engines.local_process import ANSWER_HEADER
from codebatch.engines.opening import EngineOptions, open_engine
from codebatch.engines.probes import UNKNOWN_PROCESS
from codebatch.system.processes.python_start import python_start
from tests.engines.calls import fail, kill_process, note_start_and_wait, process_id, sleep_if_named
from tests.engines.waiting import call_until_a_process_replies, process_is_running, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine with two processes."""
    engine = open_engine("local:2", EngineOptions())
    yield engine
    engine.close()


def test_properties(engine: Engine) -> None:
    assert (engine.name, engine.slots(), engine.cores_per_slot, engine.is_alive()) == ("local:2", 2, 1, True)
    engine.close()
    assert not engine.is_alive()


def test_each_process_replies_once(engine: Engine) -> None:
    replies = engine.call_everywhere(process_id, b"pid", 120)
    assert len(replies) == 2
    assert [reply.process for reply in replies] == sorted(reply.process for reply in replies)
    for reply in replies:
        assert reply.answer == b"pid " + reply.process.rpartition(":")[2].encode()
        assert reply.error == ""
    assert [reply.error for reply in engine.call_everywhere(fail, b"no", 30)] == ["ValueError: no"] * 2


def test_a_process_that_does_not_reply_has_an_error(engine: Engine) -> None:
    pids = [reply.process.rpartition(":")[2] for reply in engine.call_everywhere(process_id, b"", 30)]
    seconds, replies = call_until_a_process_replies(engine, sleep_if_named, pids[0].encode())
    assert {reply.process.rpartition(":")[2] for reply in replies} == {pids[1], UNKNOWN_PROCESS}
    assert [reply.error for reply in replies if reply.error] == [f"1 of 2 did not reply within {seconds} s"]


def test_a_process_that_waits_for_calls_ends_at_a_signal_without_output() -> None:
    start = python_start("codebatch.engines.local_process", environment=os.environ)
    pipe = subprocess.PIPE
    with subprocess.Popen(start.arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=start.environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pickle.dumps(os.getpid))
        process.stdin.flush()
        process.stdout.read(ANSWER_HEADER.size)
        process.terminate()
        process.wait(120)
        assert process.stderr is not None
        assert (process.stderr.read(), process.returncode) == (b"", 0)


def test_the_pool_is_replaced_after_the_death_of_a_process(engine: Engine, tmp_path: Path) -> None:
    killed = engine.executor.submit(note_start_and_wait, os.fsencode(tmp_path))
    wait_until(lambda: [*tmp_path.iterdir()])
    (started,) = tmp_path.iterdir()
    os.kill(int(started.name.partition("-")[2]), signal.SIGKILL)
    assert isinstance(killed.exception(120), BrokenExecutor)
    assert engine.executor.submit(process_id, b"again").result(120).startswith(b"again")
    assert isinstance(engine.executor.submit(kill_process, b"").exception(120), BrokenExecutor)
    (reply,) = {reply.error for reply in engine.call_everywhere(process_id, b"", 30)}
    assert reply == ""


def test_a_death_during_calls_in_each_process_is_reported(engine: Engine) -> None:
    replies = engine.call_everywhere(kill_process, b"", 120)
    assert [reply.process for reply in replies] == [UNKNOWN_PROCESS]
    assert replies[0].error.startswith("BrokenExecutor: ")


def test_close_ends_running_calls_and_cancels_others(tmp_path: Path) -> None:
    engine = open_engine("local:1", EngineOptions())
    calls = [engine.executor.submit(note_start_and_wait, os.fsencode(tmp_path)) for _ in range(5)]
    wait_until(lambda: [*tmp_path.iterdir()])
    (started,) = tmp_path.iterdir()
    engine.close()
    assert isinstance(calls[0].exception(120), BrokenExecutor)
    with pytest.raises((CancelledError, BrokenExecutor)):
        calls[-1].result(120)
    wait_until(lambda: not process_is_running(int(started.name.partition("-")[2])))


def test_processes_end_when_the_coordinator_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from codebatch.engines.opening import EngineOptions, open_engine\n"
        "from tests.engines.calls import note_start_and_wait\n"
        "engine = open_engine('local:1', EngineOptions())\n"
        "engine.executor.submit(note_start_and_wait, os.fsencode(sys.argv[1])).result()"
    )
    root = Path(__file__).parent.parent.parent
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=root, stderr=subprocess.DEVNULL)
    wait_until(lambda: [*tmp_path.iterdir()])
    (started,) = tmp_path.iterdir()
    process.kill()
    process.wait()
    wait_until(lambda: not process_is_running(int(started.name.partition("-")[2])))
