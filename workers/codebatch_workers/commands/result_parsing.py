"""What a command says as it ends: a question that it leaves, and what the JSON that it prints last says of it."""

from __future__ import annotations

import contextlib
import json
import math
import re
from pathlib import Path

import msgspec

from codebatch.errors import StoreError
from codebatch.model.outcome import CommandReport
from codebatch.model.text.color_codes import without_colors
from codebatch.model.work.command import Command
from codebatch.model.work.question import CHOICES_MAX, QUESTION_TEXT_BYTES_MAX, AskedQuestionText
from codebatch.system.files.files import Files
from codebatch.system.regex_timeout import MATCH_SECONDS_MAX, MatchTimeout, cpu_time_limit

RESULT_BYTES_MAX = 256 * 1024
"""The end of the output in which the last JSON object, and patterns of `retry_if` and `wait_if`, are looked for."""

TEXT_MAX = 2_000
_SESSION_MAX = 200
_OBJECTS_LOOKED_AT_MAX = 100
_STEP = re.compile("/([^/]*)")


class Ending(msgspec.Struct, frozen=True):
    """What a command asked as it ended, None where it did not; and what it said. `problem` is for its log."""

    asked: AskedQuestionText | None
    said: CommandReport | None
    problem: str = ""


def read_ending(command: Command, files: Files, question: Path | None, exit_status: int, output: bytes) -> Ending:
    """What the file of its question, where there is one, and the end of its output say. Colours are no part of that."""
    output = without_colors(output)
    found = _last_object(output) if command.result is not None else None
    said = None
    if command.result is not None and found is not None:
        said = CommandReport(
            text=_text(_at(found, command.result.text))[:TEXT_MAX],
            cost=_number(_at(found, command.result.cost)),
            session=_text(_at(found, command.result.session))[:_SESSION_MAX],
        )
    asked, problem = None if question is None else read_asked(files, question), ""
    if asked is None:
        asked, problem = _printed(command, exit_status, output)
    if asked is None and command.result is not None and found is not None:
        text = cut(_text(_at(found, command.result.question)))
        asked = AskedQuestionText(text=text) if text else None
    return Ending(asked, None if said == CommandReport() else said, problem)


def read_asked(files: Files, path: Path) -> AskedQuestionText | None:
    """The question in a file, as `codebatch ask` writes it or as mere text; None where there is none.

    What the command made instead of a file, a directory or a link, is none.
    """
    try:
        data = files.read_range(path, 0, QUESTION_TEXT_BYTES_MAX + 1)
    except (OSError, StoreError):
        return None
    try:
        asked = msgspec.json.decode(data, type=AskedQuestionText)
    except (msgspec.DecodeError, ValueError, RecursionError):
        asked = AskedQuestionText(text=data.decode("utf-8", "replace"))
    text = cut(asked.text)
    choices = tuple(each[:TEXT_MAX] for each in asked.choices[:CHOICES_MAX] if each.strip())
    return AskedQuestionText(text=text, choices=choices, is_human=asked.is_human) if text else None


def cut(text: str) -> str:
    """A question's text: as much of it as is kept, and such as JSON can hold."""
    data = text.strip().encode("utf-8", "replace")[:QUESTION_TEXT_BYTES_MAX]
    return data.decode("utf-8", "ignore")


def _printed(command: Command, exit_status: int, output: bytes) -> tuple[AskedQuestionText | None, str]:
    """What its `question` finds in the end of the output, and what was wrong with that."""
    rule, problem = command.question, ""
    if rule is None:
        return None, problem
    end = "\n".join(output.decode("utf-8", "replace").splitlines()[-rule.last_lines :])
    try:
        if rule.pattern and (text := _matched(rule.pattern, end)):
            return AskedQuestionText(text=text), problem
    except MatchTimeout:
        problem = f"the pattern of its question took longer than {MATCH_SECONDS_MAX:g} s and was ignored"
    if exit_status in rule.exits:
        return AskedQuestionText(text=cut(end) or f"it ended with status {exit_status} without output"), problem
    return None, problem


def _matched(pattern: str, text: str) -> str:
    """What the first match says that says something; `^` and `$` are the ends of any line. Raises MatchTimeout."""
    with cpu_time_limit():
        matches = re.finditer(pattern, text, re.MULTILINE)
        return next(filter(None, (cut(match.groupdict().get("text") or match[0]) for match in matches)), "")


def _last_object(output: bytes) -> object:
    """The last JSON object that begins a line."""
    text = output.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    at = len(text)
    for _ in range(_OBJECTS_LOOKED_AT_MAX):
        at = max(text.rfind("\n{", 0, at) + 1, 0) if "\n{" in text[:at] else 0
        if text.startswith("{", at):
            with contextlib.suppress(ValueError, RecursionError):
                return decoder.raw_decode(text, at)[0]
        if at == 0:
            return None
    return None


def _at(document: object, pointer: str) -> object:
    """What a JSON pointer points at; None where there is nothing."""
    if not pointer:
        return None
    for step in _STEP.findall(pointer):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document


def _number(value: object) -> float | None:
    """A number; None for what is none, and for one that no float can be."""
    with contextlib.suppress(OverflowError):
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    return None


def _text(value: object) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
