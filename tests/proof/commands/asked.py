"""What commands of a simulated batch asked, what people asked of them, and what must come of it."""

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
    """An attempt is told what was answered to whatever its task asked at the end of the round before: the first answer.

    Returns to how many questions.
    """
    told = {each["question"]: each["answer"] for each in json.loads(batch.files.read(path))}
    asked = {question.digest: question for _, question in QuestionStore(batch.files, batch.root).read()}
    first: dict[str, str] = {}
    for request in RequestStore(batch.files, batch.root).read():
        body = request.body
        question = asked.get(body.question) if isinstance(body, Answer) else None
        if question is None or question.task != task or question.is_live or question.round != round_ - 1:
            continue
        assert isinstance(body, Answer)
        if question.text not in first:
            first[question.text] = body.text
            assert question.text in told, f"{task} is begun for an answer, and does not hear it"
            assert told[question.text] == body.text, f"{task} hears {told[question.text]!r}, first was {body.text!r}"
    return len(first)


def skips_that_stand(store: StoreDir, batch: BatchDir) -> dict[str, Skip]:
    """What people had skipped, and did not have opened since."""
    commands = read_command_ids(store, batch, read_work(batch))
    made = RequestLog({id_: item for item, id_ in enumerate(commands)})
    for request in RequestStore(batch.files, batch.root).read():
        made.add(request)
    return {id_: skip for item, id_ in enumerate(commands) if (skip := made.last_skip(item)) is not None}
