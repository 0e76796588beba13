"""Readiness of commands by their needs. Each change of a command's state is propagated to the commands that need it.

A change takes time in proportion to the affected edges, and a whole batch O(edges). The propagation uses a list, not
recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from codebatch.scheduling.work.command_plan import CommandNeed

DependencyState = Literal["open", "runs", "good", "bad", "held"]
"""The *face* of a command: its state as far as it matters for the commands that need it.

- `open`: it has not ended.
- `runs`: it runs, whatever happens to its needs.
- `good`: it succeeded.
- `bad`: it did not succeed.
- `held`: it waits for an answer, so it is neither `good` nor `bad` yet.
"""


class CommandGraph:
    """The dependency graph of commands. `needs[item]` are the needs of an item.

    If `goes_on` is set, a need is met even if the needed command failed.
    """

    def __init__(self, needs: Sequence[Sequence[CommandNeed]], *, goes_on: bool = False) -> None:
        self._needs: list[Sequence[CommandNeed]] = []
        ends: frozenset[DependencyState] = frozenset(("good", "bad"))
        self._satisfying_states = {False: ends, True: ends if goes_on else ends - {"bad"}}
        """Faces (DependencyState) that meet a need. The key is whether the needed command must succeed."""
        self._dependents: list[list[tuple[int, bool]]] = []
        self._own_states: list[DependencyState] = []
        self._visible_states: list[DependencyState] = []
        self._unmet_counts: list[int] = []
        self._bad_need_counts: list[int] = []
        self.add(needs)

    def add(self, needs: Sequence[Sequence[CommandNeed]]) -> None:
        """Add open items, which follow the present items. `needs` are the needs of each."""
        first = len(self._needs)
        self._needs += needs
        self._dependents += ([] for _ in needs)
        self._own_states += ["open"] * len(needs)
        self._visible_states += ["open"] * len(needs)
        for item, item_needs in enumerate(needs, first):
            faces = [
                (self._visible_states[need.item], self._satisfying_states[need.must_succeed]) for need in item_needs
            ]
            self._unmet_counts.append(sum(face not in meeting for face, meeting in faces))
            self._bad_need_counts.append(sum(face == "bad" and "bad" not in meeting for face, meeting in faces))
            for need in item_needs:
                self._dependents[need.item].append((item, need.must_succeed))

    def own_state(self, item: int) -> DependencyState:
        """Return the face of an item by its own outcome or by a request, without regard to its needs."""
        return self._own_states[item]

    def is_skipped(self, item: int) -> bool:
        """Return whether an item has not ended, and a command that it needs did not succeed."""
        return self._own_states[item] == "open" and self._bad_need_counts[item] > 0

    def may_start(self, item: int) -> bool:
        """Return whether an item has not ended or started, and all its needs are met."""
        return self._own_states[item] == "open" and not self._unmet_counts[item]

    def skip_cause(self, item: int) -> int:
        """Return the item that caused an item to be skipped.

        Follow the first need that did not succeed, from each skipped item to the next. Return the first item on this
        path that is not skipped because of a need.
        """
        while self.is_skipped(item):
            item = next(n.item for n in self._needs[item] if n.must_succeed and self._visible_states[n.item] == "bad")
        return item

    def set(self, item: int, state: DependencyState) -> set[int]:
        """Set an item's own face. Return the items that may have become ready, or may not be ready any more."""
        touched = {item}
        self._own_states[item] = state
        pending = [item]
        while pending:
            item = pending.pop()
            face: DependencyState = "bad" if self.is_skipped(item) else self._own_states[item]
            before, self._visible_states[item] = self._visible_states[item], face
            if face == before:
                continue
            for user, must_succeed in self._dependents[item]:
                touched.add(user)
                meeting = self._satisfying_states[must_succeed]
                self._unmet_counts[user] += (before in meeting) - (face in meeting)
                if "bad" not in meeting and "bad" in (before, face):
                    self._bad_need_counts[user] += 1 if face == "bad" else -1
                    pending.append(user)
        return touched
