"""Settings of questions in work files: patterns, and automatic answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from codebatch.model.work.work_batch import AnsweringPolicy
from codebatch.work.definition.problems import Problems
from codebatch.work.definition.tables import AnsweringTable


def answering_of(table: AnsweringTable, place: object, problems: Problems) -> AnsweringPolicy:
    """Convert `[answering]`. Add errors to the problems."""
    for number, rule in enumerate(table.rules, start=1):
        where = f"{place}, rule {number}"
        check_pattern(rule.match, where, problems)
        if bool(rule.answer) == rule.human:
            problems.add(f"{where} needs an answer, or human = true")
    if not table.rules and not table.command:
        problems.add(f"{place} has neither `rules` nor `command`", "set `rules` or `command`")
    return msgspec.convert(msgspec.to_builtins(table), AnsweringPolicy)


def check_pattern(pattern: str, place: object, problems: Problems, *, groups: Sequence[str] | None = None) -> None:
    """Report an invalid regular expression. Report named groups other than `groups`."""
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        problems.add(f"{place} has an invalid regular expression: {error}")
        return
    for name in compiled.groupindex:
        if groups is not None and name not in groups:
            problems.add(f"{place} has an unknown group {name!r}", f"use only {' and '.join(groups)}")
