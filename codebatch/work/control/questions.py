"""Questions of a batch of commands that wait for people, and answering them."""

from __future__ import annotations

from typing import Literal

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.digest import Digest
from codebatch.model.text.suggestions import did_you_mean
from codebatch.model.work.command import CommandId
from codebatch.model.work.question import OUR_CHOICES, OUR_TEXTS, QUESTION_TEXT_BYTES_MAX, our_question
from codebatch.model.work.request import Answer, Request
from codebatch.operations.runs.requests import request
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.store import StoreDir
from codebatch.store.work.requests import Requests
from codebatch.work.control.batches import WorkBatch, load_work_batch, names_of
from codebatch.work.control.requests import named

Kind = Literal["asked", "interrupted", "stall", "exhausted"]
_SHOWN_MAX = 60


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question that waits for an answer.

    - `kind`: `asked` if the task asked the question. Otherwise codebatch asks, because the task was `interrupted`,
      printed nothing for too long (`stall`) or has no try left (`exhausted`).
    - `choices`: the allowed answers. If there are none, any answer is allowed.
    - `is_human`: only a person may answer.
    - `is_live`: the task keeps running while it waits.
    - `digest`: the digest that identifies the question.
    """

    task: CommandId
    kind: Kind
    text: str
    choices: tuple[str, ...]
    is_human: bool
    is_live: bool
    round: int
    digest: Digest


def open_questions(found: WorkBatch) -> list[OpenQuestion]:
    """The questions of a batch that wait, in the order of its file."""
    return [_question(found, each) for each in found.of(CommandState.BLOCKED) if each.question]


def _question(found: WorkBatch, command: CommandStatus) -> OpenQuestion:
    digest = Digest(command.question)
    for kind, text in OUR_TEXTS.items():
        if digest == our_question(kind, command.id, command.round):
            return OpenQuestion(
                task=command.id,
                kind=kind,
                text=text,
                choices=OUR_CHOICES,
                is_human=True,
                is_live=False,
                round=command.round,
                digest=digest,
            )
    asked = found.standing.asked.get(digest)
    return OpenQuestion(
        task=command.id,
        kind="asked",
        text="the question can no longer be read" if asked is None else asked.text,
        choices=() if asked is None else asked.choices,
        is_human=asked is None or asked.is_human,
        is_live=command.is_live,
        round=command.round,
        digest=digest,
    )


def answer_question(
    store: StoreDir, batch: BatchDir, command: str, text: str, *, question: str | None = None
) -> WorkBatch:
    """Answer the question with which a command waits; returns where the batch stands then.

    `question` is how its digest begins that is meant. Raises InvalidInput where the command asks nothing, or nothing
    that this answers; or where somebody else answered it just before, which then holds.
    """
    found = load_work_batch(store, batch)
    asked = {each.task: each for each in open_questions(found)}
    if CommandId(command) not in asked:
        named(found, [command])
        waiting = (
            f"waiting tasks: {names_of(found.of(CommandState.BLOCKED))}"
            if asked
            else "no task of the batch waits for an answer"
        )
        raise InvalidInput(f"{command!r} is not waiting for an answer{_last_answer(batch, command)}", hint=waiting)
    one = asked[CommandId(command)]
    if question is not None and not one.digest.startswith(question):
        raise InvalidInput(
            f"{command} is not waiting for an answer to {question!r}", hint="see: codebatch work questions"
        )
    _check_text(one, text)
    ours = request(batch, Answer(task=one.task, round=one.round, question=one.digest, text=text))
    first = _first_answer(batch, one)
    if first.n != ours.n:
        assert isinstance(first.body, Answer)
        raise InvalidInput(
            f"{command} was just answered by {first.head.by}: {_shown(first.body.text)}",
            hint="only the first answer to a question is used",
        )
    return load_work_batch(store, batch)


def _check_text(question: OpenQuestion, text: str) -> None:
    if question.choices and text not in question.choices:
        hint = did_you_mean(text, list(question.choices))
        raise InvalidInput(f"{_shown(text)} is not one of the answers to {question.task}", hint=hint)
    if not text.strip():
        raise InvalidInput(f"the answer to {question.task} is empty")
    size = len(text.encode("utf-8", "replace"))
    if size > QUESTION_TEXT_BYTES_MAX:
        raise InvalidInput(f"the answer has {size:,} bytes, more than {QUESTION_TEXT_BYTES_MAX:,}")


def _first_answer(batch: BatchDir, question: OpenQuestion) -> Request:
    for each in Requests(batch.files, batch.root).read():
        body = each.body
        if isinstance(body, Answer) and body.question == question.digest and _is_one(question, body.text):
            return each
    raise AssertionError("an answer of ours is on disk")


def _last_answer(batch: BatchDir, command: str) -> str:
    """Who answered the last question of a command, and what; the first answer holds."""
    of_it = [
        (each.head.by, each.body)
        for each in Requests(batch.files, batch.root).read()
        if isinstance(each.body, Answer) and each.body.task == command
    ]
    if not of_it:
        return ""
    by, held = next(each for each in of_it if each[1].question == of_it[-1][1].question)
    return f": {by} answered {_shown(held.text)}"


def _is_one(question: OpenQuestion, text: str) -> bool:
    return question.kind == "asked" or text in OUR_CHOICES


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…")
