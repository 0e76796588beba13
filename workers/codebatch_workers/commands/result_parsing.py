"""Parsing of what a command leaves at its end: a question, and its report, the last JSON object in its output."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import msgspec

from codebatch.errors import StoreError
from codebatch.model.outcome import COST_MAX, CommandReport
from codebatch.model.text.color_codes import strip_color_codes
from codebatch.model.text.json_pointers import pointer_steps, resolve_steps
from codebatch.model.text.regex_timeout import MATCH_SECONDS_MAX, MatchTimeout, cpu_time_limit
from codebatch.model.work.command import Command, ResultPointers
from codebatch.model.work.question import (
    CHOICE_CHARACTERS_MAX,
    CHOICES_MAX,
    QUESTION_TEXT_BYTES_MAX,
    ReportedQuestion,
)
from codebatch.system.files.files import StoreFiles

RESULT_BYTES_MAX = 256 * 1024
"""The maximum size of the end of the output in which reports, `retry_if` and `wait_if` are searched, in bytes."""

RESULT_TEXT_CHARACTERS_MAX = 2_000
SLOW_QUESTION_TEXT = (
    f"the pattern of `question` took longer than {MATCH_SECONDS_MAX:g} s, so it is not known what it asked:"
)
_SESSION_CHARACTERS_MAX = 200
_OBJECTS_TRIED_MAX = 100


class AttemptEnding(msgspec.Struct, frozen=True):
    """The question and the report that a command left at its end. Each is None if there is none.

    `problem` says which values of the report are missing, or is empty.
    """

    reported_question: ReportedQuestion | None
    said: CommandReport | None
    problem: str = ""


def read_ending(
    command: Command, files: StoreFiles, question: Path | None, exit_status: int, output: bytes
) -> AttemptEnding:
    """Return the question and the report of an ended command.

    There are three sources of a question, tried in this order: the question file, a match of the command's rule
    `question` in the output, the last JSON object in the output. This object is also the report. Color codes in the
    output are ignored.
    """
    output = strip_color_codes(output)
    last_object = None if command.result is None else _last_object(output)
    reported = None if question is None else read_question_file(files, question)
    if reported is None:
        reported = _question_in_output(command, exit_status, output)
    if reported is None and command.result is not None:
        text = cut_question_text(_as_text(_resolve_pointer(last_object, command.result.question)) or "")
        reported = ReportedQuestion(text=text) if text else None
    if command.result is None:
        return AttemptEnding(reported, None)
    report, problem = _make_report(command.result, last_object)
    return AttemptEnding(reported, None if report == CommandReport() else report, "" if reported else problem)


def _make_report(pointers: ResultPointers, last_object: object) -> tuple[CommandReport, str]:
    """Return the report in the last JSON object of the output, and which expected values it lacks, or ""."""
    text = _as_text(_resolve_pointer(last_object, pointers.text))
    cost = _as_cost(_resolve_pointer(last_object, pointers.cost))
    session = _as_text(_resolve_pointer(last_object, pointers.session))
    if session is not None and len(session) > _SESSION_CHARACTERS_MAX:  # A part of it would name another session.
        session = None
    read = (("text", pointers.text, text), ("cost", pointers.cost, cost), ("session", pointers.session, session))
    missing = [name for name, pointer, value in read if pointer and value is None]
    problem = f"the last JSON object of the output has no valid {' and '.join(missing)} for `result`" if missing else ""
    if missing and last_object is None:
        problem = f"the output has no JSON object with {' and '.join(missing)} for `result`"
    text = text or ""
    if len(text) > RESULT_TEXT_CHARACTERS_MAX:
        text = f"{text[: RESULT_TEXT_CHARACTERS_MAX - 1]}…"
    return CommandReport(text=text, cost=cost, session=session or ""), problem


def read_question_file(files: StoreFiles, path: Path) -> ReportedQuestion | None:
    """Return the question in a file, or None. The file contains JSON written by `codebatch ask`, or plain text.

    A command can put a directory or a link at this path. In that case, there is no question.
    """
    try:
        data = files.read_range(path, 0, QUESTION_TEXT_BYTES_MAX + 1)
    except (OSError, StoreError):
        return None
    try:
        reported = msgspec.json.decode(data, type=ReportedQuestion)
    except (msgspec.DecodeError, ValueError, RecursionError):
        reported = ReportedQuestion(text=data.decode("utf-8", "replace"))
    text, choices = reported.text, tuple(choice for choice in reported.choices if choice.strip())
    if len(choices) > CHOICES_MAX or any(len(choice) > CHOICE_CHARACTERS_MAX for choice in choices):
        text, choices = f"(its choices are too many or too long: any answer is allowed)\n{text}", ()
    text = cut_question_text(text)
    return ReportedQuestion(text=text, choices=choices, is_human=reported.is_human) if text else None


def cut_question_text(text: str) -> str:
    """Return the text of a question without invalid characters, at most QUESTION_TEXT_BYTES_MAX bytes long.

    A shortened text ends with `…`.
    """
    data = text.strip().encode("utf-8", "replace")
    if len(data) <= QUESTION_TEXT_BYTES_MAX:
        return data.decode()
    return f"{data[: QUESTION_TEXT_BYTES_MAX - len('…'.encode())].decode('utf-8', 'ignore')}…"


def _question_in_output(command: Command, exit_status: int, output: bytes) -> ReportedQuestion | None:
    """Return the question that the command's rule `question` finds in the output, or None.

    If the pattern takes too long, it is not known whether the command asked anything. Then a person is asked.
    """
    rule = command.question
    if rule is None:
        return None
    end = "\n".join(output.decode("utf-8", "replace").splitlines()[-rule.last_lines :])
    try:
        if rule.pattern and (text := _first_match(rule.pattern, end)):
            return ReportedQuestion(text=text)
    except MatchTimeout:
        text = f"{SLOW_QUESTION_TEXT}\n{end}"
        return ReportedQuestion(text=cut_question_text(text), is_human=True)
    if exit_status in rule.exits:
        return ReportedQuestion(text=cut_question_text(end) or f"it ended with status {exit_status} without output")
    return None


def _first_match(pattern: str, text: str) -> str:
    """Return the first matched text that is not empty, or "". `^` matches at each line start. Raises MatchTimeout."""
    with cpu_time_limit():
        matches = re.finditer(pattern, text, re.MULTILINE)
        return next(
            filter(None, (cut_question_text(match.groupdict().get("text") or match[0]) for match in matches)), ""
        )


def _last_object(output: bytes) -> object:
    """Return the last JSON object that starts at the beginning of a line, or None."""
    text = output.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    position = len(text)
    for _ in range(_OBJECTS_TRIED_MAX):
        position = max(text.rfind("\n{", 0, position) + 1, 0) if "\n{" in text[:position] else 0
        if text.startswith("{", position):
            with contextlib.suppress(ValueError, RecursionError):
                return decoder.raw_decode(text, position)[0]
        if position == 0:
            return None
    return None


def _resolve_pointer(document: object, pointer: str) -> object:
    """Return the value at a JSON pointer (RFC 6901). If there is none or the pointer is empty, return None."""
    value = resolve_steps(document, pointer_steps(pointer)) if pointer else None
    return None if value is msgspec.UNSET else value


def _as_cost(value: object) -> float | None:
    """Return a value if it is a number from 0 to COST_MAX, otherwise None."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= COST_MAX:
        return abs(float(value))  # -0.0 is 0.
    return None


def _as_text(value: object) -> str | None:
    """Return a value without invalid characters if it is text, otherwise None."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None
