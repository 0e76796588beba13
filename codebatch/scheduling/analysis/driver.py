"""The driver that connects a session to its event loop. It executes events and actions in order."""

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
"""An action that the event loop must execute."""


class SessionDriver:
    """A driver that passes events to a session and executes its actions.

    `end` is the session's final action, or None until then.
    """

    def __init__(
        self, session: Session, do: Callable[[Deed], None], note: Callable[[Event], None] | None = None
    ) -> None:
        """Set up the driver.

        `do` executes an action. `note` is called with every event before the session gets this event.
        """
        self.end: Complete | Drained | Break | None = None
        self._session = session
        self._do = do
        self._note = note
        self._events: deque[Event] = deque()

    def handle(self, event: Event) -> None:
        """Pass an event to the session and execute the resulting actions.

        If an action causes further events, they are handled after all actions of this event. After the end of the
        session, only the commits in events are passed to the session, because a commit is valid at any time.
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
