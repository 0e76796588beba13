"""The tables of `[tasks.lint]`: enabled rules, severities, custom rules. config.py validates all tables together."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from codebatch.model.record import Severity

DEFAULT_TODO_WORDS = ("TODO", "FIXME", "XXX", "HACK")


class _StrictTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table in which an unknown key is an error."""


class RuleSettings(_StrictTable, frozen=True, kw_only=True):
    """Rules to turn on and off, and the severities of rules. In these settings, a code can be a prefix with `*`."""

    off: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    severity: dict[str, Severity] = {}


class PathSettings(RuleSettings, frozen=True, kw_only=True):
    """Settings for paths that match one of several patterns (gitignore syntax).

    They override the settings before them.
    """

    match: tuple[str, ...]


class QueryRule(_StrictTable, frozen=True, kw_only=True):
    """A custom rule: a tree-sitter query or a pattern for files of one language (query_rules.py).

    `bad` are sources in which the rule must match, and `good` are sources in which it must not. `codebatch rules test`
    checks both.
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
    """The words that `todo-comment` reports, and a regular expression for exceptions.

    The expression is matched at the word.
    """

    words: tuple[str, ...] = DEFAULT_TODO_WORDS
    allow: str = ""

    def __post_init__(self) -> None:
        try:
            re.compile(self.allow)
        except re.error as error:
            raise ValueError(f"`todo.allow` is not a valid regular expression: {error}") from error


class RuffSettings(_StrictTable, frozen=True, kw_only=True):
    """The mode of ruff. `pinned` runs the rules in ruff_rules.py. `project` uses the project's configuration files."""

    config: Literal["pinned", "project"] = "pinned"


class LintSettings(RuleSettings, frozen=True, kw_only=True):
    """The settings in `[tasks.lint]`. config.py checks the rule codes in them."""

    paths: tuple[PathSettings, ...] = ()
    rules: tuple[QueryRule, ...] = ()
    todo: TodoPolicy = TodoPolicy()
    ruff: RuffSettings = RuffSettings()
