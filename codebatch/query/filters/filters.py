"""Filters of records. No I/O: they are applied to counts and record lines, whatever their source."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, get_args

import msgspec

from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.entry import path_from_fields
from codebatch.model.record import RECORD_KINDS, SEVERITIES, SymbolType
from codebatch.model.record_counts import RecordCounts
from codebatch.model.task import JsonValue
from codebatch.query.fields import (
    DERIVED_FIELDS,
    NO_LANGUAGES,
    PATH_FIELDS,
    FileLanguages,
    JsonRecord,
    field_value,
    record_fields,
    record_path,
)
from codebatch.query.filters.arguments import refuse_invalid_texts, refuse_unknown
from codebatch.query.filters.decoding import RecordCounter, decode_records
from codebatch.query.filters.line_prefilter import field_marks, lines_with_marks
from codebatch.query.filters.paths import PathFilter

if TYPE_CHECKING:
    from codebatch.query.filters.expression import Expression

__all__ = ["JsonRecord", "RecordFilter", "decode_records", "last_name", "path_bytes", "record_path"]

RecordPredicate = Callable[[JsonRecord, FileLanguages], bool]

_KIND_BY_ATTRIBUTE = {
    "severities": "diagnostic",
    "codes": "diagnostic",
    "tools": "diagnostic",
    "names": "symbol",
    "symbol_types": "symbol",
    "metrics": "metric",
    "targets": "edge",
}
"""Attributes of the filter that test a field of only one kind of records, with this kind."""
_FIELD_BY_ATTRIBUTE = {
    "severities": "severity",
    "tools": "tool",
    "symbol_types": "symbol_type",
    "metrics": "metric",
}
"""Attributes of the filter with a field that must have one of the attribute's values."""
_MARKED_FIELDS = {"names": "name", "codes": "code", **_FIELD_BY_ATTRIBUTE}
"""Attributes whose values occur literally in the lines of matching records, with their field.

The most selective attribute comes first.
"""
_TEXT_FIELDS = {"codes": "code", "names": "name", "targets": "target", "languages": "lang"}


class RecordFilter(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A filter of records. An empty attribute does not restrict.

    - `path`: as in PathFilter.
    - `names`, `codes`: match exactly, or by prefix if they end with `*`.
    - `targets`: match the last name in the target of an edge, exactly or by prefix.
    - `languages`: languages of files.
    - `where`: a condition on the fields of a record, as in expression.py.
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
        """Return this filter if it is valid.

        Raises InvalidInput for unknown values, patterns that match nothing, invalid conditions, and a text in place of
        a tuple.
        """
        fields = ("kinds", *_KIND_BY_ATTRIBUTE, "languages")
        refuse_invalid_texts(**{field: getattr(self, field) for field in fields})
        refuse_unknown("kind", self.kinds, RECORD_KINDS)
        refuse_unknown("severity", self.severities, SEVERITIES)
        refuse_unknown("symbol type", self.symbol_types, get_args(SymbolType))
        self._record_predicates  # noqa: B018 - compiles and so validates the predicates
        return self

    def refuse_impossible(self) -> None:
        """Raise InvalidInput if no record can pass all parts of the filter."""
        if not self.possible_kinds:
            used_fields = [field for field in _KIND_BY_ATTRIBUTE if getattr(self, field)]
            needed = ", ".join(
                f"{field} exist only in records of kind {_KIND_BY_ATTRIBUTE[field]}" for field in used_fields
            )
            kinds_text = f" of kind {', '.join(self.kinds)}" if self.kinds else ""
            raise InvalidInput(f"no record{kinds_text} can match all filters", hint=needed)

    @cached_property
    def possible_kinds(self) -> frozenset[str]:
        """The kinds of records that can pass."""
        kinds = frozenset(self.kinds or RECORD_KINDS)
        return kinds.intersection(*({kind} for field, kind in _KIND_BY_ATTRIBUTE.items() if getattr(self, field)))

    @property
    def named_kinds(self) -> tuple[str, ...]:
        """The kinds of records that the filter selects, by name or through a field that only some kinds have.

        Empty if all kinds can pass.
        """
        possible = self.possible_kinds
        return tuple(kind for kind in RECORD_KINDS if kind in possible) if len(possible) < len(RECORD_KINDS) else ()

    def needs_languages(self, fields: Collection[str] = ()) -> bool:
        """Return whether the languages of files are needed to apply the filter or to compute one of `fields`."""
        named = {*fields, *(self._where_expression.fields if self._where_expression is not None else ())}
        return (bool(self.languages) or "lang" in named) and self.possible_kinds != {"file"}

    @property
    def covers_failures(self) -> bool:
        """Whether no failure is filtered out, except by path and task.

        If so, all failures that belong to the question are part of the answer.
        """
        possible = self.possible_kinds
        return possible == {"failure"} or ("failure" in possible and not self.languages and not self.where)

    def may_match(self, counts: RecordCounts) -> bool:
        """Return whether a shard with these counts can contain a matching record."""
        if not any(counts.kinds.get(kind) for kind in self.possible_kinds):
            return False
        if not self.severities and not self.codes:
            return True
        return any(self.passing_codes(severity, codes) for severity, codes in counts.diagnostics.items())

    def passing_codes(self, severity: str, codes: Mapping[str, int]) -> dict[str, int]:
        """Return the rule IDs that the filter accepts for findings of a severity, with their counts in `codes`."""
        if self.severities and severity not in self.severities:
            return {}
        is_code = any_pattern_matcher(self.codes)
        return {code: number for code, number in codes.items() if not self.codes or is_code(code)}

    def matches(self, record: JsonRecord, languages: FileLanguages = NO_LANGUAGES) -> bool:
        """Return whether a record matches. `languages` must be set if `needs_languages` returns true."""
        for predicate in self._record_predicates:  # noqa: SIM110 - called for every record; `all` is three times as slow
            if not predicate(record, languages):
                return False
        return True

    def fields_needed(self, other_fields: Iterable[str] = ()) -> frozenset[str]:
        """Return the members of record lines that the filter and the fields `other_fields` need."""
        fields = {field for attribute, field in _FIELD_BY_ATTRIBUTE.items() if getattr(self, attribute)}
        fields |= {field for attribute, field in _TEXT_FIELDS.items() if getattr(self, attribute)}
        fields |= {
            "kind",
            *other_fields,
            *(self._where_expression.fields if self._where_expression is not None else ()),
        }
        if self.path or self.languages or fields.intersection(DERIVED_FIELDS):
            fields.add("path")
        return frozenset((*fields, *(f"{field}_b64" for field in fields.intersection(PATH_FIELDS))))

    def iter_matching(self, blocks: Iterable[bytes], languages: FileLanguages = NO_LANGUAGES) -> Iterator[JsonRecord]:
        """Yield the matching records, in the order of their lines. Each block has whole lines. Raises StoreCorrupt."""
        for block in blocks:
            for record in decode_records(self._candidate_lines(block)):
                if self.matches(record, languages):
                    yield record

    def iter_tallied(
        self, blocks: Iterable[bytes], tally: RecordCounter, languages: FileLanguages = NO_LANGUAGES
    ) -> Iterator[tuple[JsonRecord, int]]:
        """Yield each distinct combination of the members that `tally` counts, with its number of matching records.

        Like `iter_matching`, it reads `blocks` and raises StoreCorrupt.
        """
        for block in blocks:
            for record, number in tally(self._candidate_lines(block)):
                if self.matches(record, languages):
                    yield record, number

    def _candidate_lines(self, block: bytes) -> bytes:
        """Return the lines of a block that contain a mark: a byte string that every matching line has.

        Lines without a mark need not be decoded.
        """
        return block if self._marks_pattern is None else lines_with_marks(self._marks_pattern, block)

    @cached_property
    def _marks_pattern(self) -> re.Pattern[bytes] | None:
        """A pattern that the line of each matching record contains, or None if no such pattern is known."""
        marks = tuple(self._iter_marks())
        if not marks or b"" in marks:  # For a target `*`, the mark is empty, and every line contains it.
            return None
        return re.compile(b"|".join(map(re.escape, marks)))

    def _iter_marks(self) -> Iterable[bytes]:
        """Return byte strings of which each matching line contains at least one.

        They are derived from the most selective part of the filter for which this is possible.
        """
        for attribute, field in _MARKED_FIELDS.items():
            if getattr(self, attribute):
                return field_marks(field, getattr(self, attribute))
        if self.targets:
            return (mark.removeprefix(b'"target":"') for mark in field_marks("target", self.targets))
        for field, text in self._required_texts():
            if self._occurs_literally(field, text):
                return field_marks(field, (text,))
        if self.languages and self.possible_kinds == {"file"}:
            return field_marks("lang", self.languages)
        if root := PathFilter(self.path).common_root:
            # The kind and the path are the first members of a record line. A path that is not UTF-8 is in base64.
            paths = (*field_marks("path", (root + "*",)), b'"path_b64":')
            return (b"%b,%b" % pair for pair in product(field_marks("kind", self.named_kinds or RECORD_KINDS), paths))
        return field_marks("kind", self.named_kinds)

    def _required_texts(self) -> Iterator[tuple[str, str]]:
        """Yield field and text of each comparison `field == text` without which `where` cannot be true."""
        if not self.where:
            return
        from codebatch.query.filters.required import (
            required_comparisons,  # Imported late, like the compiler of conditions.
        )

        for comparison in required_comparisons(self.where):
            if comparison.comparison == "==" and isinstance(comparison.value, str):
                yield comparison.field, comparison.value

    def _occurs_literally(self, field: str, text: str) -> bool:
        """Return whether a record whose field has this text contains field and text literally in its line.

        This is false for derived fields, for default values, which lines omit, and for paths that may be escaped.
        """
        if (
            field not in record_fields(self.possible_kinds)
            or field in DERIVED_FIELDS
            or (field in PATH_FIELDS and "\\" in text)
        ):
            return False
        return not any(field_value({"kind": kind}, field, NO_LANGUAGES) == text for kind in self.possible_kinds)

    @cached_property
    def _record_predicates(self) -> tuple[RecordPredicate, ...]:
        """The predicates that a matching record satisfies, the cheapest first. Raises InvalidInput."""
        predicates = [
            _is_one_of(field, getattr(self, attribute))
            for attribute, field in _FIELD_BY_ATTRIBUTE.items()
            if getattr(self, attribute)
        ]
        if self.kinds:
            predicates.insert(0, _is_one_of("kind", self.kinds))
        if self.codes:
            is_code = any_pattern_matcher(self.codes)
            predicates.append(lambda record, _: is_code(record.get("code")))
        if self.names:
            is_name = any_pattern_matcher(self.names)
            predicates.append(lambda record, _: is_name(record.get("name")))
        if self.targets:
            is_target = any_pattern_matcher(self.targets)
            predicates.append(lambda record, _: is_target(last_name(record.get("target"))))
        if self.languages:
            predicates.append(lambda record, languages: field_value(record, "lang", languages) in self.languages)
        if self.path:
            paths = PathFilter(self.path)
            predicates.append(lambda record, _: paths.matches(path_bytes(record)))
        if self._where_expression is not None:
            holds = self._where_expression.holds
            predicates.append(lambda record, languages: holds(lambda field: field_value(record, field, languages)))
        return tuple(predicates)

    @cached_property
    def _where_expression(self) -> Expression | None:
        if not self.where:
            return None
        from codebatch.query.filters.comparability import possible_field_values

        # Imported here because it imports `ast`, which filters without a condition do not need.
        from codebatch.query.filters.expression import compile_expression

        kinds = self.possible_kinds
        return compile_expression(self.where, record_fields(kinds), possible_field_values(kinds))


def path_bytes(record: JsonRecord) -> bytes:
    """Return the path of the file of a record. Raises StoreCorrupt if it has none."""
    path, path_b64 = record.get("path"), record.get("path_b64")
    # The usual case comes first, because this function is called for every record.
    if isinstance(path, str) and path_b64 is None:
        return path.encode()
    try:
        return path_from_fields(
            path if isinstance(path, str) else None, path_b64 if isinstance(path_b64, str) else None
        )
    except ValueError as error:
        raise StoreCorrupt(f"a record has no path: {error}") from error


def last_name(target: JsonValue) -> JsonValue:
    """Return the last name in the target of an edge: `c` for `a.b.c`, `a::c` and `a->c`."""
    return _NAME_ENDS.split(target)[-1] if isinstance(target, str) else None


_NAME_ENDS = re.compile(r"[.:/\\]+|->(?=.)")  # A final arrow does not split, because `operator->` is a name.


def any_pattern_matcher(patterns: Collection[str]) -> Callable[[object], bool]:
    """Return a predicate that is true for values in `patterns`. A text that ends with `*` matches by prefix."""
    exact_values = frozenset(one for one in patterns if not one.endswith("*"))
    beginnings = tuple(one[:-1] for one in patterns if one.endswith("*"))
    return lambda value: isinstance(value, str) and (value in exact_values or value.startswith(beginnings))


def _is_one_of(field: str, values: Collection[JsonValue]) -> RecordPredicate:
    return lambda record, _: record.get(field) in values
