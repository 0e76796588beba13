"""Tasks that users add to a simulated batch while it runs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from codebatch.model.work.command import Command
from codebatch.model.work.request import Add, Request, RequestHead
from codebatch.model.work.work_batch import Work
from codebatch.store.work.requests import RequestStore


def without_last(work: Work, count: int) -> Work:
    """Return a work batch without its last commands."""
    order = work.order[: len(work.order) - count]
    return replace(
        work,
        order=order,
        policies={id_: policy for id_, policy in work.policies.items() if id_ in order},
        edges=tuple(edge for edge in work.edges if edge.task in order),
    )


def add_next(work: Work, commands: Sequence[Command], known: Work, requests: RequestStore, count: int) -> bool:
    """Let two users add the next commands of `work` to a batch at once. Return False if none is left."""
    new = {command.id: command for command in commands[len(known.order) :][:count]}
    if not new:
        return False
    body = Add(
        commands=tuple(new.values()),
        policies={id_: policy for id_, policy in work.policies.items() if id_ in new},
        edges=tuple(edge for edge in work.edges if edge.task in new),
    )
    n = len(requests.read()) + 1
    users = [Request(RequestHead(n=n, at_ns=0, by=user), body) for user in ("somebody", "another")]
    assert [requests.try_append(request) for request in users] == [True, False], "a task is added twice"
    return True
