"""The information that an attempt gets: its previous attempt, and the states of the commands that it needs."""

from __future__ import annotations

from collections.abc import Callable

from codebatch.model.outcome import WorkUnit
from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import WORK_TASK
from codebatch.protocol.messages import Assign, AttemptInput, NeedState
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import StartCommand
from codebatch.scheduling.work.tree_inputs import make_tree_input, needed_outputs
from codebatch.store import layout
from codebatch.store.work.attempts import CommandPlaces


def make_assign(
    conductor: Conductor, start: StartCommand, places: CommandPlaces, is_isolated: Callable[[CommandId], bool]
) -> Assign:
    """Return the message that assigns an attempt to a worker.

    It includes further attempts, which the worker starts one after another when the attempt has ended. `is_isolated`
    returns whether a command works in a tree of its own.
    """
    shard, item = places.place_of_item(start.item)
    # A cap counts leases, so a power loss must not remove one.
    may_forget_lease = conductor.agenda.policies[start.item].is_repeatable and not conductor.has_caps
    return Assign(
        unit=WorkUnit(shard=shard, start=item, end=item + 1, tasks=(WORK_TASK,), round=start.round),
        epoch=start.epoch,
        requests=start.requests,
        brief=make_attempt_input(conductor, start, places, is_isolated=is_isolated(conductor.agenda.ids[start.item])),
        is_repeatable=start.epoch == 1 and may_forget_lease,
        then=tuple(make_assign(conductor, follower, places, is_isolated) for follower in start.then),
    )


def make_attempt_input(
    conductor: Conductor, start: StartCommand, places: CommandPlaces, *, is_isolated: bool
) -> AttemptInput:
    """Return the Brief of an attempt that is about to start: the values that its command can use."""
    previous = conductor.last_begun_outcome(start.item)
    return AttemptInput(
        tried=start.failed_tries,
        previous_round=0 if previous is None else previous.round,
        previous_log=_last_log_name(conductor, start.item, places),
        needs=tuple(_need_state(conductor, need.item, places) for need in conductor.agenda.needs[start.item]),
        tree=make_tree_input(conductor, start.item) if is_isolated else None,
        outputs=needed_outputs(conductor, start.item),
        success=conductor.agenda.successes.get(conductor.agenda.ids[start.item]) if previous is None else None,
    )


def _need_state(conductor: Conductor, item: int, places: CommandPlaces) -> NeedState:
    shard, start = places.place_of_item(item)
    last = conductor.last_begun_outcome(item)
    return NeedState(
        id=conductor.agenda.ids[item],
        state=conductor.state(item).value,
        shard=shard,
        start=start,
        round=0 if last is None else last.round,
        exit_status=None if last is None else last.exit_status,
        log=_last_log_name(conductor, item, places),
    )


def _last_log_name(conductor: Conductor, item: int, places: CommandPlaces) -> str:
    last = conductor.last_begun_outcome(item)
    return "" if last is None else layout.log_name(*places.place_of_item(item), last.round, last.epoch)
