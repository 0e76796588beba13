"""Readiness of commands by their needs. Each change of a state is propagated to the commands that need it.

A change takes time in proportion to the affected edges. The propagation uses a list, not recursion. A whole batch takes
O(edges).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from codebatch.scheduling.work.command_plan import Need

DependencyState = Literal["open", "runs", "good", "bad", "held"]
"""The state of a command as seen by the commands that need it.

`open`: it has not ended. `runs`: it runs, whatever happens to its needs. `good`, `bad`: it succeeded, or it did not.
`held`: it waits for an answer, so the need is neither met nor failed.
"""


class CommandGraph:
    """The graph of commands. `needs[item]` are the needs of an item. If `goes_on`, a failed need counts as met."""

    def __init__(self, needs: Sequence[Sequence[Need]], *, goes_on: bool = False) -> None:
        self._needs = needs
        ends: frozenset[DependencyState] = frozenset(("good", "bad"))
        self._meeting = {False: ends, True: ends if goes_on else ends - {"bad"}}
        """Faces that meet a need, by whether the needed command must succeed."""
        self._users: list[list[tuple[int, bool]]] = [[] for _ in needs]
        for item, item_needs in enumerate(needs):
            for need in item_needs:
                self._users[need.item].append((item, need.must_succeed))
        self._own: list[DependencyState] = ["open"] * len(needs)
        self._face: list[DependencyState] = ["open"] * len(needs)
        self._unmet = [len(item_needs) for item_needs in needs]
        self._bad = [0] * len(needs)

    def own_state(self, item: int) -> DependencyState:
        """Return the face that an item has by its own outcome or by a request, regardless of its needs."""
        return self._own[item]

    def is_skipped(self, item: int) -> bool:
        """Return whether an item is open and one of the commands that it needs did not succeed."""
        return self._own[item] == "open" and self._bad[item] > 0

    def may_start(self, item: int) -> bool:
        """Return whether an item is open and all its needs are met."""
        return self._own[item] == "open" and not self._unmet[item]

    def cause(self, item: int) -> int:
        """Return the item because of which an item is skipped.

        From each skipped item, go to the first need that did not succeed. The result is the first item that is not
        skipped by this rule.
        """
        while self.is_skipped(item):
            item = next(n.item for n in self._needs[item] if n.must_succeed and self._face[n.item] == "bad")
        return item

    def set(self, item: int, state: DependencyState) -> set[int]:
        """Set the own face of an item. Return the items that may have become ready, or not ready."""
        touched = {item}
        self._own[item] = state
        pending = [item]
        while pending:
            item = pending.pop()
            face: DependencyState = "bad" if self.is_skipped(item) else self._own[item]
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
