"""The engine of Parsl, with a real HighThroughputExecutor on this machine."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import psutil
import pytest

from codebatch.coordinator.engines.foreign_objects import RemoteError
from codebatch.coordinator.engines.interface import Engine
from codebatch.engines.opening import EngineOptions, open_engine
from tests.engines.calls import MALICIOUS, Malicious, fail, kill_process, note_start_and_wait, process_id
from tests.engines.test_opening import refused
from tests.engines.waiting import process_is_running, wait_for_slots, wait_until
from tests.faults.planted_modules import IMPORTED_BY_CODEBATCH, LOADED_BY_PYTHON, imported, plant_modules

pytest.importorskip("parsl", reason="PARSL IS NOT TESTED: pip install 'codebatch[parsl]'")

from codebatch.engines.parsl import ParslEngine, _read_payload

pytestmark = pytest.mark.slow

CONFIGURATION = """
import parsl
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider

executor = HighThroughputExecutor(
    label="workers",
    address="127.0.0.1",
    cores_per_worker=CORES,
    max_workers_per_node=2,
    encrypted=False,
    heartbeat_period=1,
    heartbeat_threshold=60,
    provider=LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
)
config = parsl.Config(executors=[executor], strategy="none", strategy_period=0.2)
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a configuration with two workers of one core each, which are not started yet."""
    file = tmp_path / "cluster.py"
    file.write_text(CONFIGURATION.replace("CORES", "0.5"))
    return f"parsl:{file}"


@pytest.fixture
def engine(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine with two workers. The scripts of the virtual environment are not on PATH."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    engine = open_engine(url, EngineOptions())
    yield engine
    engine.close()
    assert not engine.is_alive()
    assert [*temporary.iterdir()] == []
    assert not any("parsl" in name for name in os.listdir())


def test_calls_replies_and_deaths_of_workers(engine: Engine, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert engine.name == f"parsl {tmp_path}/cluster.py"
    assert engine.cores_per_slot == 1
    assert engine.is_alive()
    wait_for_slots(engine, 2)
    assert engine.executor.submit(len, bytes(21_000_000)).result(120) == 21_000_000
    assert isinstance(engine.executor.submit(fail, b"no").exception(120), ValueError)
    replies = engine.call_everywhere(process_id, b"pid", 120)
    assert len({reply.answer for reply in replies if not reply.error}) == 2
    assert ".WorkerLost(" in str(engine.executor.submit(kill_process, b"").exception(120))
    assert engine.executor.submit(process_id, b"again").result(120).startswith(b"again")

    waiting = engine.executor.submit(note_start_and_wait, os.fsencode(tmp_path))
    wait_until(lambda: [*tmp_path.glob("started-*")])
    assert waiting.cancel()
    with pytest.raises(CancelledError):
        waiting.result(0)
    engine.close()
    (started,) = tmp_path.glob("started-*")
    wait_until(lambda: not process_is_running(int(started.name.partition("-")[2])))
    assert capfd.readouterr() == ("", "")


def test_no_code_of_malicious_workers_runs(engine: Engine, tmp_path: Path) -> None:
    """Each process that runs the code writes a file with its pid. Neither this process nor the interchange does."""
    wait_for_slots(engine, 2)
    for call in MALICIOUS:
        future = engine.executor.submit(call, os.fsencode(tmp_path))
        error = future.exception(120)
        assert isinstance(error, RemoteError | ValueError) or isinstance(future.result(0), dict)
        replies = engine.call_everywhere(call, os.fsencode(tmp_path), 60)
        assert all(reply.error for reply in replies)
    assert engine.executor.submit(process_id, b"again").result(120).startswith(b"again")
    assert [path for path in tmp_path.iterdir() if path.name.isdigit()] == []


def test_a_worker_cannot_name_a_deserializer(tmp_path: Path) -> None:
    """Parsl would import the module and call the class that the first line of a result names."""
    assert isinstance(_read_payload(b"pdb Pdb\n" + pickle.dumps(b"x")), bytes)
    assert str(_read_payload(b"os abort\njunk")).startswith("an object of another process cannot be read")
    assert str(_read_payload(b"")).startswith("an object of another process cannot be read")


@pytest.mark.parametrize("kind", ["registration", "junk"])
def test_the_interchange_reads_no_objects_of_workers(url: str, tmp_path: Path, kind: str) -> None:
    """A process that connects as a worker sends a message that runs code when it is read."""
    zmq = pytest.importorskip("zmq")
    marker = tmp_path / "markers"
    marker.mkdir()
    engine = open_engine(url, EngineOptions())
    try:
        wait_for_slots(engine, 2)
        assert isinstance(engine, ParslEngine)
        socket = zmq.Context.instance().socket(zmq.DEALER)
        socket.connect(f"tcp://127.0.0.1:{engine._workers.worker_port}")
        message = {"type": kind, "python_v": Malicious(str(marker))}
        socket.send(pickle.dumps(message if kind == "registration" else Malicious(str(marker))))
        socket.send(pickle.dumps({"type": "connection_probe"}))
        assert socket.recv() == b"", "the interchange has read both messages"
        socket.close(0)
        assert engine.executor.submit(process_id, b"again").result(120).startswith(b"again")
    finally:
        engine.close()
    assert [*marker.iterdir()] == []


def test_processes_on_this_machine_import_nothing_of_the_tree(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, markers = tmp_path / "tree", tmp_path / "markers"
    plant_modules(tree, markers, (*LOADED_BY_PYTHON, *IMPORTED_BY_CODEBATCH, "zmq", "dill", "typeguard", "threading"))
    monkeypatch.chdir(tree)
    monkeypatch.setenv("PYTHONPATH", f":.:{tree}")
    engine = open_engine(url, EngineOptions())
    try:
        wait_for_slots(engine, 2)
        assert engine.executor.submit(process_id, b"here").result(120).startswith(b"here")
    finally:
        engine.close()
    assert imported(markers) == []


def test_futures_end_when_the_interchange_is_killed(engine: Engine, tmp_path: Path) -> None:
    wait_for_slots(engine, 2)
    call = engine.executor.submit(note_start_and_wait, os.fsencode(tmp_path))
    wait_until(lambda: [*tmp_path.glob("started-*")])
    for process in psutil.Process().children():
        if "interchange" in process.name() or "interchange" in " ".join(process.cmdline()):
            process.kill()
    wait_until(lambda: not engine.is_alive())
    assert isinstance(call.exception(120), ConnectionError)
    assert isinstance(engine.executor.submit(process_id, b"").exception(120), ConnectionError)
    assert engine.slots() == 0
    engine.close()
    (started,) = tmp_path.glob("started-*")
    wait_until(lambda: not process_is_running(int(started.name.partition("-")[2])))


def test_the_interchange_ends_when_the_coordinator_is_killed(url: str, tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from codebatch.engines.opening import EngineOptions, open_engine\n"
        "engine = open_engine(sys.argv[1], EngineOptions())\n"
        "print(flush=True)\n"
        "time.sleep(60)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", code, url]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        children = psutil.Process(process.pid).children()
        assert children != []
        process.kill()
        for child in children:
            wait_until(lambda pid=child.pid: not process_is_running(pid))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("config = 1", "assigns no parsl.Config to `config`", "parsl.Config(executors=[...])"),
        ("", "assigns no parsl.Config to `config`", "parsl.Config(executors=[...])"),
        ("1 / 0", "raised ZeroDivisionError: division by zero", sys.executable),
        ("raise SystemExit(3)", "raised SystemExit: 3", sys.executable),
        ("def", "raised SyntaxError: ", sys.executable),
        ("import parsl\nconfig = parsl.Config()", "is a ThreadPoolExecutor, which cannot be used", "HighThroughput"),
        (
            "from parsl import Config, ThreadPoolExecutor as T; config = Config([T(label='a'), T(label='b')])",
            "has 2 executors, but one is required",
            "keep one",
        ),
        (
            CONFIGURATION.replace("CORES", "1").replace("encrypted=False", "interchange_launch_cmd=['/no/program']"),
            "cannot start the executor",
            "provider",
        ),
    ],
)
def test_configurations_that_cannot_be_used_are_refused(
    text: str, message: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    file = tmp_path / "cluster.py"
    file.write_text(text)
    with refused(message, hint):
        open_engine(f"parsl:{file}", EngineOptions())
    assert [*temporary.iterdir()] == []


@pytest.mark.parametrize("name", ["", "missing.py", "cluster.txt", "."])
def test_files_that_do_not_exist_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.txt").touch()
    with refused("no Python file", "parsl:FILE.py"):
        open_engine(f"parsl:{tmp_path / name}", EngineOptions())
