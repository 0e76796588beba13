"""What simulated coordinators told, as it stands on disk: (epoch, happening), and None where one told that it ended."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from codebatch.scheduling.actions import CompleteSession
from codebatch.scheduling.work.event_projection import (
    AttemptEnded,
    AttemptInterrupted,
    AttemptStopped,
    CommandMarked,
    CommandQueued,
    EmittedEvents,
    LiveQuestionAsked,
    ProjectedEvent,
    RequestReceived,
)

if TYPE_CHECKING:
    from tests.scheduling.work.commands import World

Stream = list[tuple[int, ProjectedEvent | None]]


def told_in(stream: Stream) -> EmittedEvents:
    """What the next coordinator finds told."""
    told = EmittedEvents(requests=sum(isinstance(one, RequestReceived) for _, one in stream))
    for _, one in stream:
        match one:
            case AttemptEnded(conclusion, _, asks):
                told.ends.add((conclusion.item, conclusion.round))
                if asks:
                    told.blocked.add((conclusion.item, conclusion.round))
            case LiveQuestionAsked(_, _, question):
                told.questioned.add(question)
            case CommandMarked(item, round_):
                told.counted.add((item, round_))
            case CommandQueued(item, round_):
                told.queued.add((item, round_))
            case AttemptInterrupted(item, epoch) | AttemptStopped(item, epoch):
                told.interrupted.add((item, epoch))
            case _:
                pass
    return told


def check_stream(stream: Stream, ended: set[tuple[int, int]], *, is_whole: bool) -> None:
    """Each end of an attempt is told once over all coordinators, the last word of each is that it is through.

    Where it `is_whole` what is told is all that `ended`, by (item, round).
    """
    told = Counter((one.conclusion.item, one.conclusion.round) for _, one in stream if isinstance(one, AttemptEnded))
    twice = [place for place, count in told.items() if count > 1]
    assert not twice, f"told twice: {twice}"
    if is_whole:
        assert told.keys() == ended, f"not told: {ended - told.keys()}, told of nothing: {told.keys() - ended}"
    last = dict(stream)
    through = Counter(epoch for epoch, one in stream if one is None)
    assert all(count == 1 and last[epoch] is None for epoch, count in through.items()), "a word behind the last"


def check_told(world: World) -> None:
    """A coordinator is through: it tells what is left, then that; and then all is told."""
    world.stream += [
        *world.pending,
        *((world.epoch, one) for one in world.story.remaining_changes()),
        (world.epoch, None),
    ]
    world.pending = []
    ended = {place for place, one in world.registers.items() if one is not None and one.reason != "unbegun"}
    check_stream(world.stream, ended, is_whole=isinstance(world.end, CompleteSession))
    states = Counter(world.conductor.state(item).value for item in range(world.count))
    assert world.story.counts == states, "counts are others"
