"""Which records are asked for. Pure: of counts and lines alone, wherever they come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, get_args

import msgspec

from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.entry import path_from_fields
from codebatch.model.record import KINDS, SEVERITIES, SymbolType
from codebatch.model.record_counts import Counts
from codebatch.model.task import Json
from codebatch.query.fields import (
    DERIVED,
    NO_LANGUAGES,
    PATHS,
    JsonRecord,
    Languages,
    fields_of,
    record_path,
    value_of,
)
from codebatch.query.filters.arguments import refuse_text, refuse_unknown
from codebatch.query.filters.decoding import Tally, decode_records
from codebatch.query.filters.line_prefilter import LinePrefilter, row_of, row_of_ends, starts_of
from codebatch.query.filters.paths import PathFilter

if TYPE_CHECKING:
    from codebatch.query.filters.expression import Expression

__all__ = ["JsonRecord", "RecordFilter", "decode_records", "last_name", "path_bytes", "record_path"]

Test = Callable[[JsonRecord, Languages], bool]

_OF_KIND = {
    "severities": "diagnostic",
    "codes": "diagnostic",
    "tools": "diagnostic",
    "names": "symbol",
    "symbol_types": "symbol",
    "metrics": "metric",
    "targets": "edge",
}
"""The one kind of records that has what a field of a filter asks for."""
_FIELDS = {
    "severities": "severity",
    "tools": "tool",
    "symbol_types": "symbol_type",
    "metrics": "metric",
}
"""Of what must be one of those asked for."""
_TEXTS = {"codes": "code", "names": "name", "targets": "target", "languages": "lang"}


class RecordFilter(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Which records are asked for; an empty field asks for all.

    `path` is as in PathFilter. `names` and `codes` are exact, but for a `*` at the end; so are `targets`, the last
    names of what edges lead to. `languages` are those of the records' files. `where` is a
    condition on the fields of a record, as in expression.py.
    """

    kinds: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    symbol_types: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    path: str | tuple[str, ...] = ""
    where: str = ""

    def check(self) -> RecordFilter:
        """The same filter. Raises InvalidInput for what does not exist, a pattern that matches nothing, a condition
        that cannot be read, and text where a tuple is meant.
        """
        fields = ("kinds", *_OF_KIND, "languages")
        refuse_text(**{field: getattr(self, field) for field in fields})
        refuse_unknown("kind", self.kinds, KINDS)
        refuse_unknown("severity", self.severities, SEVERITIES)
        refuse_unknown("symbol type", self.symbol_types, get_args(SymbolType))
        self._tests  # noqa: B018 - made, and so checked
        return self

    def refuse_impossible(self) -> None:
        """Raise InvalidInput where no record can have all that is asked for."""
        if not self.possible_kinds:
            asked = [field for field in _OF_KIND if getattr(self, field)]
            needed = ", ".join(f"{field} exist only in records of kind {_OF_KIND[field]}" for field in asked)
            of = f" of kind {', '.join(self.kinds)}" if self.kinds else ""
            raise InvalidInput(f"no record{of} can match all filters", hint=needed)

    @cached_property
    def possible_kinds(self) -> frozenset[str]:
        """The kinds of which a record can be that is asked for."""
        kinds = frozenset(self.kinds or KINDS)
        return kinds.intersection(*({kind} for field, kind in _OF_KIND.items() if getattr(self, field)))

    @property
    def named_kinds(self) -> tuple[str, ...]:
        """The kinds that it names, be it by asking for what one kind alone has; none where it is for all."""
        possible = self.possible_kinds
        return tuple(kind for kind in KINDS if kind in possible) if len(possible) < len(KINDS) else ()

    def needs_languages(self, fields: Collection[str] = ()) -> bool:
        """Whether it must be known of what language files are, be it for what is asked of some fields besides."""
        named = {*fields, *(self._where.fields if self._where is not None else ())}
        return (bool(self.languages) or "lang" in named) and self.possible_kinds != {"file"}

    @property
    def tells_failures(self) -> bool:
        """Whether it asks for all failures, but those at other paths; or for nothing else, for they are known."""
        possible = self.possible_kinds
        return possible == {"failure"} or ("failure" in possible and not self.languages and not self.where)

    def may_match(self, counts: Counts) -> bool:
        """Whether a shard with these counts can hold anything asked for."""
        if not any(counts.kinds.get(kind) for kind in self.possible_kinds):
            return False
        if not self.severities and not self.codes:
            return True
        return any(self.passing_codes(severity, codes) for severity, codes in counts.diagnostics.items())

    def passing_codes(self, severity: str, codes: Mapping[str, int]) -> dict[str, int]:
        """Of counts by code of the diagnostics of a severity those that are asked for, as far as these two tell."""
        if self.severities and severity not in self.severities:
            return {}
        is_code = match_any(self.codes)
        return {code: number for code, number in codes.items() if not self.codes or is_code(code)}

    def matches(self, record: JsonRecord, languages: Languages = NO_LANGUAGES) -> bool:
        """Whether a record is asked for. `languages` are there where it needs them."""
        for test in self._tests:  # noqa: SIM110 - of every record, and `all` takes three times as long
            if not test(record, languages):
                return False
        return True

    def fields_needed(self, others: Iterable[str] = ()) -> frozenset[str]:
        """The members of a line that must be known to ask it, and to know some other fields."""
        fields = {field for of, field in _FIELDS.items() if getattr(self, of)}
        fields |= {field for of, field in _TEXTS.items() if getattr(self, of)}
        fields |= {"kind", *others, *(self._where.fields if self._where is not None else ())}
        if self.path or self.languages or fields.intersection(DERIVED):
            fields.add("path")
        return frozenset((*fields, *(f"{field}_b64" for field in fields.intersection(PATHS))))

    def iter_matching(self, blocks: Iterable[bytes], languages: Languages = NO_LANGUAGES) -> Iterator[JsonRecord]:
        """The records that are asked for among blocks of whole record lines, in their order. Raises StoreCorrupt."""
        marks = self._marks
        for block in blocks:
            for record in decode_records(marks.find(block)):
                if self.matches(record, languages):
                    yield record

    def iter_tallied(
        self, blocks: Iterable[bytes], tally: Tally, languages: Languages = NO_LANGUAGES
    ) -> Iterator[tuple[JsonRecord, int]]:
        """As `iter_matching`, but records that are alike in what is tallied come as one, with how many there are."""
        marks = self._marks
        for block in blocks:
            for record, number in tally(marks.find(block)):
                if self.matches(record, languages):
                    yield record, number

    @cached_property
    def _marks(self) -> LinePrefilter:
        """What the line of a record that passes must hold."""
        rows = [row_of(field, getattr(self, of)) for of, field in _FIELDS.items() if getattr(self, of)]
        if self.codes:
            rows.append(row_of("code", self.codes, with_prefixes=True))
        if self.names:
            rows.append(row_of("name", self.names, with_prefixes=True))
        if self.targets:
            rows.append(row_of_ends(self.targets))
        if self.languages and self.possible_kinds == {"file"}:
            rows.append(row_of("lang", self.languages))
        if self._where is not None:
            rows += [row_of(field, (text,)) for field, text in self._required_texts() if self._is_written(field, text)]
        told = tuple(row for row in rows if b"" not in row)  # Of a star alone: every line holds that.
        return LinePrefilter(starts=starts_of(self.named_kinds), rows=told, part=PathFilter(self.path).part)

    def _required_texts(self) -> Iterator[tuple[str, str]]:
        """The fields that are a text wherever the condition holds, each with it."""
        from codebatch.query.filters.required import required_by  # with `ast`, as below

        for each in required_by(self.where):
            if each.comparison == "==" and isinstance(each.value, str):
                yield each.field, each.value

    def _is_written(self, field: str, text: str) -> bool:
        """Whether each record of which a field is a text has both in its line as they stand."""
        if field not in fields_of(self.possible_kinds) or field in DERIVED or (field in PATHS and "\\" in text):
            return False
        return not any(value_of({"kind": kind}, field, NO_LANGUAGES) == text for kind in self.possible_kinds)

    @cached_property
    def _tests(self) -> tuple[Test, ...]:
        """What a record must pass, the cheapest first. Raises InvalidInput."""
        tests = [_is_one_of(field, getattr(self, of)) for of, field in _FIELDS.items() if getattr(self, of)]
        if self.kinds:
            tests.insert(0, _is_one_of("kind", self.kinds))
        if self.codes:
            is_code = match_any(self.codes)
            tests.append(lambda record, _: is_code(record.get("code")))
        if self.names:
            is_name = match_any(self.names)
            tests.append(lambda record, _: is_name(record.get("name")))
        if self.targets:
            is_target = match_any(self.targets)
            tests.append(lambda record, _: is_target(last_name(record.get("target"))))
        if self.languages:
            tests.append(lambda record, languages: value_of(record, "lang", languages) in self.languages)
        if self.path:
            paths = PathFilter(self.path)
            tests.append(lambda record, _: paths.matches(path_bytes(record)))
        if self._where is not None:
            holds = self._where.holds
            tests.append(lambda record, languages: holds(lambda field: value_of(record, field, languages)))
        return tuple(tests)

    @cached_property
    def _where(self) -> Expression | None:
        if not self.where:
            return None
        from codebatch.query.filters.comparability import values_of_fields
        from codebatch.query.filters.expression import compile_expression  # `ast` is 4 ms that other filters do without

        kinds = self.possible_kinds
        return compile_expression(self.where, fields_of(kinds), values_of_fields(kinds))


def path_bytes(record: JsonRecord) -> bytes:
    """The path of a record's file. Raises StoreCorrupt where it has none."""
    path, path_b64 = record.get("path"), record.get("path_b64")
    if isinstance(path, str) and path_b64 is None:  # All but a few, and asked of every record.
        return path.encode()
    try:
        return path_from_fields(
            path if isinstance(path, str) else None, path_b64 if isinstance(path_b64, str) else None
        )
    except ValueError as error:
        raise StoreCorrupt(f"a record has no path: {error}") from error


def last_name(target: Json) -> Json:
    """The last of the names of which the target of an edge is made: `c` of `a.b.c`, `a::c` and `a->c`."""
    return _NAME_ENDS.split(target)[-1] if isinstance(target, str) else None


_NAME_ENDS = re.compile(r"[.:/\\]+|->(?=.)")  # `operator->` is a name.


def match_any(wanted: Collection[str]) -> Callable[[object], bool]:
    """What tells whether a value is one of some texts, of which those with a `*` at the end are how it may begin."""
    whole = frozenset(one for one in wanted if not one.endswith("*"))
    beginnings = tuple(one[:-1] for one in wanted if one.endswith("*"))
    return lambda value: isinstance(value, str) and (value in whole or value.startswith(beginnings))


def _is_one_of(field: str, wanted: Collection[Json]) -> Test:
    return lambda record, _: record.get(field) in wanted
