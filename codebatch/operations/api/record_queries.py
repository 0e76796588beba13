"""Public methods that return records: one method for each record type. Their filters are those of `codebatch query`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from codebatch.errors import StoreCorrupt
from codebatch.operations.queries.batch_query import Answer, BatchQuery

if TYPE_CHECKING:
    from typing_extensions import Unpack  # Only needed by type checkers, which install typing_extensions.

    from codebatch.model.record import (
        Diagnostic,
        Duplicate,
        Edge,
        Failure,
        File,
        Metric,
        Record,
        Severity,
        Symbol,
        SymbolType,
    )
    from codebatch.query.fields import JsonRecord
    from codebatch.query.filters.filters import RecordFilter
    from codebatch.query.filters.record_options import OneOrMany, OutputFilters, OutputRecordOptions, RecordOptions
    from codebatch.query.filters.shaping import Groups

R = TypeVar("R", bound="Record", covariant=True)
AnyAnswer = TypeVar("AnyAnswer", bound=Answer[object])


class Records(Answer[Iterable["JsonRecord"]], Generic[R]):
    """The requested records, sorted by path, task and location. They are read shard by shard during iteration.

    Iterate over this object to get typed records. Iterate over `result` to get dictionaries, as
    `codebatch query --json` prints them, with only the requested `fields`. You can iterate several times, but only in
    one thread. Iteration may raise StoreCorrupt.
    """

    def __init__(
        self,
        answer: Answer[Iterable[JsonRecord]],
        records: Iterable[JsonRecord],
        record_filter: RecordFilter,
        check_open: Callable[[], object],
    ) -> None:
        """Wrap an answer and its complete records. `record_filter` is the filter that these records pass.

        The records in `answer` have only the fields that the caller requested. `records` has the same records with all
        fields.
        """
        super().__init__(question=answer.question, result=answer.result, completeness=answer.completeness)
        self.asked = record_filter
        self._records = records
        self._check_open = check_open

    def __iter__(self) -> Iterator[R]:
        return cast("Iterator[R]", self._typed())

    def _typed(self) -> Iterator[Record]:
        from msgspec import ValidationError, convert

        from codebatch.model.record import TAG_BY_TYPE
        from codebatch.query.filters.filters import path_bytes

        types = {tag: type_ for type_, tag in TAG_BY_TYPE.items()}
        batch_id = self.question.batch.id
        for row in self._records:
            self._check_open()
            kind = row.get("kind")
            if not isinstance(kind, str) or kind not in types:
                raise StoreCorrupt(f"a record of batch {batch_id} has no kind")
            path_bytes(row)  # Every record needs a path; this raises StoreCorrupt if it is missing.
            try:
                record = convert(row, types[kind])
            except ValidationError as error:
                raise StoreCorrupt(f"a record of batch {batch_id} is not a valid {kind}: {error}") from error
            yield record


class RecordQueries(ABC):
    """Methods that return records.

    They raise InvalidInput for an invalid request, and StoreCorrupt for damaged data.
    """

    @property
    @abstractmethod
    def question(self) -> BatchQuery:
        """The query of the batch. Raises InvalidInput if the store was closed."""

    @abstractmethod
    def check(self, answer: AnyAnswer) -> AnyAnswer:
        """Return an answer unchanged.

        Raises BatchIncomplete if the answer is incomplete, unless the caller accepts incomplete answers.
        """

    def outputs(self, *, for_machines: bool = True, **options: Unpack[OutputRecordOptions]) -> Records[Record]:
        """Return records of all types.

        If `for_machines` is False and no type is selected, record types that only programs read are left out.
        """
        return self._query(options, None, for_machines=for_machines)

    def diagnostics(
        self,
        *,
        severity: Severity | Sequence[Severity] | None = None,
        code: OneOrMany = None,
        tool: OneOrMany = None,
        **options: Unpack[RecordOptions],
    ) -> Records[Diagnostic]:
        """Return findings. `code` is exact, or a prefix that ends with `*`."""
        return self._query(options, "diagnostic", severity=severity, code=code, tool=tool)

    def symbols(
        self,
        *,
        name: OneOrMany = None,
        symbol_type: SymbolType | Sequence[SymbolType] | None = None,
        **options: Unpack[RecordOptions],
    ) -> Records[Symbol]:
        """Return definitions and imports. `name` is exact, or a prefix that ends with `*`."""
        return self._query(options, "symbol", name=name, symbol_type=symbol_type)

    def edges(self, **options: Unpack[RecordOptions]) -> Records[Edge]:
        """Return imports, calls, inheritance and dependencies between files."""
        return self._query(options, "edge")

    def metrics(self, *, metric: OneOrMany = None, **options: Unpack[RecordOptions]) -> Records[Metric]:
        """Return metrics of files and functions."""
        return self._query(options, "metric", metric=metric)

    def files(self, **options: Unpack[RecordOptions]) -> Records[File]:
        """Return the record of each file: its language, size, class and parse state."""
        return self._query(options, "file")

    def failures(self, **options: Unpack[RecordOptions]) -> Records[Failure]:
        """Return failures of tasks."""
        return self._query(options, "failure")

    def duplicates(self, **options: Unpack[RecordOptions]) -> Records[Duplicate]:
        """Return duplicate blocks."""
        return self._query(options, "duplicate")

    def stats(self, by: str = "kind", **filters: Unpack[OutputFilters]) -> Answer[Groups]:
        """Return the number of records for each value of a field."""
        from codebatch.operations.queries.records import count_by
        from codebatch.query.filters.record_options import make_filter

        record_filter = make_filter(filters)
        task = filters.get("task")
        return self.check(count_by(self.question, record_filter, by, task=task, kinds=record_filter.named_kinds))

    def _query(
        self, options: RecordOptions, kind: str | None, *, for_machines: bool = True, **own_options: OneOrMany
    ) -> Records[R]:
        from msgspec import structs

        from codebatch.operations.queries.records import search_records
        from codebatch.query.fields import select_fields
        from codebatch.query.filters.record_options import (
            KINDS_FOR_PEOPLE,
            OutputRecordOptions,
            RecordOptions,
            make_filter,
            make_shape,
        )

        own_options = {"kind": kind, **own_options} if kind else own_options
        record_filter = make_filter(options, RecordOptions if kind else OutputRecordOptions, own_options)
        shape, task = make_shape(options), options.get("task")
        named_kinds = record_filter.named_kinds
        if not record_filter.kinds and not for_machines:
            record_filter = structs.replace(record_filter, kinds=KINDS_FOR_PEOPLE)

        def ask() -> Answer[Iterator[JsonRecord]]:
            return search_records(self.question, record_filter, task=task, kinds=named_kinds, shape=shape)

        answer = self.check(ask())
        first_iterators = [answer.result]
        records = _RepeatableIterable(lambda: first_iterators.pop() if first_iterators else ask().result)
        languages = self.question.records.languages_for(record_filter, shape.fields)
        shaped_records = (
            _RepeatableIterable(lambda: (select_fields(record, shape.fields, languages) for record in records))
            if shape.fields
            else records
        )
        shaped: Answer[Iterable[JsonRecord]] = Answer(
            question=answer.question, result=shaped_records, completeness=answer.completeness
        )
        return Records(shaped, records, record_filter, lambda: self.question)


class _RepeatableIterable(Iterable["JsonRecord"]):
    """An iterable that can be iterated several times. Each iteration starts with a new iterator from `begin`."""

    def __init__(self, begin: Callable[[], Iterator[JsonRecord]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[JsonRecord]:
        return self._begin()
