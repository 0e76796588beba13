"""Tests of the worker of a work batch as a process: its leases, attempts, messages and commits."""

from __future__ import annotations

import errno
import os
import signal
import socket
import time
from pathlib import Path
from typing import Literal

import pytest

from codebatch.model.outcome import HolderId
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.request import Cancel
from codebatch.model.work.request import Stop as StopRequest
from codebatch.protocol.launch import WorkerLaunch
from codebatch.protocol.messages import (
    Assign,
    Committed,
    Delayed,
    Finished,
    GaveUp,
    Hello,
    MessageBuffer,
    Refused,
    Returned,
    Stop,
    Terminate,
    decode_from_worker,
    encode_message,
)
from codebatch.store import layout
from codebatch.store.batches.holders import LeaseReader
from codebatch.system.clock import running_ns
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from codebatch.system.processes import proc
from codebatch.system.processes.processes import set_subreaper
from codebatch.system.processes.progress_cell import ProgressCell
from codebatch_workers.commands.run import COMMIT_SECONDS_MAX
from codebatch_workers.commands.supervisor import Supervisor
from codebatch_workers.runtime.channel import CoordinatorChannel
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.work_batches import COORDINATOR, Place, coordinating, make_place, wait_until

LONG = "echo began; exec sleep 1000"


def command(run: str | tuple[str, ...], id_: str = "a", **keys: object) -> Command:
    """Return a command with some settings."""
    return Command(id=CommandId(id_), run=run, **keys)  # type: ignore[arg-type]


def wait_until_started(place: Place, item: int = 0, epoch: int = 1) -> None:
    """Wait until the log of a command says that it began."""
    wait_until(lambda: _has_log(place, item, epoch) and b"began" in place.log(item, epoch=epoch))


def _has_log(place: Place, item: int, epoch: int) -> bool:
    name = layout.log_name(place.plan.shards[0].id, item, 1, epoch)
    return (place.batch.root / layout.LOGS / name).exists()


def test_attempts_end_with_the_status_of_their_commands(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("echo said; exit 3"), command(("true",), "b"), command("kill -9 $$", "c"))
    with coordinating(place) as coordinator:
        outcomes = [coordinator.do(item) for item in range(3)]
    assert [(end.type, end.reason, end.exit_status) for end in outcomes] == [
        ("failed", "exit", 3), ("result", None, 0), ("failed", "signal", -signal.SIGKILL),
    ]  # fmt: skip
    assert sorted(place.outcomes(), key=lambda outcome: outcome.start) == outcomes
    assert place.log(0) == b"said\n"
    assert [(attempt.exit_status, attempt.signal, attempt.evidence) for attempt in place.ran()] == [
        (3, "", "said\n"), (0, "", ""), (-signal.SIGKILL, "SIGKILL", ""),
    ]  # fmt: skip
    assert not list((place.batch.root / layout.SCRATCH).iterdir()), "the directory of an attempt is left"


def test_log_directory_is_private(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("echo said"))
    with coordinating(place) as coordinator:
        coordinator.do()
    assert (place.batch.root / layout.LOGS).stat().st_mode & 0o777 == 0o700


def test_taken_lease_is_refused(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("true"))
    with coordinating(place) as first, coordinating(place) as second:
        first.do()
        second.assign()
        assert second.hear(Refused).epoch == 1
        assert second.do(round_=2, epoch=2).type == "result"


def test_command_continues_without_its_coordinator_and_is_committed(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("echo began; read line < go; echo $line"))
    os.mkfifo(place.root / "go")
    with coordinating(place) as coordinator:
        coordinator.assign()
        wait_until_started(place)
        coordinator.vanish()
        (place.root / "go").write_text("went on\n")
        assert coordinator.wait_end() == 0
    assert [outcome.type for outcome in place.outcomes()] == ["result"]
    assert place.log() == b"began\nwent on\n"


def test_signal_to_the_worker_ends_no_attempt(tmp_path: Path) -> None:
    """Service managers and CI servers send SIGTERM to workers, too. Only the coordinator decides which attempts end."""
    place = make_place(tmp_path, command("trap : TERM; echo began; read line < go; echo $line"))
    os.mkfifo(place.root / "go")
    with coordinating(place) as coordinator:
        coordinator.assign()
        wait_until_started(place)
        coordinator.worker.process.terminate()
        coordinator.worker.process.send_signal(signal.SIGINT)
        (place.root / "go").write_text("went on\n")
        assert coordinator.result().type == "result"


@pytest.mark.parametrize("has_coordinator", [True, False])
def test_cancel_request_ends_a_running_command_with_or_without_a_coordinator(
    tmp_path: Path, has_coordinator: bool
) -> None:
    place = make_place(tmp_path, command(LONG))
    with coordinating(place) as coordinator:
        coordinator.assign()
        wait_until_started(place)
        if not has_coordinator:
            coordinator.vanish()
        place.requests.append(Cancel(), by="test", at_ns=0)
        if has_coordinator:
            coordinator.result()
        else:
            coordinator.wait_end()
    assert [(outcome.type, outcome.exit_status) for outcome in place.outcomes()] == [("cancelled", -signal.SIGTERM)]


def test_request_before_the_assignment_is_left_to_the_coordinator(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("true"), command("echo ran", "b"))
    place.requests.append(Cancel(), by="test", at_ns=0)
    with coordinating(place) as coordinator:
        coordinator.assign(0, requests=1)
        assert coordinator.result().type == "result"
        coordinator.assign(1, requests=0)
        assert coordinator.result().type == "cancelled"
    assert not _has_log(place, 1, 1), "the cancelled command ran"


def test_terminate_message_ends_a_running_command(tmp_path: Path) -> None:
    place = make_place(tmp_path, command(f"trap '' TERM; {LONG.replace('exec ', '')}"))
    with coordinating(place) as coordinator:
        coordinator.assign()
        wait_until_started(place)
        coordinator.worker.send(Terminate(why="cancelled", grace_seconds=0.1))
        outcome = coordinator.result()
    assert (outcome.type, outcome.exit_status) == ("cancelled", -signal.SIGKILL)


def test_stopped_attempt_is_not_committed_and_its_worker_ends(tmp_path: Path) -> None:
    place = make_place(tmp_path, command(LONG))
    with coordinating(place) as coordinator:
        coordinator.assign()
        wait_until_started(place)
        coordinator.worker.send(Terminate(why="stopped"))
        assert coordinator.wait_end() == 0
    assert place.outcomes() == []
    ((lease,),) = [LeaseReader(place.batch.files, place.batch.root).read_leases().values()]
    assert not lease.is_live, "the lease of the ended worker is alive"
    assert [attempt.type for attempt in place.ran()] == ["stopped"]


@pytest.mark.parametrize(("epoch", "terminates", "is_stopped"), [(1, True, True), (2, True, False), (1, False, False)])
def test_stop_request_ends_only_the_attempt_that_it_names(
    tmp_path: Path, epoch: int, terminates: bool, is_stopped: bool
) -> None:
    """No coordinator needs to live: adopted attempts also end at the time limit. Requests are obeyed in order."""
    place = make_place(tmp_path, command(LONG))
    with coordinating(place) as coordinator:
        coordinator.assign()
        wait_until_started(place)
        coordinator.vanish()
        stop = StopRequest(cause="timeout", attempts={CommandId("a"): epoch}, terminates=terminates)
        for body in (stop, Cancel()):
            place.requests.append(body, by="test", at_ns=0)
        assert coordinator.wait_end() == 0
    assert [outcome.type for outcome in place.outcomes()] == ([] if is_stopped else ["cancelled"])


@pytest.mark.parametrize(("why", "outcomes"), [("cancelled", ["cancelled"]), ("stopped", [])])
@pytest.mark.parametrize("run", ["echo began", "truncate --size 1T large"])
def test_request_ends_an_attempt_whose_inputs_are_read(
    tmp_path: Path, why: Literal["cancelled", "stopped"], outcomes: list[str], run: str
) -> None:
    """Before the command, or after it. A sparse file, which takes minutes to read, stands for large inputs."""
    is_after = run.startswith("truncate")
    place = make_place(tmp_path, command(run, skip_if_unchanged=True, inputs=("large",)))
    large = place.root / "large"
    large.touch()
    os.truncate(large, 1 if is_after else 1 << 40)
    with coordinating(place) as coordinator:
        path = place.batch.root / layout.HOLDERS / layout.cell_name(coordinator.worker.holder)
        coordinator.assign()
        wait_until(lambda: large.stat().st_size > 1 and _has_log(place, 0, 1))
        cell = ProgressCell(place.batch.files, path, create=False)
        wait_until(lambda: cell.read_child() is None)
        coordinator.worker.send(Terminate(why=why))
        if is_after or outcomes:
            coordinator.result()
        else:
            coordinator.wait_end()
        cell.close()
    assert [outcome.type for outcome in place.outcomes()] == (["result"] if is_after else outcomes)
    assert b"began" not in place.log()


def test_worker_starts_nothing_after_another_coordinator_arrived(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("touch ran"))
    with coordinating(place) as coordinator:
        (place.batch.root / layout.LEASES / layout.coordinator_lease_name(1)).touch()
        coordinator.assign()
        assert coordinator.wait_end() == 0
    (outcome,) = place.outcomes()
    assert (outcome.type, outcome.reason) == ("cancelled", "unbegun")
    assert not (place.root / "ran").exists()


def test_progress_cell_reports_the_running_command(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("echo $$; echo began; read line < go"))
    os.mkfifo(place.root / "go")
    with coordinating(place) as coordinator:
        coordinator.assign()
        wait_until_started(place)
        path = place.batch.root / layout.HOLDERS / layout.cell_name(coordinator.worker.holder)
        cell = ProgressCell(place.batch.files, path, create=False)
        child = cell.read_child()
        assert child is not None
        assert child.pid == int(place.log().split()[0])
        wait_until(lambda: (cell.read_child() or child).output_bytes == len(place.log()))
        (place.root / "go").write_text("\n")
        coordinator.result()
        assert cell.read_child() is None
        cell.close()


@pytest.mark.parametrize("heals", [True, False])
def test_refused_outcome_is_retried_and_finally_reported(tmp_path: Path, heals: bool) -> None:
    place = make_place(tmp_path, command(("true",)))
    refused: list[Operation] = []

    def watch(operation: Operation) -> Fate | None:
        if operation.call == "write" and operation.path.parent.name == layout.OUTCOMES and len(refused) < refusals:
            refused.append(operation)
            return Fate(OSError(errno.ENOSPC, "No space left on device"), share=0.5)
        return None

    refusals = 3 if heals else 1000
    slept: list[float] = []
    coordinator_end, worker_end = socket.socketpair()
    launch = WorkerLaunch(
        store=str(place.store.root),
        batch=place.batch.id,
        holder=HolderId("a" * 32),
        coordinator=COORDINATOR,
        channel=0,
        parent=0,
        role="commands",
    )
    set_subreaper(True)
    with coordinator_end, worker_end:
        supervisor = Supervisor(
            launch,
            CoordinatorChannel(worker_end),
            pid=os.getpid(),
            environment=os.environ,
            files=RealFiles(WatchedCalls(RealCalls(), watch)),
            now_ns=lambda: running_ns() + round(sum(slept) * 1e9),
            sleep=slept.append,
        )
        coordinator_end.sendall(encode_message(Assign(unit=place.unit(0), epoch=1)))
        coordinator_end.sendall(encode_message(Stop()))
        supervisor.run()
        messages = [decode_from_worker(body) for body in MessageBuffer().feed(coordinator_end.recv(1 << 16))]
        messages = [
            message for message in messages if not isinstance(message, Returned)
        ]  # sent if a command takes long
    set_subreaper(False)
    assert place.batch.files.unfinished(place.batch.root / layout.OUTCOMES) == []
    if heals:
        assert [type(message) for message in messages] == [Hello, Delayed, Committed, Finished]
        assert [outcome.type for outcome in place.outcomes()] == ["result"]
        assert len(slept) == refusals
    else:
        _, delayed, gave_up = messages
        assert isinstance(delayed, Delayed)
        assert (delayed.message.endswith("No space left on device"), delayed.seconds) == (True, COMMIT_SECONDS_MAX)
        assert isinstance(gave_up, GaveUp)
        assert gave_up.code == "store_unwritable"
        assert place.outcomes() == []
        assert sum(slept) >= COMMIT_SECONDS_MAX


def test_unreadable_request_prevents_new_attempts_but_not_running_attempts(tmp_path: Path) -> None:
    place = make_place(tmp_path, command("echo began; read line < go"), command("echo ran", "b"))
    os.mkfifo(place.root / "go")
    with coordinating(place) as coordinator:
        coordinator.assign(0)
        wait_until_started(place)
        requests = place.batch.root / layout.REQUESTS
        requests.mkdir(exist_ok=True)
        (requests / layout.request_name(1)).write_bytes(b"nonsense")
        time.sleep(0.5)  # The worker reads requests every 0.2 s.
        (place.root / "go").write_text("\n")
        assert coordinator.result().type == "result"
        coordinator.assign(1)
        assert coordinator.hear(GaveUp).code == "store_corrupt"
        assert coordinator.wait_end() == 0
    assert not _has_log(place, 1, 1)
    assert [outcome.reason for outcome in place.outcomes()] == [None, "unbegun"]


def test_worker_uses_little_memory(tmp_path: Path) -> None:
    place = make_place(tmp_path, command(("true",)))
    with coordinating(place) as coordinator:
        coordinator.do()
        assert (proc.resident_bytes(coordinator.worker.process.pid) or 0) < 60 << 20
        maps = Path(f"/proc/{coordinator.worker.process.pid}/maps").read_text()
    assert "tree_sitter" not in maps
