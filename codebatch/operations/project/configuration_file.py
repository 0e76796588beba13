"""Adding to a project's configuration file: text at its end, and nothing of what is there is touched."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.task import Json
from codebatch.model.text.toml import BYTES_MAX, TomlError, parse_toml
from codebatch.operations.project.configuration import Configuration
from codebatch.system.files.regular_files import read_regular

NEW_NAME = "codebatch.toml"
_OWN_TABLE = ("tool", "codebatch")


class ConfigurationFile:
    """The file that is in effect where the user stands, or the one that would be there."""

    def __init__(self, configuration: Configuration, start: Path) -> None:
        self.path = configuration.file or start / NEW_NAME
        self._is_there = configuration.file is not None
        self._above = () if self.path.name == NEW_NAME else _OWN_TABLE

    def table(self, words: tuple[str, ...], values: Mapping[str, Json], *, is_array: bool, comment: str) -> str:
        """A table as text. `words` name it below our part of the file."""
        name = ".".join((*self._above, *words))
        head = f"[[{name}]]" if is_array else f"[{name}]"
        return "\n".join([f"# {comment}", head, *(f"{key} = {_toml(value)}" for key, value in values.items())]) + "\n"

    def append(self, text: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Add a table at the end, in the manner of the file. `change` makes of what is set what must be set then.

        Raises InvalidInput where what is there cannot be gone on from so, or OSError.
        """
        if self.path.is_symlink():
            hint = f"run the command in the directory of the file that the link points to: {self.path.resolve()}"
            raise InvalidInput(f"{self.path} is a symbolic link", hint=hint)
        before = read_regular(self.path, bytes_max=BYTES_MAX, is_link_followed=False) if self._is_there else b""
        ending = b"\r\n" if b"\r\n" in before else b"\n"
        gap = ending if before else b""
        if before and not before.endswith(b"\n"):
            gap += ending
        added = gap + text.encode().replace(b"\n", ending)
        expected = parse_toml(before.decode())
        own: Any = expected
        for word in self._above:
            own = own.setdefault(word, {})
        wanted = deepcopy(own)
        change(wanted)
        try:
            found: Any = parse_toml((before + added).decode())
            for word in self._above:
                found = found[word]
        except TomlError:
            found = None
        if found != wanted:
            head = text.split("\n")[1]
            told = f"cannot add {head} to {self.path}: the file has inline tables or dotted keys"
            raise InvalidInput(
                told, hint=f"write these settings as tables with headers such as {head}, or add the setting by hand"
            )
        self._write(added)

    def _write(self, added: bytes) -> None:
        """All of it, or nothing: where the disk is full the file is as it was."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        flags |= 0 if self._is_there else os.O_CREAT | os.O_EXCL
        descriptor = os.open(self.path, flags, 0o666)
        try:
            size = os.fstat(descriptor).st_size
            try:
                if os.write(descriptor, added) != len(added):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            except OSError:
                os.ftruncate(descriptor, size)
                if not self._is_there:
                    self.path.unlink()
                raise
        finally:
            os.close(descriptor)


def _toml(value: Json) -> str:
    """A text, or several, as TOML, whose texts are those of JSON but for DEL."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
