"""Orphaned commands: commands of work batches that still run although their worker is dead."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch.model.work.command import CommandId
from codebatch.store.batches.batch_directory import BatchDir, iter_batches
from codebatch.store.batches.holders import HolderFile, LeaseReader
from codebatch.store.batches.progress_cells import read_running_child
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.attempts import CommandPlaces, read_leases
from codebatch.store.work.work_batches import read_command_ids, read_work
from codebatch.system.host import is_this_machine
from codebatch.system.processes.proc import process_stat


def find_orphaned_commands(store: StoreDir, root: bytes) -> Iterator[str]:
    """Yield a message for each orphaned command of batches in the directory `root`, on this machine.

    The message has the commands that stop the orphaned command or resume its batch. Only a run of its own batch can
    adopt or end an orphaned command. Another batch with the same task would start the task a second time.
    """
    for batch in iter_batches(store, kind="work"):
        if batch.about.sources == (root,):
            for task, pid in _iter_orphans(batch, store):
                message = f"batch {batch.id} left {task!r} running (process {pid})"
                end = f"stop it with: codebatch cancel --batch {batch.id}"
                yield f"{message}; {end}; or resume the batch with: codebatch resume --batch {batch.id}"


def _iter_orphans(batch: BatchDir, store: StoreDir) -> Iterator[tuple[CommandId, int]]:
    """Yield the running commands of dead workers, each with its process ID.

    If all workers are alive, no other files are read.
    """
    reader = LeaseReader(batch.files, batch.root)
    if all(is_live for _, is_live in reader.read_holders()):
        return
    leases = read_leases(reader, CommandPlaces(batch.plan().shards)).leases
    running = {
        item: pid
        for item, lease in leases.items()
        if not lease.is_live and (pid := _running_process(batch, lease.holder))
    }
    commands = read_command_ids(store, batch, read_work(batch)) if running else []
    yield from ((commands[item], pid) for item, pid in sorted(running.items()))


def _running_process(batch: BatchDir, holder: HolderFile) -> int | None:
    """Return the process ID of the command that a worker on this machine started.

    Return None if the process no longer exists, or if the worker ran on another machine.
    """
    child = read_running_child(batch, holder.holder) if is_this_machine(holder.host) else None
    process = None if child is None else process_stat(child.pid)
    if child is None or process is None or process.is_zombie or process.start_ticks != child.start_ticks:
        return None
    return child.pid
