"""The changes and outputs of needed commands, with which the attempt of a command starts (SPEC.md "Trees")."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence

from codebatch.model.digest import Digest
from codebatch.model.graph import find_reachable
from codebatch.model.work.trees import NeededChanges, TreeInput
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.command_batch import CommandBatch
from codebatch.scheduling.work.events import AttemptOutcome


def make_tree_input(batch: CommandBatch, item: int) -> TreeInput:
    """Return the input of the tree of an attempt that is about to start.

    - After an answer to its question, the command continues in the tree of the attempt that asked.
    - Otherwise it gets a new tree. If the last attempt failed, or asked a question without an answer, its tree may have
      been kept.
    """
    last = batch.last_begun_outcome(item)
    needed = tuple(
        NeededChanges(task=batch.agenda.ids[need], changes=outcome.changes)
        for need in needed_items(batch, item)
        if (outcome := last_success(batch, need)) is not None and outcome.changes
    )
    if last is None or last.type not in ("failed", "blocked"):
        return TreeInput(needed=needed)
    if batch.state_rule.has_answer(item, last):
        return TreeInput(needed=needed, continued_round=last.round)
    return TreeInput(needed=needed, previous_round=last.round)


def needed_outputs(batch: CommandBatch, item: int) -> dict[str, Digest]:
    """Map each task whose outputs an item uses to their digest. Tasks without outputs are left out.

    If a task is not in the batch, its last success in an earlier batch counts.
    """
    agenda = batch.agenda
    outputs: dict[str, Digest] = {}
    for task in agenda.policies[item].outputs_of:
        need = agenda.items_by_id.get(task)
        success = agenda.successes.get(task) if need is None else last_success(batch, need)
        if success is not None and success.outputs:
            outputs[task] = success.outputs
    return outputs


def needed_items(batch: CommandBatch, item: int) -> list[int]:
    """Return the items that an item needs, directly or not, each after the items that it needs itself.

    Among items that may come next, the first of the task list comes first. Items that only have to end are left out.
    """
    agenda = batch.agenda

    def needs_of(one: int) -> set[int]:
        return {need.item for need in agenda.needs[one] if need.must_succeed}

    return order_by_needs({one: needs_of(one) for one in find_reachable(needs_of(item), needs_of)}, agenda.ranks)


def order_by_needs(needs: Mapping[int, Collection[int]], ranks: Sequence[int]) -> list[int]:
    """Return the items of `needs`, each after the items that it needs.

    Among items that may come next, the one with the lowest rank comes first. `needs` must not have a cycle.
    """
    missing = {item: len(needs[item]) for item in needs}
    users: dict[int, list[int]] = {item: [] for item in needs}
    for item, items in needs.items():
        for needed in items:
            users[needed].append(item)
    ready = [(ranks[item], item) for item, count in missing.items() if not count]
    heapq.heapify(ready)
    ordered: list[int] = []
    while ready:
        _, item = heapq.heappop(ready)
        ordered.append(item)
        for user in users[item]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (ranks[user], user))
    return ordered


def last_success(batch: CommandBatch, item: int) -> AttemptOutcome | None:
    """Return the outcome of the last successful attempt of an item that is DONE. Otherwise return None."""
    if batch.state(item) is not CommandState.DONE:
        return None
    outcomes = batch.outcomes_by_round(item).values()
    return max((one for one in outcomes if one.type == "result"), key=lambda one: one.round, default=None)


def kept_trees(batch: CommandBatch) -> list[tuple[str, int]]:
    """Return the tasks whose last attempt left a tree that is kept, with the round of this attempt.

    The attempt failed, asked a question, or did work that its change set does not record.
    """
    kept: list[tuple[str, int]] = []
    for item, task in enumerate(batch.agenda.ids):
        outcomes = batch.outcomes_by_round(item)
        ended = [round_ for round_, outcome in outcomes.items() if outcome.type in ("result", "failed", "blocked")]
        last = outcomes[max(ended)] if ended else None
        if last is not None and (last.type != "result" or last.unrecorded):
            kept.append((task, last.round))
    return kept
