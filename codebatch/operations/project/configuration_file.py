"""Additions to a project's configuration file. Text is only appended; existing text never changes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from codebatch.errors import InvalidInput
from codebatch.model.task import JsonValue
from codebatch.model.text.toml import TOML_BYTES_MAX, TomlError, parse_toml, toml_value
from codebatch.operations.project.configuration import Configuration
from codebatch.system.files.regular_files import read_regular

NEW_FILE_NAME = "codebatch.toml"
_OWN_TABLE = ("tool", "codebatch")


class ConfigurationFile:
    """The configuration file of the project. If the project has none, the file that would be created."""

    def __init__(self, configuration: Configuration, start: Path) -> None:
        self.path = configuration.file or start / NEW_FILE_NAME
        self._exists = configuration.file is not None
        self._prefix = () if self.path.name == NEW_FILE_NAME else _OWN_TABLE

    def table_text(
        self, words: tuple[str, ...], values: Mapping[str, JsonValue], *, is_array: bool, comment: str
    ) -> str:
        """Return a table as TOML text.

        `words` is the name of the table below the codebatch settings, for example `("tasks", "lint", "rules")`.
        `comment` can have several lines.
        """
        name = ".".join((*self._prefix, *words))
        head = f"[[{name}]]" if is_array else f"[{name}]"
        comments = (f"# {line}" for line in comment.split("\n"))
        members = (f"{key} = {toml_value(value)}" for key, value in values.items())
        return "\n".join([*comments, head, *members, ""])

    def append(self, text: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Append TOML text to the file, with the file's line ends.

        `change` applies the same change to the decoded settings. If the new file would not decode to these settings,
        InvalidInput is raised and nothing is written. Raises OSError.
        """
        if self.path.is_symlink():
            hint = f"run the command in the directory of the file that the link points to: {self.path.resolve()}"
            raise InvalidInput(f"{self.path} is a symbolic link", hint=hint)
        before = read_regular(self.path, bytes_max=TOML_BYTES_MAX, is_link_followed=False) if self._exists else b""
        ending = b"\r\n" if b"\r\n" in before else b"\n"
        gap = ending if before else b""
        if before and not before.endswith(b"\n"):
            gap += ending
        added = gap + text.encode().replace(b"\n", ending)
        expected = parse_toml(before.decode())
        settings: Any = expected
        for word in self._prefix:
            settings = settings.setdefault(word, {})
        expected_settings = deepcopy(settings)
        change(expected_settings)
        try:
            actual_settings: Any = parse_toml((before + added).decode())
            for word in self._prefix:
                actual_settings = actual_settings[word]
        except TomlError:
            actual_settings = None
        if actual_settings != expected_settings:
            head = next(line for line in text.split("\n") if not line.startswith("#"))
            message = f"cannot add {head} to {self.path}: the file has inline tables or dotted keys"
            raise InvalidInput(message, hint=f"write tables with headers such as {head} instead, or add {head} by hand")
        self._append_atomically(added)

    def _append_atomically(self, added: bytes) -> None:
        """Append all bytes or none.

        After a partial write, for example because the disk is full, the file is restored.
        """
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        flags |= 0 if self._exists else os.O_CREAT | os.O_EXCL
        descriptor = os.open(self.path, flags, 0o666)
        try:
            size = os.fstat(descriptor).st_size
            try:
                if os.write(descriptor, added) != len(added):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            except OSError:
                os.ftruncate(descriptor, size)
                if not self._exists:
                    self.path.unlink()
                raise
        finally:
            os.close(descriptor)
