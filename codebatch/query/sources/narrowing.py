"""What a filter looks for in an index, so that fewer records are read. The answer is the filter's all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from codebatch.errors import CorruptFile, StoreError
from codebatch.index import keys
from codebatch.index.keys import Lookup
from codebatch.query.filters.filters import RecordFilter
from codebatch.store import layout
from codebatch.store.batches.store import StoreDir
from codebatch.store.results.outputs import TaskOutput

if TYPE_CHECKING:
    from codebatch.index.read import BatchIndex
    from codebatch.query.filters.required import Required


def lookups_of(asked: RecordFilter) -> tuple[Lookup, ...]:
    """What a record that passes must hold any of, in the index. Empty: nothing that an index knows."""
    if "*" in (*asked.names, *asked.codes):  # Any will do, and to look up all takes longer than to read them.
        return ()
    if asked.names:
        return tuple(keys.look_for(keys.SYMBOL, name) for name in asked.names)
    if asked.codes:
        return tuple(map(keys.look_for_code, asked.codes))
    if not asked.where:
        return ()
    from codebatch.query.filters.required import required_by  # `ast` is 4 ms that other filters do without

    required = required_by(asked.where)
    texts = {each.field: each.value for each in required if each.comparison == "==" and isinstance(each.value, str)}
    if "name" in texts:
        return (Lookup(keys.make_key(keys.SYMBOL, _bytes(texts["name"])), is_prefix=False),)
    if "code" in texts:
        return (keys.look_for_prefix(keys.CODE, _bytes(texts["code"]) + b"\0"),)
    return _of_edges(asked, texts) or _of_metrics(asked, texts, required)


def _of_edges(asked: RecordFilter, texts: Mapping[str, str]) -> tuple[Lookup, ...]:
    """Of a `depends` it is posted whole where it leads, and its last name is not."""
    if "target" in texts:
        depends = Lookup(keys.make_key(keys.DEPENDENCY, _bytes(texts["target"])), is_prefix=False)
        return (keys.look_for_references(texts["target"]), depends)
    is_known = texts.get("edge_type", "depends") != "depends" and not any(name.endswith("*") for name in asked.targets)
    return tuple(map(keys.look_for_references, asked.targets)) if is_known else ()


def _of_metrics(asked: RecordFilter, texts: Mapping[str, str], required: Sequence[Required]) -> tuple[Lookup, ...]:
    """Where values are asked for. That it has a metric narrows nothing: most files have it."""
    numbers = [(each.comparison, each.value) for each in required if each.field == "value"]
    least = max(
        (value for sign, value in numbers if sign in ("==", ">", ">=") and not isinstance(value, str)), default=None
    )
    most = min(
        (value for sign, value in numbers if sign in ("==", "<", "<=") and not isinstance(value, str)), default=None
    )
    metrics = (texts["metric"],) if "metric" in texts else asked.metrics
    if least is None and most is None:
        return ()
    return tuple(keys.look_for_metric(metric, least, most) for metric in metrics)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Narrowing:
    """The index of a batch, opened when it is first asked, and what to do where there is none that is sound."""

    def __init__(self, store: StoreDir, batch_id: str, note: Callable[[str], None]) -> None:
        """`note` is told once that the index is unsound, and of what to do about it."""
        self._store = store
        self._batch_id = batch_id
        self._note = note
        self._is_open = False
        self._index: BatchIndex | None = None

    def narrow(self, output: TaskOutput, lookups: Sequence[Lookup]) -> Sequence[Sequence[int] | None]:
        """As `Index.narrow`; nothing where there is no index, or none that is sound: then all of a task is read."""
        try:
            index = self._opened()
            return () if index is None else index.narrow(output, lookups)
        except StoreError as error:
            self._index = None
            hint = f"; {error.hint}" if isinstance(error, CorruptFile) else ""
            self._note(f"reading all results, because the index cannot be used: {error.message}{hint}")
            return ()

    def _opened(self) -> BatchIndex | None:
        if not self._is_open:
            self._is_open = True
            # The library is loaded by those alone who have an index.
            if self._store.files.listing(self._store.root / layout.INDEXES / self._batch_id):
                from codebatch.index.read import open_index

                self._index = open_index(self._store, self._batch_id)
        return self._index
