"""The gate `verify`: the command `verify` of a task must succeed in the tree with the changes of this task.

The command comes from the configuration of the project in which the user stands, never from a store or an analysed
tree. It is run by a shell, and no name or content is inserted into it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from codebatch.errors import InvalidInput, StoreUnwritable
from codebatch.model.change import ChangeRefusal, ProposedChange
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry, is_safe_path
from codebatch.model.program_call import ProgramCall, ProgramFailed
from codebatch.model.text.quantities import count_text
from codebatch.operations.project.configuration import Configuration, load_configuration
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.protocol.launch import program_environment
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.reserved_names import is_bare_repository
from codebatch.system.files.locked_directories import VERIFY_PREFIX, locked_directory
from codebatch.system.files.writable_tree import TreeFileContent, WritableTree
from codebatch.system.processes.programs import run_program

EVIDENCE_LINES = 3
EVIDENCE_CHARACTERS_MAX = 300
_SHELL = "/bin/sh"
_UNRUNNABLE_TEXTS = {126: "it cannot be run (status 126)", 127: "it was not found (status 127)"}
_OUTPUT_BYTES_MAX = 64 << 20
_WRITTEN_BYTES_MAX = 1 << 30


class NewFileState(msgspec.Struct, frozen=True):
    """The new state of a file: the digest of its content, or None if it is deleted; and its executable bit."""

    after: Digest | None
    executable: bool


def verify_changes(
    question: BatchQuery, changes: Sequence[ProposedChange], *, accepts_broken_base: bool
) -> list[ProposedChange]:
    """Return changes, of which those of a task are refused if the command `verify` of this task fails with them.

    A command that also fails in the tree without changes, or cannot be run, decides nothing. So the changes are refused
    unless `accepts_broken_base` is set. A note is printed before a command runs. Raises InvalidConfiguration,
    ObjectMissing, StoreCorrupt, or StoreUnwritable if the tree cannot be written.
    """
    tasks = sorted({change.task for change in changes if change.refusal is None})
    configuration = load_configuration(question.store.user_directory) if tasks else None
    commands = {} if configuration is None else configuration.verify_commands
    refusals: dict[str, ChangeRefusal] = {}
    for task in tasks:
        if configuration is None or not commands.get(task):
            continue
        if not _is_own_project(configuration, question):
            question.note(f"`verify` of {task} is not run: {configuration.file} is not in the root of the project")
            continue
        chosen = {
            change.change.path: NewFileState(change.change.after, change.change.executable)
            for change in changes
            if change.task == task and change.refusal is None
        }
        verifier = _Verifier(question, commands[task], configuration.settings.project_seconds_max)
        question.note(f"verifying {count_text(len(chosen), 'change')} of {task} with: {commands[task]}")
        failure = verifier.find_failure(chosen)
        if failure and verifier.find_failure({}):
            failure = f"it also fails without the changes: {failure}"
            if accepts_broken_base:
                question.note(f"`verify` of {task} is not used, because {failure}")
                continue
            question.note(f"`verify` of {task} cannot check the changes. Repair it, or add --accept-broken-base")
        if failure:
            refusals[task] = ChangeRefusal(gate="verify", evidence=failure)
    return [msgspec.structs.replace(change, refusal=change.refusal or refusals.get(change.task)) for change in changes]


def _is_own_project(configuration: Configuration, question: BatchQuery) -> bool:
    file = configuration.file
    return file is not None and (os.fsencode(file.parent.resolve()),) == question.batch.about.sources


class _Verifier:
    """Runs one command in trees that are made from the snapshot of a batch."""

    def __init__(self, question: BatchQuery, command: str, seconds_max: float) -> None:
        self._entries = question.records.snapshot.entries
        self._objects: ObjectStore = question.store.objects()
        self._command = command
        self._seconds_max = seconds_max

    def find_failure(self, changed: Mapping[bytes, NewFileState]) -> str:
        """Run the command in a new tree with changes. Return the reason why it failed, or an empty text."""
        with locked_directory(VERIFY_PREFIX) as path:
            directory = str(path)
            tree, scratch = os.path.join(directory, "tree"), os.path.join(directory, "tmp")
            os.mkdir(scratch)
            try:
                write_tree(os.fsencode(tree), self._entries, self._objects, changed)
            except OSError as error:
                raise StoreUnwritable(f"the tree for `verify` cannot be written to {tree}: {error.strerror}") from error
            call = ProgramCall(
                arguments=(_SHELL, "-c", self._command),
                directory=tree,
                environment=program_environment(os.environ) | {"TMPDIR": scratch},
                seconds_max=self._seconds_max,
                output_bytes_max=_OUTPUT_BYTES_MAX,
                file_bytes_max=_WRITTEN_BYTES_MAX,
            )
            try:
                end = run_program(call)
            except ProgramFailed as error:
                return _failure_text(str(error), error.error_output, directory)
        if end.exit_status == 0:
            return ""
        reason = _UNRUNNABLE_TEXTS.get(end.exit_status) or f"it ended with status {end.exit_status}"
        return _failure_text(reason, end.error_output or end.output, directory)


def write_tree(
    root: bytes, entries: Sequence[Entry], objects: ObjectStore, changed: Mapping[bytes, NewFileState]
) -> None:
    """Write the files of a snapshot below a new directory, with changes.

    Of the symbolic links, only those are created that lead to a path inside the tree. Raises OSError, ObjectMissing, or
    InvalidInput if git would take the directory for a repository.
    """
    os.mkdir(root)
    with WritableTree(root) as tree:
        for entry in entries:
            state = changed.get(entry.path, NewFileState(entry.object, entry.executable))
            if entry.kind == "submodule" or state.after is None or not is_safe_path(entry.path):
                continue
            content, is_link = objects.read(state.after), entry.kind == "symlink"
            if not is_link or is_inner_link(entry.path, content):
                tree.write(entry.path, TreeFileContent(content, is_link, state.executable))
        if is_bare_repository(tree.exists):
            raise InvalidInput(
                "`verify` is not run: git would take the copy of the files, which has no `.git`, for a repository",
                hint="apply the changes with --no-commands",
            )


def is_inner_link(path: bytes, target: bytes) -> bool:
    """Return whether a link leads to a path inside its tree. The directories above it must not be links.

    `..` is accepted only at the beginning of the target, because after another link it would mean another directory.
    """
    components = target.split(b"/")
    above = 0
    while above < len(components) and components[above] == b"..":
        above += 1
    is_absolute = target.startswith(b"/") or not target
    return not is_absolute and b".." not in components[above:] and above <= path.count(b"/")


def _failure_text(reason: str, output: bytes, directory: str) -> str:
    """Return a reason with the last lines of an output, in one line."""
    lines = [line.strip() for line in output.decode("utf-8", "replace").replace(directory, "…").splitlines()]
    last = " / ".join([line for line in lines if line][-EVIDENCE_LINES:])
    return f"{reason}: {last[-EVIDENCE_CHARACTERS_MAX:]}" if last else reason
