"""Questions of a work batch: what a command wants to know, or we of what became of it (SPEC.md "Questions").

A command's own is a write-once document. Ours follow from how a round ended: interrupted, silent for too long, failed
with no try left. Each question is one occasion, named by its digest: an answer is to it alone.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.documents import Document, decode_document, encode_document
from codebatch.model.work.command import CommandId

QUESTION_FORMAT = 1
QUESTION_TEXT_BYTES_MAX = 64 * 1024
CHOICES_MAX = 100

OurQuestion = Literal["interrupted", "stall", "exhausted"]
OUR_CHOICES = ("again", "failed", "done")
"""What can be answered to one of ours: begin it again, or what it counts as."""
OUR_TEXTS: dict[OurQuestion, str] = {
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
        """Its name."""
        return digest_bytes(f"asked\0{self.task}\0{self.round}\0{self.epoch}\0{self.number}\0{self.text}".encode())


class AskedQuestionText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is asked, as a command says it."""

    text: str
    choices: tuple[str, ...] = ()
    is_human: bool = False


def our_question(kind: OurQuestion, command: CommandId, round_: int) -> Digest:
    """The digest of our own question about how a round ended. It differs from round to round."""
    return digest_bytes(f"{kind}\0{command}\0{round_}".encode())


def encode_question(question: Question) -> bytes:
    """The bytes of a question's file."""
    return encode_document(question)


def decode_question(data: bytes) -> Question:
    """Read a question's file. Raises DocumentError."""
    return decode_document(data, Question, QUESTION_FORMAT)
