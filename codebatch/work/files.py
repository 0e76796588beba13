"""Work files: where they are found, and what stands in them before it is looked at."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codebatch.application.configuration import load_configuration
from codebatch.errors import InvalidConfiguration, NothingToDo
from codebatch.model.toml import TomlError, parse_toml
from codebatch.system.regular import read_regular
from codebatch.work.checking import Place

WORK_FILE_BYTES_MAX = 64 << 20
DEFAULT_NAME = "work.toml"
# Where a file has its work list, by its name; others are one as a whole.
_TABLES = {"codebatch.toml": ("work",), "pyproject.toml": ("tool", "codebatch", "work")}

EXAMPLE = '[tasks.build]\nrun = "make"\n\n[tasks.test]\nrun = ["make", "test"]\nneeds = ["build"]'
"""The least that shows what a work file is."""


class WorkFile(NamedTuple):
    """A file that was read. `name` is how people named it, `above` the table that its work list is."""

    path: Path
    name: str
    above: tuple[str, ...]
    document: Mapping[str, object]

    def place(self, *words: str) -> Place:
        """A table of it."""
        return Place(self.name, ".".join((*self.above, *words)))

    @property
    def directory(self) -> Path:
        """Where it is, absolute and without links."""
        return self.path.parent.resolve()


def read_files(paths: Sequence[Path], here: Path) -> list[WorkFile]:
    """The named files; where none is named, the one that holds for a directory.

    Raises InvalidConfiguration for the first that cannot be read; NothingToDo where none is found.
    """
    if paths:
        return [_read(here / path, str(path)) for path in paths]
    configuration = load_configuration(here)
    if configuration.file is not None and "work" in configuration.set_in_file:
        return [_read(configuration.file, os.path.relpath(configuration.file, here))]
    if not os.path.lexists(here / DEFAULT_NAME):
        told = f"there is no {DEFAULT_NAME} in this directory, and no [work] in a codebatch.toml"
        raise NothingToDo(told, hint=nothing_hint())
    return [_read(here / DEFAULT_NAME, DEFAULT_NAME)]


def nothing_hint() -> str:
    """What to do where there is no work list: a whole one."""
    return f"write a {DEFAULT_NAME}, for example with: printf '{_escaped(EXAMPLE)}\\n' >{DEFAULT_NAME}"


def _escaped(text: str) -> str:
    """A text as printf(1) takes it, on one line."""
    return text.replace("\n", "\\n")


def _read(path: Path, name: str) -> WorkFile:
    if path.suffix != ".toml":
        told = "a directory" if path.is_dir() else f"'{path.suffix}'" if path.suffix else "a name without .toml"
        raise InvalidConfiguration(
            f"{name} is no TOML file ({told}), and this version reads no other work files",
            hint="name it work.toml, for example",
        )
    try:
        data = read_regular(path, bytes_max=WORK_FILE_BYTES_MAX, is_link_followed=True)
    except OSError as error:
        if error.errno == errno.EFBIG:
            told = f"{name} has {path.stat().st_size:,} bytes, and may have {WORK_FILE_BYTES_MAX:,}"
            raise InvalidConfiguration(told) from error
        raise InvalidConfiguration(f"cannot read {name}: {error.strerror}") from error
    document = _parse(data, name)
    above = _TABLES.get(path.name, ())
    for word in above:
        below = document.get(word)
        if not isinstance(below, dict):
            raise InvalidConfiguration(f"{name} has no [{'.'.join(above)}]", hint=f"or write a {DEFAULT_NAME}")
        document = below
    return WorkFile(path, name, above, document)


def _parse(data: bytes, name: str) -> dict[str, object]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidConfiguration(f"{name} is no UTF-8 (line {line})") from error
    try:
        return parse_toml(text, length_max=WORK_FILE_BYTES_MAX)
    except TomlError as error:
        raise InvalidConfiguration(f"{name} is no TOML: {error}") from error
