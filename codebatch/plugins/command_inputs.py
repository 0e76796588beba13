"""Files that a command task executes or names, whose content can change its results (SPEC.md "Command tasks").

Such a file is the program, and every argument, word of a shell command or value in `env` that names a file. A word
without a slash also names a program on PATH.

Files of the project are part of the cache key. Other files differ between machines with different builds of one
version, and the key must be equal on all machines. So their digest is not in the key: it only decides whether this
machine reuses results. Files outside of the project that are not programs count only if they are an argument, because
a log or a cache that the program writes must not prevent reuse.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codebatch.errors import InvalidConfiguration
from codebatch.model.command_table import PLACEHOLDERS, CommandTable
from codebatch.model.digest import Digest, digest_bytes, digest_pairs
from codebatch.system.files.regular_files import file_fingerprint

_WORDS_MAX = 200
_BLOCK_BYTES = 1 << 20
_WORD = re.compile(r"[^\s'\"`;|&()<>=,]+")
_REDIRECTION = re.compile(r">{1,2}\s*[^\s;|&]+")
_PROGRAM_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
_SCRIPT_ENDINGS = (".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".sh", ".jar")
_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
"""Variables of the user that programs inherit and that can change their results."""
_PACKAGE_DIRECTORY = "node_modules"
_VENV_FILE = "pyvenv.cfg"


class CommandInputs(NamedTuple):
    """The files that a command names: digests by path of those in the project, and one digest of all others.

    `states` has the fingerprints of programs, taken before they were read.
    """

    project: dict[str, Digest]
    build: Digest
    states: dict[str, tuple[int, ...]]


def read_command_inputs(
    name: str, table: CommandTable, project: Path, program: str, environment: Mapping[str, str]
) -> CommandInputs:
    """Read the files that a command names. Raises InvalidConfiguration if a file of the project cannot be read.

    `environment` is that of the user, with the PATH on which programs are found.
    """
    root = os.path.realpath(project)
    arguments = {part for argument in table.command[1:] for part in (argument, argument.partition("=")[2])}
    in_project: dict[str, Digest] = {}
    outside = [(variable, digest_bytes(os.fsencode(environment.get(variable, "")))) for variable in _VARIABLES]
    states: dict[str, tuple[int, ...]] = {}
    for path, word in {program: program, **_named_files(table, root, environment)}.items():
        real_path = os.path.realpath(path)
        is_of_project = _is_of_project(real_path, root, table.link)
        is_program = os.access(path, os.X_OK) or path.endswith(_SCRIPT_ENDINGS)
        if not (is_of_project or is_program or word in arguments):
            continue
        try:
            state = file_fingerprint(path)
            digest = _file_digest(path)
        except OSError as error:
            if is_of_project:
                raise InvalidConfiguration(
                    f"cannot read {path!r} in `command` of the task {name!r}: {error.strerror}"
                ) from error
            continue  # A program that may be executed but not read: only its version is known.
        if is_program:
            states[path] = state
        if is_of_project:
            in_project[os.path.relpath(real_path, root)] = digest
        else:
            outside.append((os.path.basename(path), digest))
    return CommandInputs(dict(sorted(in_project.items())), digest_pairs(outside), states)


def _named_files(table: CommandTable, root: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the existing regular files that the words of a command name, each with its word."""
    directories = [path for path in environment.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(path)]
    search_path = os.pathsep.join(directories)
    named: dict[str, str] = {}
    for word in _words([*table.command[1:], *table.env.values()]):
        path: str | None = os.path.normpath(os.path.join(root, word))
        if path is not None and not os.path.isfile(path):
            path = shutil.which(word, path=search_path) if search_path and _PROGRAM_NAME.fullmatch(word) else None
        if path is not None:
            named[path] = word
    return named


def _words(texts: Sequence[str]) -> list[str]:
    """Return the first words of some texts, each once: whole texts, and parts that a shell would separate.

    The target of a redirection is omitted, because the program writes it.
    """
    words: dict[str, None] = {}
    for text in texts:
        if text not in PLACEHOLDERS:
            words |= dict.fromkeys((text, *_WORD.findall(_REDIRECTION.sub(" ", text))))
    return [word for word in list(words)[:_WORDS_MAX] if word and "\0" not in word]


def _is_of_project(path: str, root: str, linked: Sequence[str]) -> bool:
    """Return whether a file belongs to the project, and is not of a package that is installed in the project.

    The version of the program and the files in `lock` cover installed packages.
    """
    if not path.startswith(f"{root}/"):
        return False
    relative = path[len(root) + 1 :]
    if any(relative.startswith(f"{directory.rstrip('/')}/") for directory in linked):
        return False
    above = os.path.dirname(relative)
    while above:
        if os.path.basename(above) == _PACKAGE_DIRECTORY or os.path.exists(os.path.join(root, above, _VENV_FILE)):
            return False
        above = os.path.dirname(above)
    return True


def _file_digest(path: str) -> Digest:
    """Return the digest of a regular file. Raises OSError."""
    hasher = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(_BLOCK_BYTES):
            hasher.update(block)
    return Digest(hasher.hexdigest())
