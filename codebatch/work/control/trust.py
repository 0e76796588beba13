"""The check whether commands of a store may run.

The author of a store determines the commands in it, so the store must be trusted (SPEC.md "Threat model").
"""

from __future__ import annotations

import shlex
from itertools import islice
from pathlib import Path

from codebatch.errors import StoreUntrusted, UnsupportedFileSystem
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir, check_created_here
from codebatch.store.work.work_batches import read_command, read_work
from codebatch.system.files.mounts import remote_file_system_kind

COMMANDS_SHOWN_MAX = 20


class ForeignCommands(StoreUntrusted):
    """The error for a batch in a store that was not created by this user on this machine.

    `commands` are the first of the `count` commands, as shown to users.
    """

    def __init__(self, message: str, *, hint: str, commands: tuple[str, ...], count: int) -> None:
        super().__init__(message, hint=hint)
        self.commands = commands
        self.count = count


def check_trusted(store: StoreDir, batch: BatchDir) -> None:
    """Raise ForeignCommands if the store was not created by this user on this machine.

    It makes no difference whether the user named the store.
    """
    try:
        check_created_here(store)
    except StoreUntrusted as error:
        work = read_work(batch)
        order = work.order
        first = () if work.notify is None else (f"notify: {_command_text(work.notify.command)}",)
        command_lines = first + tuple(
            f"{id_}: {_command_line(store, batch, id_)}" for id_ in islice(order, COMMANDS_SHOWN_MAX)
        )
        raise ForeignCommands(
            f"batch {batch.id} is not run: {error.message}",
            hint="review its commands, then run them with --trust",
            commands=command_lines,
            count=len(order) + len(first),
        ) from error


def check_place_trusted(store: StoreDir, *, is_trusted: bool) -> None:
    """Raise an error if a new work batch must not be created in a store.

    Raises StoreUntrusted if the store is untrusted and `is_trusted` is not set. Raises UnsupportedFileSystem if the
    file system cannot hold work batches.
    """
    if not is_trusted:
        try:
            check_created_here(store)
        except StoreUntrusted as error:
            raise StoreUntrusted(
                f"cannot run a task list with this store: {error.message}",
                hint="use another store with --store; if you trust all users who can write to this store, add --trust",
            ) from error
    check_file_system(store.root)


def check_file_system(path: Path) -> None:
    """Raise UnsupportedFileSystem if a work batch cannot be stored at a path. The path may not exist yet.

    File systems that several hosts share are refused. On such a file system, two facts cannot be known: whether
    processes of other hosts are alive, and whether the recorded start of a command is durable.
    """
    kind = remote_file_system_kind(path)
    if kind is not None:
        raise UnsupportedFileSystem(str(path), "tell which processes are alive and what is on disk", f"it is {kind}")


def _command_line(store: StoreDir, batch: BatchDir, command: str) -> str:
    return _command_text(read_command(store, batch, command).run)


def _command_text(run: str | tuple[str, ...]) -> str:
    return run if isinstance(run, str) else shlex.join(run)
