"""Questions of work batches, asked by commands or by the coordinator (SPEC.md "Questions").

A question of a command is a write-once document. The coordinator asks a question at the end of a round in three cases:
the task was interrupted, printed nothing for too long, or failed with no retries left. A question of the coordinator
has no file. Each question has a unique digest, which is its name. An answer contains the digest of its question, and
applies only to this question.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.documents import Document, decode_document, encode_document
from codebatch.model.work.command import CommandId

QUESTION_FORMAT = 1
QUESTION_TEXT_BYTES_MAX = 64 * 1024
CHOICES_MAX = 100
CHOICE_CHARACTERS_MAX = 2_000
_EXCERPT_CHARACTERS_MAX = 60
CAP_VALUE_MAX = 1 << 53
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?", re.ASCII)

CoordinatorQuestion = Literal["interrupted", "stall", "exhausted"]
CAP_STOP = "stop"
"""The answer to the question about a met cap that leaves the cap as it is. Other answers are higher values."""
COORDINATOR_CHOICES = ("again", "failed", "done")
"""Answers to questions of the coordinator: retry, or count the task as failed or done."""
COORDINATOR_TEXTS: dict[CoordinatorQuestion, str] = {
    "interrupted": "it was interrupted because its worker or the machine died: retry it?",
    "stall": "it printed nothing for too long and was stopped: retry it?",
    "exhausted": "it failed, and no retries are left: retry it?",
}


class Question(Document, frozen=True, kw_only=True):
    """A question of a task. If `is_live` is set, the command keeps running and waits. Otherwise, it has ended with the
    question.

    `number` counts the questions of the attempt from 1. If `choices` is not empty, the answer must be one of them. If
    `is_human` is set, only a person may answer.
    """

    format: int = QUESTION_FORMAT
    task: CommandId
    round: int
    epoch: int
    number: int
    is_live: bool
    text: str
    choices: tuple[str, ...] = ()
    is_human: bool = False

    @property
    def digest(self) -> Digest:
        """The digest that names the question."""
        return digest_bytes(f"asked\0{self.task}\0{self.round}\0{self.epoch}\0{self.number}\0{self.text}".encode())


class ReportedQuestion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question as reported by a command."""

    text: str
    choices: tuple[str, ...] = ()
    is_human: bool = False


def find_answer_problem(text: str, choices: Sequence[str]) -> str:
    """Return why a text cannot answer a question with these choices, or "" if it can."""
    if choices and text not in choices:
        return f"{quoted_excerpt(text)} is not one of the allowed answers"
    if not text.strip():
        return "the answer is empty"
    size = len(text.encode("utf-8", "replace"))
    return (
        ""
        if size <= QUESTION_TEXT_BYTES_MAX
        else f"the answer has {size:,} bytes, more than {QUESTION_TEXT_BYTES_MAX:,}"
    )


def quoted_excerpt(text: str) -> str:
    """Return the beginning of a text in quotation marks."""
    return repr(text if len(text) <= _EXCERPT_CHARACTERS_MAX else f"{text[:_EXCERPT_CHARACTERS_MAX]}…")


def coordinator_question_digest(kind: CoordinatorQuestion, command: CommandId, round_: int) -> Digest:
    """Return the digest of the coordinator's question at the end of a round of a command. It differs for each round."""
    return digest_bytes(f"{kind}\0{command}\0{round_}".encode())


def cap_question_digest(scope: str, name: str, limit: float) -> Digest:
    """Return the digest of the question about a met cap. It differs for each value of the cap."""
    return digest_bytes(f"cap\0{scope}\0{name}\0{limit!r}".encode())


def cap_use_text(scope: str, name: str, limit: float, used: float) -> str:
    """Return a text about a met cap, with its figures."""
    whose = scope.replace(".", " ", 1) or "the list"
    return f"{name} of {whose} is reached: {used:.15g} of {limit:.15g}"


def cap_question_text(scope: str, name: str, limit: float, used: float) -> str:
    """Return the question about a met cap."""
    return f"{cap_use_text(scope, name, limit, used)}. Answer with a value above {used:.15g}, or {CAP_STOP}"


def raised_cap(text: str, limit: float) -> float | None:
    """Return the value above `limit` that an answer to the question about a cap gives, or None.

    If the limit is an integer, the value is one too.
    """
    with contextlib.suppress(ValueError):
        if not _DECIMAL.fullmatch(text):
            return None
        value = int(text) if isinstance(limit, int) else float(text)
        return value if limit < value <= CAP_VALUE_MAX else None
    return None


def encode_question(question: Question) -> bytes:
    """Return the bytes of a question's file."""
    return encode_document(question)


def decode_question(data: bytes) -> Question:
    """Decode a question's file. Raises DocumentError."""
    return decode_document(data, Question, QUESTION_FORMAT)
