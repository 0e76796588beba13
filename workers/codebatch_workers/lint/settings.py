"""The parts of `[tasks.lint]`: which rules look, how bad a finding is, the user's rules (config.py has the whole)."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from codebatch.model.record import Severity

DEFAULT_TODO_WORDS = ("TODO", "FIXME", "XXX", "HACK")


class _StrictTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table; a key that it does not have is an error."""


class RuleSettings(_StrictTable, frozen=True, kw_only=True):
    """Which rules look, and how bad what they find is. Codes may be given by their beginning and a star."""

    off: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    severity: dict[str, Severity] = {}


class PathSettings(RuleSettings, frozen=True, kw_only=True):
    """Other settings for paths that match one of the patterns (gitignore's); later ones come on top of earlier ones."""

    match: tuple[str, ...]


class QueryRule(_StrictTable, frozen=True, kw_only=True):
    """A rule of the user's: a tree-sitter query or a pattern over files of one language (query_rules.py).

    `bad` and `good` are sources in which it must find something, and must not: `codebatch rules test` looks.
    """

    id: str
    language: str
    query: str = ""
    pattern: str = ""
    message: str
    severity: Severity = "warning"
    bad: tuple[str, ...] = ()
    good: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.query) == bool(self.pattern):
            raise ValueError(f"the rule {self.id!r} must have either a `query` or a `pattern`")


class TodoPolicy(_StrictTable, frozen=True, kw_only=True):
    """Which words `todo-comment` looks for, and the expression that makes one all right where it matches there."""

    words: tuple[str, ...] = DEFAULT_TODO_WORDS
    allow: str = ""

    def __post_init__(self) -> None:
        try:
            re.compile(self.allow)
        except re.error as error:
            raise ValueError(f"`todo.allow` is not a valid regular expression: {error}") from error


class RuffSettings(_StrictTable, frozen=True, kw_only=True):
    """`pinned`: the rules of ruff_rules.py; `project`: as the tree's own files say (ruff_files.py)."""

    config: Literal["pinned", "project"] = "pinned"


class AllSettings(RuleSettings, frozen=True, kw_only=True):
    """Everything that `[tasks.lint]` may say. Whether there are such rules is not looked at (config.py)."""

    paths: tuple[PathSettings, ...] = ()
    rules: tuple[QueryRule, ...] = ()
    todo: TodoPolicy = TodoPolicy()
    ruff: RuffSettings = RuffSettings()
