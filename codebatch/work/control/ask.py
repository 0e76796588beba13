"""Asking people something from within a task: what `codebatch ask` does (SPEC.md "Questions")."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.work.question import CHOICES_MAX, QUESTION_TEXT_BYTES_MAX, AskedQuestionText

LOOK_SECONDS = 0.1
NOT_ANSWERED = 75
"""The exit status of who asked and is not answered yet (EX_TEMPFAIL)."""


class _AnswerRow(msgspec.Struct, frozen=True):
    """A row of CODEBATCH_ANSWERS."""

    question: str
    answer: str


def ask(
    text: str,
    *,
    choices: Sequence[str] = (),
    human: bool = False,
    wait: bool = False,
    environ: Mapping[str, str] = os.environ,
    sleep: Callable[[float], None] = time.sleep,
) -> str | None:
    """The answer to a question of the task that this process is of; None where there is none.

    What was answered to the same text before is given without asking, each answer once an attempt. Else the question is
    left for the end of the attempt; or, where one is to `wait`, asked now, until it is answered or the attempt is over.
    Raises InvalidInput outside of a task, and for a question that is none.
    """
    if "CODEBATCH_QUESTION" not in environ:
        raise InvalidInput(
            "this process is not running as a task",
            hint="codebatch-ask works only in tasks started by: codebatch work run",
        )
    text = text.strip().encode("utf-8", "replace").decode()
    if not text or len(text.encode("utf-8", "replace")) > QUESTION_TEXT_BYTES_MAX:
        raise InvalidInput("a question must not be empty, or longer than 64 KiB")
    if not all(each.strip() and each.isprintable() for each in choices):
        raise InvalidInput("a choice must be one non-empty line of text")
    if len(choices) > CHOICES_MAX:
        raise InvalidInput(f"at most {CHOICES_MAX} choices are allowed, not {len(choices)}")
    place = Path(environ["CODEBATCH_QUESTION"])
    answer = _answered_before(place.parent, environ.get("CODEBATCH_ANSWERS", ""), text, choices)
    if answer is not None:
        return answer
    asked = msgspec.json.encode(AskedQuestionText(text=text, choices=tuple(choices), is_human=human))
    name = f"ask-{time.time_ns():020}-{os.getpid()}"
    try:
        hidden = place.parent / f".{name}"
        hidden.write_bytes(asked)
        hidden.replace(place.parent / f"{name}.json" if wait else place)
    except OSError as error:
        raise InvalidInput(f"the task that asked the question has ended: {error.strerror}") from error
    return _wait(place.parent / f"{name}.answer", sleep) if wait else None


def _answered_before(directory: Path, answers: str, text: str, choices: Sequence[str]) -> str | None:
    """The first answer to it that this attempt was not given yet."""
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


def _wait(path: Path, sleep: Callable[[float], None]) -> str | None:
    while path.parent.exists():
        with contextlib.suppress(OSError):
            return path.read_text(encoding="utf-8", errors="replace")
        sleep(LOOK_SECONDS)
    return None
