"""The nouns that a batch can be asked for, each with the filters that `query` has for it (RecordOptions)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from codebatch.errors import StoreCorrupt
from codebatch.operations.queries.batch_query import Answer, BatchQuery

if TYPE_CHECKING:
    from typing_extensions import Unpack  # What checks types brings it along, and nothing else needs it.

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
    from codebatch.query.filters.record_options import OutputFilters, OutputRecordOptions, RecordOptions, Several
    from codebatch.query.filters.shaping import Groups

R = TypeVar("R", bound="Record", covariant=True)
AnyAnswer = TypeVar("AnyAnswer", bound=Answer[object])


class Records(Answer[Iterable["JsonRecord"]], Generic[R]):
    """The requested records, sorted by path, task and location. They are read shard by shard during iteration.

    Iteration over the object yields typed records. Iteration over `found` yields records in the form of JSON answers,
    with only the requested `fields`. Both can be iterated several times, but only in one thread, and may raise
    StoreCorrupt.
    """

    def __init__(
        self,
        answer: Answer[Iterable[JsonRecord]],
        records: Iterable[JsonRecord],
        asked: RecordFilter,
        check_open: Callable[[], object],
    ) -> None:
        """`asked` is what they pass; `records` are whole, as those of `answer` may not be."""
        super().__init__(question=answer.question, found=answer.found, whole=answer.whole)
        self.asked = asked
        self._records = records
        self._check_open = check_open

    def __iter__(self) -> Iterator[R]:
        return cast("Iterator[R]", self._typed())

    def _typed(self) -> Iterator[Record]:
        from msgspec import ValidationError, convert

        from codebatch.model.record import TAGS
        from codebatch.query.filters.filters import path_bytes

        types = {tag: type_ for type_, tag in TAGS.items()}
        batch_id = self.question.batch.id
        for row in self._records:
            self._check_open()
            kind = row.get("kind")
            if not isinstance(kind, str) or kind not in types:
                raise StoreCorrupt(f"a record of batch {batch_id} has no kind")
            path_bytes(row)  # That it has one is asked of all.
            try:
                record = convert(row, types[kind])
            except ValidationError as error:
                raise StoreCorrupt(f"a record of batch {batch_id} is not a valid {kind}: {error}") from error
            yield record


class RecordQueries(ABC):
    """What gives records. Every method raises InvalidInput for what cannot be asked, and StoreCorrupt."""

    @property
    @abstractmethod
    def question(self) -> BatchQuery:
        """The batch, as use cases take it. Raises InvalidInput where its store was closed."""

    @abstractmethod
    def check(self, answer: AnyAnswer) -> AnyAnswer:
        """The same answer. Raises BatchIncomplete where it is not whole, and only a whole one is wanted."""

    def outputs(self, *, for_machines: bool = True, **wanted: Unpack[OutputRecordOptions]) -> Records[Record]:
        """Records of every kind; where none is named, and not `for_machines`, without those that nobody else reads."""
        return self._ask(wanted, None, for_machines=for_machines)

    def diagnostics(
        self,
        *,
        severity: Severity | Sequence[Severity] | None = None,
        code: Several = None,
        tool: Several = None,
        **wanted: Unpack[RecordOptions],
    ) -> Records[Diagnostic]:
        """What was found wrong. `code` is exact, but for a `*` at the end."""
        return self._ask(wanted, "diagnostic", severity=severity, code=code, tool=tool)

    def symbols(
        self,
        *,
        name: Several = None,
        symbol_type: SymbolType | Sequence[SymbolType] | None = None,
        **wanted: Unpack[RecordOptions],
    ) -> Records[Symbol]:
        """What is defined where, imports among it. `name` is exact, but for a `*` at the end."""
        return self._ask(wanted, "symbol", name=name, symbol_type=symbol_type)

    def edges(self, **wanted: Unpack[RecordOptions]) -> Records[Edge]:
        """Imports, calls, inheritance, and which file depends on which."""
        return self._ask(wanted, "edge")

    def metrics(self, *, metric: Several = None, **wanted: Unpack[RecordOptions]) -> Records[Metric]:
        """Numbers about files and functions."""
        return self._ask(wanted, "metric", metric=metric)

    def files(self, **wanted: Unpack[RecordOptions]) -> Records[File]:
        """What each file is."""
        return self._ask(wanted, "file")

    def failures(self, **wanted: Unpack[RecordOptions]) -> Records[Failure]:
        """What a task could not do."""
        return self._ask(wanted, "failure")

    def duplicates(self, **wanted: Unpack[RecordOptions]) -> Records[Duplicate]:
        """Blocks of code that stand at several places."""
        return self._ask(wanted, "duplicate")

    def stats(self, by: str = "kind", **filters: Unpack[OutputFilters]) -> Answer[Groups]:
        """How many records have which value of a field."""
        from codebatch.operations.queries.records import count_by
        from codebatch.query.filters.record_options import filter_of

        asked = filter_of(filters)
        task = filters.get("task")
        return self.check(count_by(self.question, asked, by, task=task, kinds=asked.named_kinds))

    def _ask(self, wanted: RecordOptions, kind: str | None, *, for_machines: bool = True, **own: Several) -> Records[R]:
        from msgspec import structs

        from codebatch.operations.queries.records import search
        from codebatch.query.fields import chosen
        from codebatch.query.filters.record_options import (
            KINDS_FOR_PEOPLE,
            OutputRecordOptions,
            RecordOptions,
            filter_of,
            shape_of,
        )

        own = {"kind": kind, **own} if kind else own
        asked = filter_of(wanted, RecordOptions if kind else OutputRecordOptions, own)
        shape, task = shape_of(wanted), wanted.get("task")
        named = asked.named_kinds
        if not asked.kinds and not for_machines:
            asked = structs.replace(asked, kinds=KINDS_FOR_PEOPLE)

        def ask() -> Answer[Iterator[JsonRecord]]:
            return search(self.question, asked, task=task, kinds=named, shape=shape)

        answer = self.check(ask())
        begun = [answer.found]
        records = _Again(lambda: begun.pop() if begun else ask().found)
        languages = self.question.records.languages_for(asked, shape.fields)
        found = _Again(lambda: (chosen(each, shape.fields, languages) for each in records)) if shape.fields else records
        told: Answer[Iterable[JsonRecord]] = Answer(question=answer.question, found=found, whole=answer.whole)
        return Records(told, records, asked, lambda: self.question)


class _Again(Iterable["JsonRecord"]):
    """What is begun anew each time that it is gone through."""

    def __init__(self, begin: Callable[[], Iterator[JsonRecord]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[JsonRecord]:
        return self._begin()
