"""The messages that carry out actions of the conductor in workers."""

from __future__ import annotations

from codebatch.protocol import messages
from codebatch.scheduling.actions import RetireWorker
from codebatch.scheduling.work.events import DeliverAnswer, RecallQueued, TerminateCommand


def action_message(action: RecallQueued | TerminateCommand | DeliverAnswer | RetireWorker) -> messages.MessageToWorker:
    """Return the message that carries out an action of the conductor in a worker."""
    match action:
        case RecallQueued():
            return messages.Drain()
        case TerminateCommand(_, grace_seconds, task, why):
            return messages.Terminate(why=why, grace_seconds=grace_seconds, task=task)
        case DeliverAnswer():
            return messages.Proceed()
        case RetireWorker():
            return messages.Stop()
