"""The event stream of simulated coordinators: pairs of epoch and event. The event None means that the batch ended."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from codebatch.model.work.event import TaskBlocked, TaskCompleted, TaskFailed, TaskQueued
from codebatch.scheduling.actions import CompleteSession
from codebatch.scheduling.work.event_projection import EmittedEvents, ProjectedEvent

if TYPE_CHECKING:
    from tests.scheduling.work.commands import World

Stream = list[tuple[int, ProjectedEvent | None]]


def told_in(stream: Stream) -> EmittedEvents:
    """Return the emitted events as the next coordinator reads them from the stream."""
    emitted = EmittedEvents()
    for _, event in stream:
        if event is None:
            continue
        item, round_, epoch = event.item, event.fields.get("round"), event.fields.get("epoch")
        if isinstance(n := event.fields.get("request"), int):
            emitted.requests = n
        if item is None or not isinstance(round_, int):
            continue
        if event.outcome is not None:
            emitted.ends.add((item, round_))
            if event.type is TaskBlocked:
                emitted.blocked.add((item, round_))
        elif event.question is not None:
            emitted.questioned.add(event.question)
        elif event.type in (TaskCompleted, TaskFailed):
            emitted.counted.add((item, round_))
        elif event.type is TaskQueued:
            emitted.queued.add((item, round_))
        elif isinstance(epoch, int):
            emitted.interrupted.add((item, epoch))
    return emitted


def check_stream(stream: Stream, ended: set[tuple[int, int]], *, is_whole: bool) -> None:
    """Check that each end of an attempt is emitted once over all coordinators, and that each stream ends with its end.

    If the stream `is_whole`, the emitted ends are those of all `ended` attempts, as pairs of item and round.
    """
    assert all(event.fields.get("position", 1) != 0 for _, event in stream if event is not None)
    conclusions = [event.outcome for _, event in stream if event is not None and event.outcome is not None]
    emitted = Counter((conclusion.item, conclusion.round) for conclusion in conclusions)
    twice = [place for place, count in emitted.items() if count > 1]
    assert not twice, f"ends emitted twice: {twice}"
    if is_whole:
        missing, unfounded = ended - emitted.keys(), emitted.keys() - ended
        assert emitted.keys() == ended, f"ends not emitted: {missing}, ends of attempts that did not end: {unfounded}"
    last = dict(stream)
    batch_ends = Counter(epoch for epoch, event in stream if event is None)
    assert all(count == 1 and last[epoch] is None for epoch, count in batch_ends.items()), "an event follows the last"


def check_told(world: World) -> None:
    """End the stream of a coordinator: add its remaining events and its end. Then check the stream and the counts."""
    world.stream += [
        *world.pending,
        *((world.epoch, event) for event in world.story.remaining_changes()),
        (world.epoch, None),
    ]
    world.pending = []
    outcomes = [(place, outcome) for place, outcome in world.registers.items() if outcome is not None]
    ended = {place for place, outcome in outcomes if outcome.reason != "unbegun"}
    check_stream(world.stream, ended, is_whole=isinstance(world.end, CompleteSession))
    states = Counter(world.conductor.state(item).value for item in range(world.count))
    assert world.story.counts == states, "the emitted counts differ from the states"
