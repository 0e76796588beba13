"""Inputs of a command with `skip_if_unchanged`: all that the task list names, with its content.

The content of files is always read, because their sizes and times can stay the same.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import display_path, is_utf8
from codebatch.model.work.command import Command, encode_command
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.matching_files import find_matching_files, first_unreadable
from codebatch.snapshotting.stat_cache import stat_at

INPUT_FILES_MAX = 100_000
_CHUNK_BYTES = 1 << 20
_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

CommandInputs = dict[str, str]
"""The digest of each input, by its name for people."""


class InputsUnknown(Exception):
    """The error that the inputs of a command cannot be determined. The message is a sentence."""


def read_inputs(
    command: Command,
    root: Path,
    variables: Mapping[str, str],
    outputs: Mapping[str, Digest],
    may_continue: Callable[[], bool],
) -> CommandInputs:
    """Return the inputs of a command. `variables` are those of the task list. `outputs` are those of needed tasks.

    Raises InputsUnknown, also if `may_continue` returns False.
    """
    definition = encode_command(msgspec.structs.replace(command, timeout_seconds=None))
    inputs: CommandInputs = {"its definition": digest_bytes(definition)}
    for name, value in variables.items():
        inputs[f"variable {name}"] = digest_bytes(value.encode("utf-8", "surrogatepass"))
    for id_ in sorted({id_ for ids in (command.outputs_of or {}).values() for id_ in ids}):
        if id_ not in outputs:
            raise InputsUnknown(f"the outputs of {id_} are not known")
        inputs[f"outputs of {id_}"] = outputs[id_]
    try:
        with DirectoryDescriptors(bytes(root)) as directories:
            found = find_matching_files(directories, command.inputs or ())
            if not found:
                raise InputsUnknown("no file matches its inputs")
            named = [os.path.normpath(os.path.join(command.cwd, file)) for file in command.files]
            named += [command.stdin.removeprefix("file:")] if command.stdin.startswith("file:") else []
            found |= {os.fsencode(path): stat_at(directories, os.fsencode(path)) for path in named}
            if len(found) > INPUT_FILES_MAX:
                raise InputsUnknown(f"more than {INPUT_FILES_MAX:,} files match its inputs")
            for path, status in found.items():
                name = f"file {path.decode()}" if is_utf8(path) else f"file {display_path(path)} ({path.hex()})"
                inputs[name] = _read_file(directories, path, status.mode, os.fsencode(root), may_continue)
    except OSError as error:
        raise InputsUnknown(f"its inputs cannot be read: {first_unreadable(error)}") from error
    return inputs


def _read_file(
    directories: DirectoryDescriptors, path: bytes, mode: int, root: bytes, may_continue: Callable[[], bool]
) -> Digest:
    """Return the digest of a file, with its permission to be executed and, if it is a link, its target."""
    directory, _, name = path.rpartition(b"/")
    parent = directories.open_directory(directory)
    target = b""
    if stat.S_ISLNK(mode):
        target = os.readlink(name, dir_fd=parent)
        real = os.path.realpath(os.path.join(root, path))
        if not real.startswith(os.path.join(os.path.realpath(root), b"")):
            raise InputsUnknown(f"its input {display_path(path)} is a link to a place outside of the project")
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=parent)
    except OSError as error:
        raise InputsUnknown(f"its input {display_path(path)} cannot be read: {error.strerror}") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise InputsUnknown(f"its input {display_path(path)} is not a file")
    with open(descriptor, "rb") as file:
        hasher = hashlib.sha256(b"%b\0%d\0" % (target, status.st_mode & stat.S_IXUSR))
        while data := file.read(_CHUNK_BYTES):
            hasher.update(data)
            if not may_continue():
                raise InputsUnknown("a request stopped the reading of its inputs")
    return Digest(hasher.hexdigest())


def inputs_digest(inputs: CommandInputs) -> Digest:
    """Return the digest of the inputs of a command."""
    return digest_bytes(msgspec.json.encode(sorted(inputs.items())))


def first_difference(before: CommandInputs, after: CommandInputs) -> str:
    """Return the name of the first input that differs, or an empty text."""
    return next((name for name in sorted(before.keys() | after) if before.get(name) != after.get(name)), "")
