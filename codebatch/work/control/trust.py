"""From which stores commands are run: who sends a store says what is run from it (SPEC.md "Threat model")."""

from __future__ import annotations

import shlex
from itertools import islice
from pathlib import Path

from codebatch.errors import StoreUntrusted, UnsupportedFileSystem
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.store import StoreDir, check_made_here
from codebatch.store.work.work_batches import read_command, read_work
from codebatch.system.files.mounts import far_kind

COMMANDS_SHOWN_MAX = 20


class CommandsForeign(StoreUntrusted):
    """Nothing is run of a batch whose store was not made here by us. `commands`: the first of `count`, for people."""

    def __init__(self, message: str, *, hint: str, commands: tuple[str, ...], count: int) -> None:
        super().__init__(message, hint=hint)
        self.commands = commands
        self.count = count


def check_trusted(store: StoreDir, batch: BatchDir) -> None:
    """Raise CommandsForeign where what stands in a store is not to be run, be it that the store was named."""
    try:
        check_made_here(store)
    except StoreUntrusted as error:
        work = read_work(batch)
        order = work.order
        first = () if work.notify is None else (f"notify: {_words(work.notify.command)}",)
        shown = first + tuple(f"{id_}: {_typed(store, batch, id_)}" for id_ in islice(order, COMMANDS_SHOWN_MAX))
        raise CommandsForeign(
            f"batch {batch.id} is not run: {error.message}",
            hint="review its commands, then run them with --trust",
            commands=shown,
            count=len(order) + len(first),
        ) from error


def check_place(store: StoreDir, *, is_trusted: bool) -> None:
    """Raise StoreUntrusted where no work batch is to be made in a store, UnsupportedFileSystem where none can be."""
    if not is_trusted:
        try:
            check_made_here(store)
        except StoreUntrusted as error:
            raise StoreUntrusted(
                f"cannot run a task list with this store: {error.message}",
                hint="use another store with --store; if you trust all users who can write to this store, add --trust",
            ) from error
    check_file_system(store.root)


def check_file_system(path: Path) -> None:
    """Raise UnsupportedFileSystem where a store at a path, which need not be there, is none for commands.

    Which of several hosts' processes live is not known on a file system that they share, nor that a start is on disk.
    """
    kind = far_kind(path)
    if kind is not None:
        raise UnsupportedFileSystem(str(path), "tell which processes are alive and what is on disk", f"it is {kind}")


def _typed(store: StoreDir, batch: BatchDir, command: str) -> str:
    return _words(read_command(store, batch, command).run)


def _words(run: str | tuple[str, ...]) -> str:
    return run if isinstance(run, str) else shlex.join(run)
