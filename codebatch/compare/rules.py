"""What the code that workers run knows of findings: whether a rule is off at a path, or why it does not tell one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple, cast

from codebatch.errors import CodebatchError
from codebatch.model.plan import PlannedTask
from codebatch.model.task import Json
from codebatch.plugins.worker_services import load_question
from codebatch.protocol.launch import SILENCING_MODULE

# How notes of ours begin, and what is in those that ruff and other linters heed.
_NOTE = b"codebatch: ignore"
_WORDS = (b"ruff", b"pylint", b"nosec", b"lgtm", b"noinspection")
_ANY_WORD = re.compile(rb"\b(?:%b)\b" % b"|".join(_WORDS))
# The task whose rules can be turned off, and whose doubts are known.
LINT = "lint"

Untold = Literal["suppressed", "withheld", "partially_parsed", ""]
# Path, content and contexts of a file; findings in it, each a line, a tool, a code and a message; whether it may have
# notes or a syntax error.
AskedFile = tuple[bytes, bytes, Mapping[str, bytes], Sequence[tuple[int, str, str, str]], bool]

Switch = Callable[[bytes, str, str], bool | None]


def switch_of(task: PlannedTask) -> Switch | None:
    """Whether a task's configuration has a rule off, asked with a path, a tool and a code; None of what it has not.

    None at all where all it has is on, or what it was configured with is not understood any more.
    """
    if task.name != LINT:
        return None
    ask = cast("Callable[[Mapping[str, Json]], Switch | None]", load_question("rule_switch", SILENCING_MODULE))
    return ask(task.config)


class PerFileLimits(NamedTuple):
    """How much lint tells of a file: a name of it once, by which rules; itself once; `findings_max` by any other."""

    once_a_name: frozenset[str]
    once_a_file: frozenset[str]
    findings_max: int


@cache
def per_file_limits() -> PerFileLimits:
    """How much lint tells of a file at most."""
    question = load_question("told_of_a_file", SILENCING_MODULE)
    return PerFileLimits(*cast("Callable[[], tuple[frozenset[str], frozenset[str], int]]", question)())


def has_notes(content: bytes) -> bool:
    """Whether a file may have a note of ours."""
    return _NOTE in content


def has_notes_of_others(content: bytes) -> bool:
    """Whether a file may have a note that ruff or another linter heeds."""
    if b"noqa" in content.lower():
        return True
    return any(word in content for word in _WORDS) and _ANY_WORD.search(content) is not None


def are_silenced(
    path: bytes, content: bytes, contexts: Mapping[str, bytes], findings: Sequence[tuple[int, str]]
) -> list[bool]:
    """Which findings a note of ours in a file silences, each given as line and code.

    Where the file is not understood any more none is.
    """
    ask = cast(
        "Callable[[bytes, bytes, Mapping[str, bytes], Sequence[tuple[int, str]]], list[bool]]",
        load_question("are_silenced", SILENCING_MODULE),
    )
    try:
        return ask(path, content, contexts, findings)
    except CodebatchError:
        return [False] * len(findings)


def why_untold(task: PlannedTask, asked: Sequence[AskedFile]) -> list[list[Untold]]:
    """Why lint, as it is configured, does not tell some findings of files.

    Nothing is known where the configuration is not understood any more.
    """
    question = load_question("why_untold")
    ask = cast("Callable[[Mapping[str, Json], Sequence[AskedFile]], list[list[Untold]] | None]", question)
    return ask(task.config, asked) or [[""] * len(wanted) for *_, wanted, _ in asked]
