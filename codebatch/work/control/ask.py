"""The question of a running task, asked with `codebatch ask` (SPEC.md "Questions")."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.work.question import CHOICE_CHARACTERS_MAX, CHOICES_MAX, QUESTION_TEXT_BYTES_MAX, ReportedQuestion

ANSWER_POLL_SECONDS = 0.1
EXIT_NOT_ANSWERED = 75
"""Exit status of `codebatch ask` if there is no answer yet (EX_TEMPFAIL in sysexits.h)."""


class _AnswerRow(msgspec.Struct, frozen=True):
    """An answered question in the file that the variable CODEBATCH_ANSWERS names."""

    question: str
    answer: str


def ask_question(
    text: str,
    *,
    choices: Sequence[str] = (),
    human: bool = False,
    wait: bool = False,
    environ: Mapping[str, str] = os.environ,
    sleep: Callable[[float], None] = time.sleep,
) -> str | None:
    """Return the answer to a question of the task that this process belongs to, or None if there is none yet.

    If an earlier attempt asked the same text and was answered, that answer is returned at once. An attempt uses each
    answer only once. Otherwise, the question is recorded. It is asked when the attempt ends.

    With `wait`, the question is asked now, and the call returns when it is answered. If the attempt ends first, None is
    returned. `choices` are the allowed answers; if empty, any answer is allowed. With `human`, only a person may
    answer, not the rules or the program of `[answering]`. Raises InvalidInput if the process does not belong to a task,
    or if the question is invalid.
    """
    if "CODEBATCH_QUESTION" not in environ:
        raise InvalidInput(
            "this process is not running as a task",
            hint="codebatch-ask works only in tasks started by: codebatch work run",
        )
    text = text.strip().encode("utf-8", "replace").decode()
    if not text or len(text.encode("utf-8", "replace")) > QUESTION_TEXT_BYTES_MAX:
        raise InvalidInput("a question must not be empty, or longer than 64 KiB")
    if not all(choice.strip() and choice.isprintable() for choice in choices):
        raise InvalidInput("a choice must be one non-empty line of text")
    if len(choices) > CHOICES_MAX or any(len(choice) > CHOICE_CHARACTERS_MAX for choice in choices):
        raise InvalidInput(f"at most {CHOICES_MAX} choices of {CHOICE_CHARACTERS_MAX:,} characters are allowed")
    place = Path(environ["CODEBATCH_QUESTION"])
    answer = _find_earlier_answer(place.parent, environ.get("CODEBATCH_ANSWERS", ""), text, choices)
    if answer is not None:
        return answer
    question = msgspec.json.encode(ReportedQuestion(text=text, choices=tuple(choices), is_human=human))
    name = f"ask-{time.time_ns():020}-{os.getpid()}"
    try:
        hidden = place.parent / f".{name}"
        hidden.write_bytes(question)
        hidden.replace(place.parent / f"{name}.json" if wait else place)
    except OSError as error:
        raise InvalidInput(f"the task that asked the question has ended: {error.strerror}") from error
    return _wait_for_answer(place.parent / f"{name}.answer", sleep) if wait else None


def _find_earlier_answer(directory: Path, answers: str, text: str, choices: Sequence[str]) -> str | None:
    """Return the first recorded answer to the question that this attempt has not used. Record that it is used now.

    Return None if there is no such answer.
    """
    try:
        rows = msgspec.json.decode(Path(answers).read_bytes(), type=tuple[_AnswerRow, ...])
    except (OSError, ValueError):
        return None
    for number, row in enumerate(rows):
        if row.question == text and (not choices or row.answer in choices):
            with contextlib.suppress(OSError):
                os.close(os.open(directory / f"given-{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                return row.answer
    return None


def _wait_for_answer(path: Path, sleep: Callable[[float], None]) -> str | None:
    while path.parent.exists():
        with contextlib.suppress(OSError):
            return path.read_text(encoding="utf-8", errors="replace")
        sleep(ANSWER_POLL_SECONDS)
    return None
