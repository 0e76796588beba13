"""The nouns that a batch can be asked for, each with the filters that `query` has for it under these names.

A filter takes one value or several, of which any may be met; what is None is not asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar, cast

import msgspec

from codebatch.application import questions
from codebatch.application.asking import Answer, Question
from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.record import (
    KINDS,
    TAGS,
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
from codebatch.query.arguments import refuse_unknown
from codebatch.query.fields import JsonRecord, chosen
from codebatch.query.filters import RecordFilter, path_bytes
from codebatch.query.shaping import Groups, Shape

if TYPE_CHECKING:
    from typing_extensions import Unpack  # What checks types brings it along, and nothing else needs it.

R = TypeVar("R", bound=Record, covariant=True)
T = TypeVar("T")
AnyAnswer = TypeVar("AnyAnswer", bound=Answer[object])
Several = str | Collection[str] | None

KINDS_FOR_PEOPLE = tuple(kind for kind in KINDS if kind != "fingerprints")
"""Those that are not for machines alone."""

_TYPES = {tag: type_ for type_, tag in TAGS.items()}
_FIELDS = {
    "kind": "kinds",
    "severity": "severities",
    "code": "codes",
    "tool": "tools",
    "name": "names",
    "symbol_type": "symbol_types",
    "metric": "metrics",
    "lang": "languages",
    "fields": "fields",
}
"""Of what may be several: what it is called in RecordFilter and in Shape."""

_NONE: Mapping[str, Several] = {}


class Filters(TypedDict, total=False):
    """By what every noun can be asked: the language of a record's file, its path, a condition, the task that said it.

    `path` is a part of the path, case ignored, or with one of `* ? [` a pattern as in gitignore(5). `where` is a Python
    expression of fields (SPEC.md "Answers").
    """

    lang: Several
    path: str
    where: str
    task: str | None


class Wanted(Filters, total=False):
    """And in what order records are wanted, and which of them.

    `sort` is a field, with a `-` before it the greatest first. Then `offset` are left out, and at most `limit` taken.
    `fields` are those that rows have, all where none is named.
    """

    sort: str
    offset: int
    limit: int | None
    fields: Several


class OutputFilters(Filters, total=False):
    """By what records of every kind can be asked. `code` and `name` are exact, but for a `*` at the end."""

    kind: Several
    severity: Severity | Sequence[Severity] | None
    code: Several
    tool: Several
    name: Several
    symbol_type: SymbolType | Sequence[SymbolType] | None
    metric: Several


class OutputsWanted(OutputFilters, Wanted, total=False):
    """By what records of every kind can be asked, and in what order they are wanted, and which of them."""


class Records(Answer[Iterable[JsonRecord]], Generic[R]):
    """The records that were asked for, by path, task and place; read shard by shard while they are gone through.

    As often as one likes: the records themselves, with their types, or `found`, which are the same as JSON has them,
    each with the `fields` alone that were wanted. While they are read StoreCorrupt may be raised. It is for one thread.
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
        for row in self._records:
            self._check_open()
            yield cast("R", self._typed(row))

    def _typed(self, row: JsonRecord) -> Record:
        kind = row.get("kind")
        if not isinstance(kind, str) or kind not in _TYPES:
            raise StoreCorrupt(f"a record of batch {self.question.batch.id} is of no kind")
        path_bytes(row)  # That it has one is asked of all.
        try:
            return msgspec.convert(row, _TYPES[kind])
        except msgspec.ValidationError as error:
            raise StoreCorrupt(f"a record of batch {self.question.batch.id} is no {kind}: {error}") from error


class Nouns(ABC):
    """What gives records. Every method raises InvalidInput for what cannot be asked, and StoreCorrupt."""

    @property
    @abstractmethod
    def question(self) -> Question:
        """The batch, as use cases take it. Raises InvalidInput where its store was closed."""

    @abstractmethod
    def check(self, answer: AnyAnswer) -> AnyAnswer:
        """The same answer. Raises BatchIncomplete where it is not whole, and only a whole one is wanted."""

    def outputs(self, *, for_machines: bool = True, **wanted: Unpack[OutputsWanted]) -> Records[Record]:
        """Records of every kind; where none is named, and not `for_machines`, without those that nobody else reads."""
        return self._ask(wanted, OutputsWanted, for_machines=for_machines)

    def diagnostics(
        self,
        *,
        severity: Severity | Sequence[Severity] | None = None,
        code: Several = None,
        tool: Several = None,
        **wanted: Unpack[Wanted],
    ) -> Records[Diagnostic]:
        """What was found wrong. `code` is exact, but for a `*` at the end."""
        return self._ask(wanted, Wanted, kind="diagnostic", severity=severity, code=code, tool=tool)

    def symbols(
        self,
        *,
        name: Several = None,
        symbol_type: SymbolType | Sequence[SymbolType] | None = None,
        **wanted: Unpack[Wanted],
    ) -> Records[Symbol]:
        """What is defined where, imports among it. `name` is exact, but for a `*` at the end."""
        return self._ask(wanted, Wanted, kind="symbol", name=name, symbol_type=symbol_type)

    def edges(self, **wanted: Unpack[Wanted]) -> Records[Edge]:
        """Imports, calls, inheritance, and which file depends on which."""
        return self._ask(wanted, Wanted, kind="edge")

    def metrics(self, *, metric: Several = None, **wanted: Unpack[Wanted]) -> Records[Metric]:
        """Numbers about files and functions."""
        return self._ask(wanted, Wanted, kind="metric", metric=metric)

    def files(self, **wanted: Unpack[Wanted]) -> Records[File]:
        """What each file is."""
        return self._ask(wanted, Wanted, kind="file")

    def failures(self, **wanted: Unpack[Wanted]) -> Records[Failure]:
        """What a task could not do."""
        return self._ask(wanted, Wanted, kind="failure")

    def duplicates(self, **wanted: Unpack[Wanted]) -> Records[Duplicate]:
        """Blocks of code that stand at several places."""
        return self._ask(wanted, Wanted, kind="duplicate")

    def stats(self, by: str = "kind", **filters: Unpack[OutputFilters]) -> Answer[Groups]:
        """How many records have which value of a field."""
        asked = filter_of(filters)
        task = filters.get("task")
        return self.check(questions.count_by(self.question, asked, by, task=task, kinds=asked.named_kinds))

    def _ask(self, wanted: Wanted, known: type, *, for_machines: bool = True, **own: Several) -> Records[R]:
        asked, shape, task = filter_of(wanted, known, own), _convert(_given(wanted), Shape), wanted.get("task")
        named = asked.named_kinds
        if not asked.kinds and not for_machines:
            asked = msgspec.structs.replace(asked, kinds=KINDS_FOR_PEOPLE)

        def ask() -> Answer[Iterator[JsonRecord]]:
            return questions.search_lazily(self.question, asked, task=task, kinds=named, shape=shape)

        answer = self.check(ask())
        begun = [answer.found]
        records = _Again(lambda: begun.pop() if begun else ask().found)
        languages = self.question.records.languages_for(asked, shape.fields)
        found = _Again(lambda: (chosen(each, shape.fields, languages) for each in records)) if shape.fields else records
        told = Answer[Iterable[JsonRecord]](question=answer.question, found=found, whole=answer.whole)
        return Records(told, records, asked, lambda: self.question)


class _Again(Iterable[JsonRecord]):
    """What is begun anew each time that it is gone through."""

    def __init__(self, begin: Callable[[], Iterator[JsonRecord]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[JsonRecord]:
        return self._begin()


def filter_of(wanted: Filters, known: type = OutputFilters, own: Mapping[str, Several] = _NONE) -> RecordFilter:
    """The filter of what is wanted. Raises InvalidInput for a name that is not `known`, and what no record can have."""
    refuse_unknown("filter", wanted, known.__annotations__)
    task = wanted.get("task")
    if not isinstance(task, str | None):
        raise InvalidInput(f"`task` is one name, and no {type(task).__name__}")
    asked = _convert({**_given(wanted), **_given(own)}, RecordFilter).check()
    asked.refuse_impossible()
    return asked


def _given(filters: Mapping[str, object]) -> dict[str, object]:
    """The filters that were given, by the names that they have in RecordFilter and in Shape."""
    found: dict[str, object] = {}
    for name, value in filters.items():
        if name in _FIELDS and isinstance(value, Iterable):
            value = several(name, value)
        for text in value if isinstance(value, tuple) else (value,):
            _refuse_no_text(name, text)
        if value is not None:
            found[_FIELDS.get(name, name)] = value
    return found


def _refuse_no_text(name: str, text: object) -> None:
    """Refuse what no record holds: half a character. In a path it is a byte that is no UTF-8, as `os` has it."""
    if isinstance(text, str):
        try:
            text.encode("utf-8", "surrogateescape" if name in ("path", "where") else "strict")
        except UnicodeEncodeError:
            raise InvalidInput(f"`{name}` is no text: {text!r}") from None


def several(name: str, value: Iterable[str]) -> tuple[str, ...]:
    """One or several as several. Raises InvalidInput for none."""
    found = (value,) if isinstance(value, str) else tuple(value)
    if not found:
        raise InvalidInput(f"`{name}` names nothing", hint="for all, leave it out")
    return found


def _convert(given: Mapping[str, object], type_: type[T]) -> T:
    try:
        return msgspec.convert(given, type_)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"a filter is of another type: {error}") from error
