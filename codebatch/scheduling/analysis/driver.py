"""The driver that connects a session to its event loop. It executes events and actions in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from codebatch.scheduling.actions import (
    AssignUnit,
    CommitFailure,
    CompleteSession,
    EndBroken,
    EndDrained,
    RetireWorker,
    ShrinkUnit,
    SpawnWorker,
    SurveyWorker,
)
from codebatch.scheduling.analysis.session import AnalysisSession
from codebatch.scheduling.events import OutcomesCommitted, SessionEvent

ExecutableAction = SpawnWorker | AssignUnit | SurveyWorker | ShrinkUnit | CommitFailure | RetireWorker
"""An action that the event loop must execute."""


class SessionDriver:
    """A driver that passes events to a session and executes its actions.

    `end` is the session's final action, or None until then.
    """

    def __init__(
        self,
        session: AnalysisSession,
        do: Callable[[ExecutableAction], None],
        note: Callable[[SessionEvent], None] | None = None,
    ) -> None:
        """Set up the driver.

        `do` executes an action. `note` is called with every event before the session gets this event.
        """
        self.end: CompleteSession | EndDrained | EndBroken | None = None
        self._session = session
        self._execute_action = do
        self._on_handled = note
        self._events: deque[SessionEvent] = deque()

    def handle(self, event: SessionEvent) -> None:
        """Pass an event to the session and execute the resulting actions.

        If an action causes further events, they are handled after all actions of this event. After the end of the
        session, only the commits in events are passed to the session, because a commit is valid at any time.
        """
        self._events.append(event)
        if len(self._events) > 1:
            return
        while self._events:
            event = self._events[0]
            if self._on_handled is not None:
                self._on_handled(event)
            if self.end is None or isinstance(event, OutcomesCommitted):
                for action in self._session.handle(event):
                    if isinstance(action, CompleteSession | EndDrained | EndBroken):
                        self.end = action
                    else:
                        self._execute_action(action)
            self._events.popleft()
