"""Asking something of a batch of commands, whoever conducts it, or nobody: cancelling, answering."""

from __future__ import annotations

import os
import pwd

from codebatch.engine.lifecycle import CommandState
from codebatch.errors import InvalidInput
from codebatch.model.command import CommandId
from codebatch.model.digest import Digest
from codebatch.model.likeness import did_you_mean
from codebatch.model.request import INTERRUPTED_CHOICES, Answer, Request, RequestBody
from codebatch.store.batches import Batch
from codebatch.store.requests import Requests
from codebatch.store.store import Store
from codebatch.system.clock import wall_ns
from codebatch.system.host import this_host
from codebatch.work.standing import WorkBatch, look_at, names_of


def request(batch: Batch, body: RequestBody) -> Request:
    """Ask something of a batch. On return it is on disk. Raises StoreUnwritable, StoreCorrupt."""
    return Requests(batch.files, batch.root).append(body, by=_we(), at_ns=wall_ns())


def _we() -> str:
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = str(os.geteuid())
    return f"{user}@{this_host().name} pid {os.getpid()}"


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
