"""Open questions of a batch of commands, and answers to them."""

from __future__ import annotations

from typing import Literal

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.digest import Digest
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.model.work.command import CommandId
from codebatch.model.work.question import (
    CAP_STOP,
    CAP_VALUE_MAX,
    COORDINATOR_CHOICES,
    COORDINATOR_TEXTS,
    cap_question_text,
    coordinator_question_digest,
    find_answer_problem,
    quoted_excerpt,
    raised_cap,
)
from codebatch.model.work.request import Answer, Request
from codebatch.model.work.task_patterns import has_wildcard, matching_ids
from codebatch.operations.runs.requests import append_request
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.requests import RequestStore
from codebatch.work.control.batches import WorkBatch, first_command_names, load_work_batch
from codebatch.work.control.requests import find_commands

QuestionKind = Literal["asked", "interrupted", "stall", "exhausted", "cap"]


class NotWaiting(InvalidInput):
    """The task does not wait for this answer: it asks nothing, asks something else, or another answer was first."""


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question that waits for an answer.

    - `kind`: `asked` if the task asked the question. Otherwise codebatch asks, because the task was `interrupted`,
      printed nothing for too long (`stall`), has no try left (`exhausted`), or may not start because of a met `cap`.
      All tasks that a cap holds back have the same question, which is asked for the first of them.
    - `choices`: the allowed answers. If there are none, any answer is allowed.
    - `is_live`, in JSON `live`: the task keeps running while it waits.
    - `is_human`, in JSON `human`: only a person may answer.
    - `digest`, in JSON `question`: the digest that identifies the question.
    - `cap_limit`, `cap_used`: the value of the cap and its use, if the question is about one. Answers are values above
      `cap_used`, and `stop`.
    """

    task: CommandId
    round: int
    kind: QuestionKind
    text: str
    choices: tuple[str, ...]
    is_live: bool = msgspec.field(name="live")
    is_human: bool = msgspec.field(name="human")
    digest: Digest = msgspec.field(name="question")
    cap_limit: float | None = None
    cap_used: float | None = None


def open_questions(work_batch: WorkBatch) -> list[OpenQuestion]:
    """Return the open questions of a batch, in the order of its task list."""
    by_digest: dict[str, CommandStatus] = {}
    for command in work_batch.commands_in(CommandState.BLOCKED):
        if command.question:
            by_digest.setdefault(command.question, command)
    return [_open_question(work_batch, command) for command in by_digest.values()]


def _open_question(work_batch: WorkBatch, command: CommandStatus) -> OpenQuestion:
    digest, cap = Digest(command.question), command.cap
    digests = {coordinator_question_digest(kind, command.id, command.round): kind for kind in COORDINATOR_TEXTS}
    kind = digests.get(digest)
    asked = work_batch.standing.questions.get(digest)
    if kind is not None:
        text = COORDINATOR_TEXTS[kind]
    elif cap is not None:
        text = cap_question_text(*cap)
    else:
        text = "the question can no longer be read" if asked is None else asked.text
    return OpenQuestion(
        task=command.id,
        kind=kind or ("asked" if cap is None else "cap"),
        text=text,
        choices=COORDINATOR_CHOICES if kind is not None else () if asked is None else asked.choices,
        is_human=asked is None or asked.is_human,
        is_live=command.is_live,
        round=command.round,
        digest=digest,
        cap_limit=None if cap is None else cap.limit,
        cap_used=None if cap is None else cap.used,
    )


def answer_question(
    store: StoreDir, batch: BatchDir, command: str, text: str, *, question: str | None = None
) -> tuple[WorkBatch, CommandId]:
    """Answer the open question of a command. Return the status of the batch after the answer, and the command.

    `question` is a prefix of the question's digest. Raises InvalidInput if the command has no such question, the answer
    is not allowed, or another answer was accepted first.
    """
    work_batch = load_work_batch(store, batch)
    open_by_task = {entry.task: entry for entry in open_questions(work_batch)}
    if has_wildcard(command):
        matches = matching_ids(command, open_by_task)
        if len(matches) > 1:
            raise InvalidInput(f"{command!r} matches {len(matches):,} questions", hint="answer one task at a time")
        command = matches[0] if matches else command
    if CommandId(command) not in open_by_task:
        find_commands(work_batch, [command])
        asking = [each for each in work_batch.commands_in(CommandState.BLOCKED) if each.id in open_by_task]
        waiting = (
            f"waiting tasks: {first_command_names(asking)}"
            if open_by_task
            else "no task of the batch waits for an answer"
        )
        raise NotWaiting(f"task {command!r} is not waiting for an answer{_last_answer(batch, command)}", hint=waiting)
    open_question = open_by_task[CommandId(command)]
    if question is not None and not open_question.digest.startswith(question):
        raise NotWaiting(
            f"task {command} is not waiting for an answer to question {question!r}",
            hint="see: codebatch work questions",
        )
    _check_text(open_question, text)
    own_request = append_request(
        batch, Answer(task=open_question.task, round=open_question.round, question=open_question.digest, text=text)
    )
    first = _first_answer(batch, open_question)
    if first.n != own_request.n:
        assert isinstance(first.body, Answer)
        raise NotWaiting(
            f"{command} was just answered by {first.head.by}: {quoted_excerpt(first.body.text)}",
            hint="only the first answer to a question is used",
        )
    return load_work_batch(store, batch), open_question.task


def _check_text(question: OpenQuestion, text: str) -> None:
    used = question.cap_used
    if used is not None and text != CAP_STOP and raised_cap(text, used) is None:
        kind = "whole number" if isinstance(used, int) else "number"
        problem = f"not a {kind} above {used:.15g}, which is already used, and at most {CAP_VALUE_MAX:,}"
        raise InvalidInput(f"{quoted_excerpt(text)} is {problem}", hint=f"answer with a higher value, or: {CAP_STOP}")
    if problem := find_answer_problem(text, question.choices):
        hint = did_you_mean_text(text, list(question.choices)) if question.choices else None
        raise InvalidInput(f"{problem} (question of task {question.task})", hint=hint)


def _first_answer(batch: BatchDir, question: OpenQuestion) -> Request:
    for entry in RequestStore(batch.files, batch.root).read():
        body = entry.body
        if isinstance(body, Answer) and body.question == question.digest and _is_allowed(question, body.text):
            return entry
    raise AssertionError("an answer of ours is on disk")


def _last_answer(batch: BatchDir, command: str) -> str:
    """Return a text about the last answered question of a command: the accepted answer and its author.

    Only the first answer to a question is accepted. The text is empty if no question was answered.
    """
    answers = [
        (entry.head.by, entry.body)
        for entry in RequestStore(batch.files, batch.root).read()
        if isinstance(entry.body, Answer) and entry.body.task == command
    ]
    if not answers:
        return ""
    by, answer = next(entry for entry in answers if entry[1].question == answers[-1][1].question)
    return f": {by} answered {quoted_excerpt(answer.text)}"


def _is_allowed(question: OpenQuestion, text: str) -> bool:
    if question.cap_limit is not None:
        return text == CAP_STOP or raised_cap(text, question.cap_limit) is not None
    return question.kind == "asked" or text in COORDINATOR_CHOICES
