"""Checks of questions, answers and Skip requests of a simulated work batch."""

from __future__ import annotations

import json
from pathlib import Path

from codebatch.model.work.request import Answer, Skip
from codebatch.scheduling.work.request_log import RequestLog
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.questions import QuestionStore
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import read_command_ids, read_work


def check_answers(batch: BatchDir, task: str, round_: int, path: Path) -> int:
    """Check that an attempt gets the first answer to each question that its task left in the previous round.

    Return the number of answered questions.
    """
    given = {row["question"]: row["answer"] for row in json.loads(batch.files.read(path))}
    questions = {question.digest: question for _, question in QuestionStore(batch.files, batch.root).read()}
    first: dict[str, str] = {}
    for request in RequestStore(batch.files, batch.root).read():
        body = request.body
        question = questions.get(body.question) if isinstance(body, Answer) else None
        if question is None or question.task != task or question.is_live or question.round != round_ - 1:
            continue
        assert isinstance(body, Answer)
        if question.text not in first:
            first[question.text] = body.text
            assert question.text in given, f"{task} starts after an answer, but does not get the answer"
            assert given[question.text] == body.text, f"{task} got {given[question.text]!r}, first was {body.text!r}"
    return len(first)


def skips_that_stand(store: StoreDir, batch: BatchDir) -> dict[str, Skip]:
    """Return the Skip requests that no later request has lifted, by task."""
    commands = read_command_ids(store, batch, read_work(batch))
    log = RequestLog({id_: item for item, id_ in enumerate(commands)})
    for request in RequestStore(batch.files, batch.root).read():
        log.add(request)
    return {id_: skip for item, id_ in enumerate(commands) if (skip := log.last_skip(item)) is not None}
