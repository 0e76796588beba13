"""One tree of errors. The class says who is at fault: the caller, the store, the source, the batch, or we.

`code` is what `--json` prints, `exit_status` what the process ends with, which only of a signal is not the class's. The
table in SPEC.md "Exit statuses" is made of these classes. What is met in several places has a class below the cause's,
which takes the facts as fields and makes the text and the hint of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, as opposed to a KeyboardInterrupt that some task raises."""


class CodebatchError(Exception):
    """Base of every error that codebatch raises on purpose. Never raised itself."""

    code: ClassVar[str] = "internal"
    exit_status: int = 70

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def lines(self) -> tuple[str, ...]:
        """The message as people are shown it."""
        return (self.message,)


class Stopped(CodebatchError):
    """A signal ended it before it could be told how it went: SIGINT; SIGTERM is 143, and SIGHUP 129."""

    code = "interrupted"
    exit_status = 130

    def __init__(self, message: str, *, hint: str | None = None, exit_status: int = 130) -> None:
        super().__init__(message, hint=hint)
        self.exit_status = exit_status

    @classmethod
    def before_mending(cls, damage: StoreCorrupt, exit_status: int) -> Stopped:
        """Of damage that was met after the signal."""
        return cls(f"stopped, and not mended: {damage.message}", hint=damage.hint, exit_status=exit_status)


class InvalidInput(CodebatchError):
    """The caller asked for something that cannot be: an unknown option value, a path that is not there."""

    code = "invalid_input"
    exit_status = 2


class InvalidQuery(InvalidInput):
    """A query that its grammar refuses. `place` is where in its `text`: a row and a column, from 0."""

    def __init__(self, message: str, *, hint: str, text: str, place: tuple[int, int]) -> None:
        super().__init__(message, hint=hint)
        self.text = text
        self.place = place


class InvalidId(InvalidInput):
    """An id from outside that is no id (hostile or misspelt); nothing was looked up."""

    code = "invalid_id"


class UnknownId(InvalidInput):
    """An id that names nothing in this store."""

    code = "unknown_id"


class NotInStore(UnknownId):
    """There is no batch, or no snapshot, of that name. `noun` is which."""

    def __init__(self, noun: str, name: str) -> None:
        super().__init__(f"there is no {noun} {name!r} in this store", hint=f"see: codebatch {noun} list")
        self.noun = noun
        self.name = name


class NoBatchOfProject(UnknownId):
    """No batch was named, and the current project has none."""

    code = "no_batch_of_project"
    exit_status = 3


class CollectedMeanwhile(UnknownId):
    """A batch that went while it was read: nothing is damaged."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was collected meanwhile", hint="see what there is: codebatch batch list")
        self.name = name


class AmbiguousId(InvalidInput):
    """A prefix that names several things."""

    code = "ambiguous_id"


class InvalidConfiguration(InvalidInput):
    """A configuration file or value that cannot be used."""

    code = "invalid_configuration"


class InvalidWork(InvalidConfiguration):
    """What is wrong with work files, `count` things of which some are told, each as a sentence and what to do."""

    def __init__(self, told: Sequence[tuple[str, str | None]], count: int) -> None:
        lines = [message if hint is None else f"{message}; {hint}" for message, hint in told]
        if count > len(told):
            lines.append(f"and {count - len(told):,} more")
        self._lines = (told[0][0],) if count == 1 else (f"{count:,} things are wrong with what is to be done", *lines)
        super().__init__("\n".join(self._lines), hint=told[0][1] if count == 1 else None)

    @property
    def lines(self) -> tuple[str, ...]:
        """The message as people are shown it: where there are several things, one a line."""
        return self._lines


class ToolMismatch(InvalidInput):
    """This process's tasks or tools differ from those the plan was made with, so its results would differ."""

    code = "tool_mismatch"


class WrongKind(InvalidInput):
    """A command that is for analyses was given a batch of commands, or the other way round."""

    code = "wrong_kind"


class BatchIncomplete(CodebatchError):
    """The batch ended, or was left, without a result for every planned item."""

    code = "batch_incomplete"
    exit_status = 3


class BatchCancelled(BatchIncomplete):
    """A batch of commands was cancelled before all of them were done."""

    code = "batch_cancelled"


class BatchBlocked(BatchIncomplete):
    """Nothing is left of a batch of commands but what waits for answers."""

    code = "batch_blocked"


class BatchConducted(BatchIncomplete):
    """Another process conducts this batch of commands, and only one may."""

    code = "batch_conducted"


class EnvironmentBroken(BatchIncomplete):
    """Worker after worker died without committing anything: the machine, not a file, is at fault."""

    code = "environment_broken"


class StoreError(CodebatchError):
    """The store cannot be used as it is, or the disk under it failed."""

    code = "store_error"
    exit_status = 4


class UnfitFileSystem(StoreError):
    """A file system without a call on which the promises of the protocol rest. `lacks`: "make hard links"."""

    def __init__(self, path: str, lacks: str, reason: str | None = None) -> None:
        told = f": {reason}" if reason else ""
        super().__init__(
            f"the file system of {path} cannot {lacks}, which the store needs{told}",
            hint="put the store on a local disk with --store PATH",
        )
        self.path = path
        self.lacks = lacks
        self.reason = reason


class StoreNotFound(StoreError):
    """No store at the named place, or none in the current project."""

    code = "store_not_found"


class UnsafeStorePlace(StoreError):
    """A place where a store is made only if the user names it: `/`, the home, or what everybody may write to."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"no store is made in {directory} unless it is named",
            hint=f"run in the directory of a project, or name a place: --store {directory.rstrip('/')}/.codebatch",
        )
        self.directory = directory


class StoreForeign(StoreError):
    """The directory is not a codebatch store, or one of a format this version does not read."""

    code = "store_foreign"


class StoreCorrupt(StoreError):
    """Bytes in the store do not say what they must. Names the file."""

    code = "store_corrupt"


class CorruptFile(StoreCorrupt):
    """A file of the store that is missing, damaged or another's. `problem` begins with its verb."""

    def __init__(self, path: str, problem: str, *, hint: str) -> None:
        super().__init__(f"{path} {problem}", hint=hint)
        self.path = path
        self.problem = problem


class StrangeEntry(StoreForeign, StoreCorrupt):
    """A link, FIFO, socket, device, file or directory in a place of the store that is for something else.

    It is damage of that place: what needs nothing of it is answered as ever.
    """


class ObjectMissing(StoreCorrupt):
    """An object is not in the store, or its bytes do not have its hash."""

    code = "object_missing"


class StoreUnwritable(StoreError):
    """The disk refused a write: full, read-only, or failing."""

    code = "store_unwritable"


class StoreInUse(StoreError):
    """Somebody writes to the store, and what was asked for needs it alone."""

    code = "store_in_use"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint or "run the same command again when that run has ended")


class SnapshotUnstable(StoreError):
    """A file kept changing while it was read, so no consistent snapshot can be had."""

    code = "snapshot_unstable"


class SourceUnreadable(StoreError):
    """A file or directory of the source tree could not be read."""

    code = "source_unreadable"


class UnreadablePath(SourceUnreadable):
    """A path of the source that the operating system refuses, as people are shown it."""

    def __init__(self, path: str, reason: str | None, *, hint: str | None = None) -> None:
        super().__init__(f"cannot read {path}: {reason}", hint=hint)
        self.path = path
        self.reason = reason


class NothingToDo(CodebatchError):
    """No file, or no shard, is what was named, so there is nothing to run."""

    code = "nothing_to_do"
    exit_status = 5


class NothingLeft(NothingToDo):
    """All tasks that were chosen of the list in the directory `root` are done. `batch` is the latest one of them."""

    def __init__(self, message: str, *, root: bytes, batch: str) -> None:
        super().__init__(message)
        self.root = root
        self.batch = batch


def error_of(code: str, message: str, hint: str | None) -> CodebatchError:
    """The error that another process of ours met, as far as it was told: its class by code, and its text."""
    kinds: list[type[CodebatchError]] = [CodebatchError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if kind is not CodebatchError and kind.code == code:
            return kind(message, hint=hint)
    return InternalError(message, hint=hint)


class InternalError(CodebatchError):
    """A bug in codebatch. The text says where; please report it."""

    code = "internal"
    exit_status = 70
