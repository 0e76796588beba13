"""Start workers for commands, one after another: `python -m bench.probes.command_worker STORE COUNT`.

Print JSON with a pair for each worker: milliseconds until its Hello, and its peak resident memory until then.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from codebatch.coordinator.processes.workers import WorkerProcess, start_worker
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.work_batch import Work
from codebatch.protocol.launch import WorkerSettings
from codebatch.scheduling.events import WorkerId
from codebatch.store.batches.holders import new_holder_id
from codebatch.store.batches.store_directory import create_store
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.files.files import RealFiles

_SECONDS_MAX = 10.0


def _wait_hello(worker: WorkerProcess) -> None:
    deadline = time.monotonic() + _SECONDS_MAX
    while not worker.receive():
        if time.monotonic() > deadline:
            raise TimeoutError(worker.stderr_text)
        time.sleep(0.0005)


def _peak_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    root = Path(sys.argv[1])
    store, _ = create_store(RealFiles(), root)
    command = Command(id=CommandId("nothing"), run="true")
    work = Work(source="bench", root=os.fsencode(root), order=(command.id,))
    with store.writing():
        batch = make_work_batch(store, [command], work, at_ns=1)
    measurements = []
    for number in range(int(sys.argv[2])):
        began = time.perf_counter()
        worker = start_worker(
            WorkerId(number),
            batch,
            WorkerSettings(store=str(root), batch=batch.id, coordinator=new_holder_id(), role="commands"),
        )
        _wait_hello(worker)
        measurements.append((1000 * (time.perf_counter() - began), _peak_bytes(worker.process.pid)))
        worker.kill("abandoned")
        worker.reap_and_kill_group()
    print(json.dumps(measurements))
