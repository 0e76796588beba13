"""Which command may start, by what it needs: states change one at a time, and each change is passed on to users.

A change costs what it touches, and no recursion follows a chain: over a whole batch it is O(edges).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from codebatch.scheduling.work.command_plan import Need

Face = Literal["open", "runs", "good", "bad", "held"]
"""What a command shows to those that need it: `held` waits for an answer, and is neither met nor bad. One that `runs`
is neither whatever becomes of its needs meanwhile.
"""


class CommandGraph:
    """`needs[item]` are what an item needs. Where one `goes_on`, a bad need counts as met."""

    def __init__(self, needs: Sequence[Sequence[Need]], *, goes_on: bool = False) -> None:
        self._needs = needs
        ends: frozenset[Face] = frozenset(("good", "bad"))
        self._meeting = {False: ends, True: ends if goes_on else ends - {"bad"}}
        """Faces that meet a need, by whether it must succeed."""
        self._users: list[list[tuple[int, bool]]] = [[] for _ in needs]
        for item, each in enumerate(needs):
            for need in each:
                self._users[need.item].append((item, need.must_succeed))
        self._own: list[Face] = ["open"] * len(needs)
        self._face: list[Face] = ["open"] * len(needs)
        self._unmet = [len(each) for each in needs]
        self._bad = [0] * len(needs)

    def own(self, item: int) -> Face:
        """What an item is by its own outcome or a request."""
        return self._own[item]

    def is_skipped(self, item: int) -> bool:
        """Whether it is open, and something that it needs is bad."""
        return self._own[item] == "open" and self._bad[item] > 0

    def may_start(self, item: int) -> bool:
        """Whether it is open and has all that it needs."""
        return self._own[item] == "open" and not self._unmet[item]

    def cause(self, item: int) -> int:
        """What a skipped item is skipped for: the first of its needs that is bad, by its own doing."""
        while self.is_skipped(item):
            item = next(n.item for n in self._needs[item] if n.must_succeed and self._face[n.item] == "bad")
        return item

    def set(self, item: int, own: Face) -> set[int]:
        """Take note of what an item is by itself now; returns those whose readiness may have changed."""
        touched = {item}
        self._own[item] = own
        pending = [item]
        while pending:
            item = pending.pop()
            face: Face = "bad" if self.is_skipped(item) else self._own[item]
            before, self._face[item] = self._face[item], face
            if face == before:
                continue
            for user, must_succeed in self._users[item]:
                touched.add(user)
                meeting = self._meeting[must_succeed]
                self._unmet[user] += (before in meeting) - (face in meeting)
                if "bad" not in meeting and "bad" in (before, face):
                    self._bad[user] += 1 if face == "bad" else -1
                    pending.append(user)
        return touched
