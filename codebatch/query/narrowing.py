"""What a filter looks for in an index, so that fewer records are read. The answer is the filter's all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from codebatch.errors import StoreError
from codebatch.index import keys
from codebatch.index.keys import Lookup
from codebatch.query.filters import RecordFilter
from codebatch.store import layout
from codebatch.store.outputs import TaskOutput
from codebatch.store.store import Store

if TYPE_CHECKING:
    from codebatch.index.read import Index


def lookups_of(asked: RecordFilter) -> tuple[Lookup, ...]:
    """What a record that passes must hold any of, in the index. Empty: nothing that an index knows."""
    if asked.names:
        return tuple(keys.look_for(keys.SYMBOL, name) for name in asked.names)
    return tuple(map(keys.look_for_code, asked.codes))


class Narrowing:
    """The index of a batch, opened when it is first asked, and what to do where there is none that is sound."""

    def __init__(self, store: Store, batch_id: str, note: Callable[[str], None]) -> None:
        """`note` is told once that the index is unsound, and of what to do about it."""
        self._store = store
        self._batch_id = batch_id
        self._note = note
        self._is_open = False
        self._index: Index | None = None

    def narrow(self, output: TaskOutput, lookups: Sequence[Lookup]) -> Sequence[Sequence[int] | None]:
        """As `Index.narrow`; nothing where there is no index, or none that is sound: then all of a task is read."""
        try:
            index = self._opened()
            return () if index is None else index.narrow(output, lookups)
        except StoreError as error:
            self._index = None
            hint = f"; {error.hint}" if error.hint else ""
            self._note(f"all is read, for the index cannot be used: {error.message}{hint}")
            return ()

    def _opened(self) -> Index | None:
        if not self._is_open:
            self._is_open = True
            # The library is loaded by those alone who have an index.
            if self._store.files.listing(self._store.root / layout.INDEXES / self._batch_id):
                from codebatch.index.read import open_index

                self._index = open_index(self._store, self._batch_id)
        return self._index
