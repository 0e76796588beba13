"""Index lookups that follow from a filter.

They reduce the records that are read; the answer is the same as without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from codebatch.errors import CorruptFile, StoreError
from codebatch.index import keys
from codebatch.index.keys import TermLookup
from codebatch.query.filters.filters import RecordFilter
from codebatch.store import layout
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outputs import TaskOutput

if TYPE_CHECKING:
    from codebatch.index.read import BatchIndex
    from codebatch.query.filters.required import RequiredComparison


def index_lookups(record_filter: RecordFilter) -> tuple[TermLookup, ...]:
    """Return index lookups for a filter, such that each matching record satisfies at least one of them.

    Return an empty tuple if no lookups follow from the filter.
    """
    # A bare `*` matches every term, so lookups would take longer than reading all records.
    if "*" in (*record_filter.names, *record_filter.codes):
        return ()
    if record_filter.names:
        return tuple(keys.make_lookup(keys.SYMBOL_TAG, name) for name in record_filter.names)
    if record_filter.codes:
        return tuple(map(keys.make_code_lookup, record_filter.codes))
    if not record_filter.where:
        return ()
    # Imported here because it imports `ast`, which filters without a condition do not need.
    from codebatch.query.filters.required import required_comparisons

    required = required_comparisons(record_filter.where)
    texts = {
        comparison.field: comparison.value
        for comparison in required
        if comparison.comparison == "==" and isinstance(comparison.value, str)
    }
    if "name" in texts:
        return (TermLookup(keys.make_key(keys.SYMBOL_TAG, _encode_text(texts["name"])), is_prefix=False),)
    if "code" in texts:
        return (keys.make_prefix_lookup(keys.CODE_TAG, _encode_text(texts["code"]) + b"\0"),)
    return _edge_lookups(record_filter, texts) or _metric_lookups(record_filter, texts, required)


def _edge_lookups(record_filter: RecordFilter, texts: Mapping[str, str]) -> tuple[TermLookup, ...]:
    """Return lookups for targets of edges.

    The index has the last name of each target; only for `depends` edges, it has the whole target.
    """
    if "target" in texts:
        depends = TermLookup(keys.make_key(keys.DEPENDENCY_TAG, _encode_text(texts["target"])), is_prefix=False)
        return (keys.make_reference_lookup(texts["target"]), depends)
    is_known = texts.get("edge_type", "depends") != "depends" and not any(
        name.endswith("*") for name in record_filter.targets
    )
    return tuple(map(keys.make_reference_lookup, record_filter.targets)) if is_known else ()


def _metric_lookups(
    record_filter: RecordFilter, texts: Mapping[str, str], required: Sequence[RequiredComparison]
) -> tuple[TermLookup, ...]:
    """Return lookups for conditions on metric values, such as `value > 10`.

    If the condition does not limit the value, there is no lookup: most files have the metric, so it would not help.
    """
    numbers = [(comparison.comparison, comparison.value) for comparison in required if comparison.field == "value"]
    least = max(
        (value for sign, value in numbers if sign in ("==", ">", ">=") and not isinstance(value, str)), default=None
    )
    most = min(
        (value for sign, value in numbers if sign in ("==", "<", "<=") and not isinstance(value, str)), default=None
    )
    metrics = (texts["metric"],) if "metric" in texts else record_filter.metrics
    if least is None and most is None:
        return ()
    return tuple(keys.make_metric_lookup(metric, least, most) for metric in metrics)


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class IndexNarrowing:
    """The index of a batch, opened on first use. If there is no valid index, callers read all records."""

    def __init__(self, store: StoreDir, batch_id: str, warn: Callable[[str], None]) -> None:
        """Wrap the index of a batch. `warn` is called at most once, with a message, if the index is damaged."""
        self._store = store
        self._batch_id = batch_id
        self._warn = warn
        self._is_open = False
        self._index: BatchIndex | None = None

    def narrow(self, output: TaskOutput, lookups: Sequence[TermLookup]) -> Sequence[Sequence[int] | None]:
        """Return for each shard the frames to read, like `BatchIndex.narrow`.

        If there is no valid index, return an empty sequence. The caller then reads all records of the task.
        """
        try:
            index = self._open_once()
            return () if index is None else index.narrow_frames(output, lookups)
        except StoreError as error:
            self._give_up("results", error)
            return ()

    def find_items(self, words: Sequence[bytes], items: int) -> list[int] | None:
        """Return the numbers of the items whose contents may have all of the words, ascending.

        `items` is the number of all items. If no valid index has words, return None. The caller then reads all files.
        """
        try:
            index = self._open_once()
            return None if index is None else index.find_items(words, items)
        except StoreError as error:
            self._give_up("files", error)
            return None

    def _give_up(self, what: str, error: StoreError) -> None:
        self._index = None
        hint = f"; {error.hint}" if isinstance(error, CorruptFile) else ""
        self._warn(f"reading all {what}, because the index cannot be used: {error.message}{hint}")

    def _open_once(self) -> BatchIndex | None:
        if not self._is_open:
            self._is_open = True
            # The LMDB library is imported only if the batch has an index, because importing it is slow.
            if self._store.files.listing(self._store.root / layout.INDEXES / self._batch_id):
                from codebatch.index.read import open_index

                self._index = open_index(self._store, self._batch_id)
        return self._index
