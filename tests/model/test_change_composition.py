"""Composition of changes that tasks made one after the other."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import given

from codebatch.model.change import TreeChange
from codebatch.model.change_composition import ChangesNotComposable, compose_changes, follows
from codebatch.model.digest import Digest

State = tuple[str, bool] | None
"""The content of a file and whether it is executable. None: the file does not exist."""

_STATES = st.none() | st.tuples(st.sampled_from("abc"), st.booleans())


def change(before: State, after: State) -> TreeChange:
    """Return the change between two states of a file."""
    return TreeChange(
        path=b"f",
        before=None if before is None else Digest(before[0] * 64),
        after=None if after is None else Digest(after[0] * 64),
        was_executable=before is not None and before[1],
        executable=after is not None and after[1],
    )


def between(first: State, last: State) -> TreeChange | None:
    return None if first == last else change(first, last)


def chain(states: list[State]) -> list[TreeChange]:
    """Return the changes between the states in order."""
    return [change(before, after) for before, after in itertools.pairwise(states) if before != after]


@given(st.lists(_STATES, min_size=2, max_size=6))
def test_composition_leads_from_the_first_state_to_the_last(states: list[State]) -> None:
    changes = chain(states)
    if changes:
        assert compose_changes(changes) == between(states[0], states[-1])


@given(st.lists(_STATES, min_size=2, max_size=6), st.data())
def test_composition_is_associative(states: list[State], data: st.DataObject) -> None:
    """Parts of a chain may be composed first. A part that changes nothing in total is left out."""
    changes = chain(states)
    if len(changes) < 2:
        return
    cut = data.draw(st.integers(1, len(changes) - 1))
    parts = [composed for part in (changes[:cut], changes[cut:]) if (composed := compose_changes(part)) is not None]
    assert (compose_changes(parts) if parts else None) == compose_changes(changes)


@given(_STATES, _STATES, _STATES, _STATES)
def test_only_changes_of_one_history_are_composed(a: State, b: State, c: State, d: State) -> None:
    if a == b or c == d:
        return
    pair = [change(a, b), change(c, d)]
    assert follows(*pair) == (b == c)
    if b != c:
        with pytest.raises(ChangesNotComposable):
            compose_changes(pair)


def test_changes_of_other_paths_or_kinds_are_not_composed() -> None:
    first = change(("a", False), ("b", False))
    second = change(("b", False), ("c", False))
    for other in (
        TreeChange(path=b"g", before=second.before, after=second.after),
        TreeChange(path=b"f", kind="link", before=second.before, after=second.after),
    ):
        with pytest.raises(ChangesNotComposable):
            compose_changes([first, other])
