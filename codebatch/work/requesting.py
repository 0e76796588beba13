"""Answering what a command of a batch waits for, whoever conducts that, or nobody."""

from __future__ import annotations

from codebatch.application.requesting import request
from codebatch.engine.lifecycle import CommandState
from codebatch.errors import InvalidInput
from codebatch.model.command import CommandId
from codebatch.model.digest import Digest
from codebatch.model.likeness import did_you_mean
from codebatch.model.request import INTERRUPTED_CHOICES, Answer
from codebatch.store.batches import Batch
from codebatch.store.store import Store
from codebatch.work.standing import WorkBatch, look_at, names_of


def answer_question(store: Store, batch: Batch, command: str, text: str) -> WorkBatch:
    """Answer the question with which a command waits; returns where the batch stands then.

    Raises InvalidInput where it asks nothing, or nothing that this answers.
    """
    found = look_at(store, batch)
    asked = {each.id: each for each in found.standing.commands if each.state is CommandState.BLOCKED}
    if CommandId(command) not in asked:
        known = [each.id for each in found.standing.commands]
        if command not in known:
            raise InvalidInput(f"batch {batch.id} has no task {command!r}", hint=did_you_mean(command, known[:1000]))
        waiting = f"those that do: {names_of(list(asked.values()))}" if asked else "no task of the batch does"
        raise InvalidInput(f"{command!r} waits for no answer", hint=waiting)
    if text not in INTERRUPTED_CHOICES:
        hint = did_you_mean(text, INTERRUPTED_CHOICES)
        raise InvalidInput(f"{text!r} is no answer to whether {command} is to be begun again", hint=hint)
    one = asked[CommandId(command)]
    request(batch, Answer(task=one.id, round=one.round, question=Digest(one.question), text=text))
    return look_at(store, batch)
