"""All errors. The class of an error shows its cause: the caller, the store, the source, the batch, or a bug.

`code` identifies the class in the output of `--json`. `exit_status` is the exit status of the process. Each class has
one; after a signal, an instance of Stopped has another. The table in SPEC.md "Exit statuses" is generated from these
classes. If the same error is raised in several places, it has a subclass. This subclass takes the facts as fields and
builds the message and the hint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class Interrupted(KeyboardInterrupt):
    """Ctrl-C by the user, as opposed to a KeyboardInterrupt raised by a task."""


class CodebatchError(Exception):
    """Base class of all errors that codebatch raises on purpose. It is never raised itself."""

    code: ClassVar[str] = "internal"
    exit_status: int = 70

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines in which the message is displayed."""
        return (self.message,)


class Stopped(CodebatchError):
    """The command was stopped by a signal: SIGINT (130), SIGTERM (143) or SIGHUP (129)."""

    code = "interrupted"
    exit_status = 130

    def __init__(self, message: str, *, hint: str | None = None, exit_status: int = 130) -> None:
        super().__init__(message, hint=hint)
        self.exit_status = exit_status

    @classmethod
    def before_repair(cls, damage: StoreCorrupt, exit_status: int) -> Stopped:
        """Return the error that a signal stopped the command before it repaired `damage`."""
        return cls(f"stopped before repair: {damage.message}", hint=damage.hint, exit_status=exit_status)


class InvalidInput(CodebatchError):
    """An argument or option value that does not exist or cannot be used."""

    code = "invalid_input"
    exit_status = 2


class TaskNotRun(InvalidInput):
    """The query needs one of `tasks`, and the batch has none of them."""

    def __init__(self, message: str, *, tasks: tuple[str, ...], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.tasks = tasks


class InvalidQuery(InvalidInput):
    """A query with a syntax error. `place` is the row and column of the error in `text`, counted from 0."""

    def __init__(self, message: str, *, hint: str, text: str, place: tuple[int, int]) -> None:
        super().__init__(message, hint=hint)
        self.text = text
        self.place = place


class InvalidId(InvalidInput):
    """A malformed ID. Nothing was looked up."""

    code = "invalid_id"


class UnknownId(InvalidInput):
    """An ID that does not exist in the store."""

    code = "unknown_id"


class NotInStore(UnknownId):
    """The store has no batch or snapshot with this name. `noun` is `batch` or `snapshot`."""

    def __init__(self, noun: str, name: str) -> None:
        super().__init__(f"no {noun} {name!r} in this store", hint=f"see: codebatch {noun} list")
        self.noun = noun
        self.name = name


class NoBatch(UnknownId):
    """No batch was given, and the current project has no batch."""

    code = "no_batch"
    exit_status = 3


class BatchRemoved(UnknownId):
    """A batch that was removed while it was read. Nothing is damaged."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was removed in the meantime", hint="list batches with: codebatch batch list")
        self.name = name


class AmbiguousId(InvalidInput):
    """A prefix that matches several IDs."""

    code = "ambiguous_id"


class InvalidConfiguration(InvalidInput):
    """A configuration file or value that cannot be used."""

    code = "invalid_configuration"


class TaskProcessFailed(InvalidConfiguration):
    """The process that imports a task ended without an answer, or took too long. Another machine may succeed."""


class InvalidWork(InvalidConfiguration):
    """The task lists contain `count` errors. The first errors are listed, each with a hint."""

    def __init__(self, problems: Sequence[tuple[str, str | None]], count: int) -> None:
        lines = [message if hint is None else f"{message}; {hint}" for message, hint in problems]
        if count > len(problems):
            lines.append(f"and {count - len(problems):,} more")
        self._lines = (problems[0][0],) if count == 1 else (f"{count:,} problems found", *lines)
        super().__init__("\n".join(self._lines), hint=problems[0][1] if count == 1 else None)

    @property
    def lines(self) -> tuple[str, ...]:
        """The message as it is displayed, one line per error."""
        return self._lines


class ToolMismatch(InvalidInput):
    """The tasks or tools of this installation differ from those of the plan, so results would differ."""

    code = "tool_mismatch"


class WrongBatchKind(InvalidInput):
    """The command does not support this kind of batch."""

    code = "wrong_kind"


class UnknownCursor(InvalidInput):
    """A cursor that no event of the batch has. It may be that of another batch."""

    code = "unknown_cursor"


class Forbidden(InvalidInput):
    """A request to `codebatch serve` without its token, from another page, or for more than the server allows."""

    code = "forbidden"


class BatchIncomplete(CodebatchError):
    """The batch ended or stopped, and some planned results are missing."""

    code = "batch_incomplete"
    exit_status = 3


class BatchCancelled(BatchIncomplete):
    """A task list was cancelled before all its tasks were done."""

    code = "batch_cancelled"


class BatchBlocked(BatchIncomplete):
    """All remaining tasks of a task list wait for answers."""

    code = "batch_blocked"


class BatchRunning(BatchIncomplete):
    """Another process is running this task list."""

    code = "batch_running"


class EnvironmentBroken(BatchIncomplete):
    """One worker after another died without a result. The cause is the machine, not a file."""

    code = "environment_broken"


class StoreError(CodebatchError):
    """The store cannot be used as it is, or its disk failed."""

    code = "store_error"
    exit_status = 4


class UnsupportedFileSystem(StoreError):
    """A file system that cannot do what the store needs. `lacks` is the operation, for example "make hard links"."""

    def __init__(self, path: str, lacks: str, reason: str | None = None) -> None:
        suffix = f": {reason}" if reason else ""
        super().__init__(
            f"the file system of {path} cannot {lacks}, which the store needs{suffix}",
            hint="put the store on a local disk with --store PATH",
        )
        self.path = path
        self.lacks = lacks
        self.reason = reason


class StoreNotFound(StoreError):
    """No store exists at the given path, or in the current project."""

    code = "store_not_found"


class UnsafeStoreLocation(StoreError):
    """The store would be created in `/`, $HOME or a directory that other users may write to.

    It is created there only if its path is given explicitly.
    """

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(
            f"will not create a store in {directory} unless --store gives this location, because {reason}",
            hint=f"run in a project directory, or give a location: --store {directory.rstrip('/')}/.codebatch",
        )
        self.directory = directory
        self.reason = reason


class StoreUntrusted(StoreError):
    """The directory is not a codebatch store, or has a format that this version cannot read."""

    code = "store_foreign"


class StoreCorrupt(StoreError):
    """A file of the store is damaged or missing. The message names the file."""

    code = "store_corrupt"


class CorruptFile(StoreCorrupt):
    """A file of the store that is missing, damaged or not made by codebatch.

    The message consists of `path` and `problem`, such as `is damaged`.
    """

    def __init__(self, path: str, problem: str, *, hint: str) -> None:
        super().__init__(f"{path} {problem}", hint=hint)
        self.path = path
        self.problem = problem


class UnsupportedEntry(StoreUntrusted, StoreCorrupt):
    """An entry of the store with the wrong type, such as a link, FIFO, socket, device, file or directory.

    Queries that do not read this entry still work.
    """


class ObjectMissing(StoreCorrupt):
    """An object is missing from the store, or does not match its hash."""

    code = "object_missing"


class StoreUnwritable(StoreError):
    """The disk refused a write: it is full, read-only or failing."""

    code = "store_unwritable"


class StoreInUse(StoreError):
    """Another process writes to the store, and the command needs exclusive access."""

    code = "store_in_use"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint or "run the same command again when the other run has ended")


class SnapshotUnstable(StoreError):
    """A file kept changing while it was read, so no consistent snapshot is possible."""

    code = "snapshot_unstable"


class SourceUnreadable(StoreError):
    """A file or directory of the project could not be read."""

    code = "source_unreadable"


class UnreadablePath(SourceUnreadable):
    """A path of the project that the operating system cannot read. `path` is the path as it is displayed."""

    def __init__(self, path: str, reason: str | None, *, hint: str | None = None) -> None:
        super().__init__(f"cannot read {path}: {reason}", hint=hint)
        self.path = path
        self.reason = reason


class NothingToDo(CodebatchError):
    """No file, shard or task was selected, so there is nothing to run."""

    code = "nothing_to_do"
    exit_status = 5


class NothingLeft(NothingToDo):
    """All selected tasks of a task list are done.

    `root` is the directory of the list, and `batch` is the ID of the latest batch of the list.
    """

    def __init__(self, message: str, *, root: bytes, batch: str) -> None:
        super().__init__(message)
        self.root = root
        self.batch = batch


def make_error(code: str, message: str, hint: str | None) -> CodebatchError:
    """Return the error that another process reported: the class for `code`, with its message and hint.

    If the code is unknown, return InternalError.
    """
    kinds: list[type[CodebatchError]] = [CodebatchError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if kind is not CodebatchError and kind.code == code:
            return kind(message, hint=hint)
    return InternalError(message, hint=hint)


class InternalError(CodebatchError):
    """A bug in codebatch. The message says where. Please report it."""

    code = "internal"
    exit_status = 70
