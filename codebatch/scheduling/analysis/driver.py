"""Between a session and its world: events in the order they came, actions in the order they are asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from codebatch.scheduling.actions import (
    AssignUnit,
    Break,
    Complete,
    Drained,
    Fail,
    Retire,
    ShrinkUnit,
    Spawn,
    SurveyWorker,
)
from codebatch.scheduling.analysis.session import Session
from codebatch.scheduling.events import Event, OutcomesCommitted

Deed = Spawn | AssignUnit | SurveyWorker | ShrinkUnit | Fail | Retire
"""An action that somebody has to do."""


class SessionDriver:
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
            if self.end is None or isinstance(event, OutcomesCommitted):
                for action in self._session.handle(event):
                    if isinstance(action, Complete | Drained | Break):
                        self.end = action
                    else:
                        self._do(action)
            self._events.popleft()
