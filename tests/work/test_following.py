"""Tests of the end of `iter_followed_events`: after the last event, or one poll later if there is none."""

from __future__ import annotations

import pytest

from codebatch.model.work.event import AnyEvent, BatchCancelled, BatchDrained
from codebatch.operations.runs.events import BatchActivity
from codebatch.work.control.follow import iter_followed_events

OVER = BatchActivity(is_conducted=False, is_over=True)
NOBODY = BatchActivity(is_conducted=False)
SOMEBODY = BatchActivity(is_conducted=True)
HEAD = {"cursor": "b:1.1", "seq": 1, "at": "2026-01-01T00:00:00.000Z", "batch_id": "b", "counts": {}}
ENDED = BatchCancelled(**HEAD, seconds=1.0, total_seconds=1.0, task_count=1)  # type: ignore[arg-type]
DRAINED = BatchDrained(**HEAD, signal="SIGINT")  # type: ignore[arg-type]


class Scripted:
    """A `Followed` with a script: the activity at each look, and events that become readable after some looks."""

    def __init__(self, looks: list[BatchActivity], events: dict[int, AnyEvent]) -> None:
        self._looks = looks
        self._events = events
        self.looked = 0

    def read(self, limit: int | None = None) -> list[AnyEvent]:
        readable = [event for behind, event in self._events.items() if behind <= self.looked]
        self._events = {behind: event for behind, event in self._events.items() if behind > self.looked}
        return readable

    def read_activity(self, *, closely: bool) -> BatchActivity:
        self.looked += 1
        return self._looks[min(self.looked, len(self._looks)) - 1]


@pytest.mark.parametrize(
    ("looks", "events", "looked", "expected"),
    [
        ([OVER], {0: ENDED}, 1, [ENDED]),
        ([OVER], {1: ENDED}, 2, [ENDED]),
        ([OVER], {}, 2, []),
        ([NOBODY], {}, 2, []),
        ([NOBODY, SOMEBODY, OVER], {2: ENDED}, 3, [ENDED]),
        ([NOBODY, NOBODY], {0: DRAINED, 1: ENDED}, 2, [DRAINED, ENDED]),
        ([OVER], {0: DRAINED, 1: ENDED}, 2, [DRAINED, ENDED]),
    ],
)
def test_follower_ends_after_the_last_reported_event(
    looks: list[BatchActivity], events: dict[int, AnyEvent], looked: int, expected: list[AnyEvent]
) -> None:
    followed = Scripted(looks, events)
    items = list(iter_followed_events(followed, sleep=lambda seconds: None))
    assert [one for one in items if one is not None and not isinstance(one, BatchActivity)] == expected
    assert (items[-1], followed.looked) == (looks[-1], looked)
