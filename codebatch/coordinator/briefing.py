"""What a worker of a work batch is told of an attempt besides its command: the one before, and what it needs."""

from __future__ import annotations

from codebatch.engine.command_events import Start
from codebatch.engine.conductor import Conductor
from codebatch.protocol.messages import Brief, NeedState
from codebatch.store import layout
from codebatch.store.attempts import CommandPlaces


def brief_of(conductor: Conductor, start: Start, places: CommandPlaces) -> Brief:
    """The brief of an attempt that is about to start."""
    previous = conductor.previous(start.item)
    return Brief(
        tried=start.tried,
        previous_round=0 if previous is None else previous.round,
        previous_log=_log(conductor, start.item, places),
        needs=tuple(_need(conductor, need.item, places) for need in conductor.agenda.needs[start.item]),
    )


def _need(conductor: Conductor, item: int, places: CommandPlaces) -> NeedState:
    shard, start = places.place(item)
    last = conductor.previous(item)
    return NeedState(
        id=conductor.agenda.ids[item],
        state=conductor.state(item).value,
        shard=shard,
        start=start,
        round=0 if last is None else last.round,
        exit_status=None if last is None else last.exit_status,
        log=_log(conductor, item, places),
    )


def _log(conductor: Conductor, item: int, places: CommandPlaces) -> str:
    last = conductor.previous(item)
    return "" if last is None else layout.log_name(*places.place(item), last.round, last.epoch)
