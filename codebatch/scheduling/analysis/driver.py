"""Between a session and its world: events in the order they came, actions in the order they are asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from codebatch.scheduling.actions import Assign, Break, Complete, Drained, Fail, Retire, Shrink, Spawn, Survey
from codebatch.scheduling.analysis.session import Session
from codebatch.scheduling.events import Committed, Event

Deed = Spawn | Assign | Survey | Shrink | Fail | Retire
"""An action that somebody has to do."""


class Driver:
    """Hands events to a session and has its actions done. `end` is how the session ended, None before."""

    def __init__(
        self, session: Session, do: Callable[[Deed], None], note: Callable[[Event], None] | None = None
    ) -> None:
        """`note` is told of every event just before the session is."""
        self.end: Complete | Drained | Break | None = None
        self._session = session
        self._do = do
        self._note = note
        self._events: deque[Event] = deque()

    def handle(self, event: Event) -> None:
        """Hand over an event. What its actions bring about waits until all of them are done.

        Once the session has ended it hears of nothing but commits, which are true all the same.
        """
        self._events.append(event)
        if len(self._events) > 1:
            return
        while self._events:
            event = self._events[0]
            if self._note is not None:
                self._note(event)
            if self.end is None or isinstance(event, Committed):
                for action in self._session.handle(event):
                    if isinstance(action, Complete | Drained | Break):
                        self.end = action
                    else:
                        self._do(action)
            self._events.popleft()
