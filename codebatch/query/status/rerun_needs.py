"""Tasks whose last attempt used the changes of a needed task that ran again since.

A later attempt of a needed task does not change what an attempt saw. The times of commit files show which attempt ended
first.
"""

from __future__ import annotations

from msgspec import UNSET

from codebatch.model.work.work_batch import WORK_TASK
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import AttemptOutcome
from codebatch.scheduling.work.tree_inputs import last_success, needed_items
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.attempts import CommandPlaces
from codebatch.store.work.work_batches import CommandDefinitions


class RerunNeeds:
    """The needed tasks with newer changes, for each task of a work batch that has trees."""

    def __init__(self, store: StoreDir, batch: BatchDir, conductor: Conductor, places: CommandPlaces) -> None:
        self._store = store
        self._batch = batch
        self._conductor = conductor
        self._places = places

    def newer_need(self, item: int) -> int | None:
        """Return the first needed item that changed files again after the last attempt of an item.

        Return None if there is none, if the item runs, or if its last attempt did not work in a tree of its own.
        """
        last = self._conductor.last_begun_outcome(item)
        if last is None or item in self._conductor.running_items:
            return None
        for need in needed_items(self._conductor, item):
            if self._has_newer_changes(need, last):
                return need if self._is_isolated(last) else None
        return None

    def _is_isolated(self, outcome: AttemptOutcome) -> bool:
        definitions = CommandDefinitions(self._store, self._batch)
        return definitions.read(self._conductor.agenda.ids[outcome.item], outcome.round).isolation is not UNSET

    def _has_newer_changes(self, need: int, last: AttemptOutcome) -> bool:
        outcomes = self._conductor.outcomes_by_round(need)
        newest = last_success(self._conductor, need)
        if newest is None or len(outcomes) == 1:
            return False
        ended_ns = self._end_time(last)
        seen = [one for one in outcomes.values() if one.type == "result" and self._end_time(one) <= ended_ns]
        return bool(seen) and max(seen, key=lambda one: one.round).changes != newest.changes

    def _end_time(self, outcome: AttemptOutcome) -> int:
        shard, start = self._places.place_of_item(outcome.item)
        name = layout.register_name(shard, start, WORK_TASK, outcome.round)
        status = self._batch.files.stat(self._batch.root / layout.OUTCOMES / name)
        return 0 if status is None else status.st_mtime_ns
