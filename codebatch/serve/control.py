"""Requests of clients that control a batch. The coordinator of the batch reads them from the store and obeys them."""

from __future__ import annotations

import msgspec

from codebatch.errors import InvalidInput
from codebatch.serve.bodies import (
    AnswerBody,
    AnyControl,
    CancelBody,
    PauseBody,
    RetryBody,
    SetBody,
    SkipBody,
    UnpauseBody,
)
from codebatch.store.batches.batch_directory import BatchDir, is_work
from codebatch.store.batches.store_directory import StoreDir, check_created_here
from codebatch.work.control.batches import WorkBatch
from codebatch.work.control.cancel import cancel_analysis, cancel_batch
from codebatch.work.control.listener import WorkListener
from codebatch.work.control.questions import answer_question
from codebatch.work.control.requests import (
    LimitChanges,
    change_batch,
    pause_batch,
    retry_tasks,
    skip_tasks,
    unpause_batch,
)

_decoder: msgspec.json.Decoder[AnyControl] = msgspec.json.Decoder(AnyControl)


def parse_control(data: bytes) -> AnyControl:
    """Return the request that a body contains. Raises InvalidInput."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the request is not valid: {error}", hint='for example {"do": "pause"}') from None


def control_batch(store: StoreDir, batch: BatchDir, control: AnyControl) -> WorkBatch | None:
    """Write a request to a batch, without waiting for its effect. Return the new state of a batch of a task list.

    Raises StoreUntrusted if the store was not created here by this user, WrongBatchKind if the request does not apply
    to an analysis, and the errors of the functions of `codebatch.work`.
    """
    check_created_here(store)
    match control:
        case CancelBody() if not is_work(batch):
            cancel_analysis(batch, is_forced=False, waits=False, listener=WorkListener())
            return None
        case CancelBody(grace_seconds=grace):
            return cancel_batch(store, batch, grace_seconds=grace, waits=False, listener=WorkListener())
        case PauseBody():
            return pause_batch(store, batch)
        case UnpauseBody():
            return unpause_batch(store, batch)
        case AnswerBody(task=task, text=text, question=question):
            return answer_question(store, batch, task, text, question=question)[0]
        case RetryBody(tasks=tasks, dependents=dependents):
            return retry_tasks(store, batch, tasks, dependents=dependents)
        case SkipBody(tasks=tasks, as_done=as_done):
            return skip_tasks(store, batch, tasks, as_done=as_done)[0]
        case SetBody(max_parallel=max_parallel, pools=pools):
            return change_batch(store, batch, LimitChanges(max_parallel=max_parallel, pools=pools or {}))[0]
