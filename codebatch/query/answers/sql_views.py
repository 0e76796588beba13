"""SQL views of records: one view for each kind, and views that combine several kinds (SPEC.md "SQL"). No I/O.

Names of views are plural. The records of a kind are also a view with the name of the kind, from which the others are
made.

The columns are the fields of the record types. If a record line lacks a field, the column has the field's default
value. DuckDB reads the frames of shards as lines of JSON. The types of columns are declared, not inferred by DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from types import NoneType, UnionType
from typing import NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.record import ANONYMOUS, RECORD_KINDS, RECORD_TYPES, SEVERITIES, TAG_BY_TYPE, Record

FILE_METRICS = (
    "bytes", "code", "comment", "blank", "functions", "classes", "imports", "complexity", "max_complexity",
    "cognitive", "max_cognitive", "max_nesting", "max_parameters",
)  # fmt: skip
"""The metrics of a file from `analyze`. The column `lines` is from the `file` record."""
FUNCTION_METRICS = ("complexity", "cognitive", "nesting", "parameters")
_FUNCTION_TYPES_SQL = "('function', 'method', 'constructor', 'property')"
_ANONYMOUS_CONDITION = f"m.symbol LIKE '%{ANONYMOUS}'"
_METRICS_OMITTED_IF_0 = ("cognitive", "max_cognitive", "max_nesting", "max_parameters", "nesting", "parameters")
"""Metrics that `analyze` omits if they are 0. A file or function without them counts as 0 if it has `complexity`."""


class ViewColumn(NamedTuple):
    """A column of a view, and its DuckDB type."""

    name: str
    type: str


class SqlView(NamedTuple):
    """A view. `row` describes what a row stands for, and `kinds` are the kinds of records that the view reads."""

    row: str
    columns: tuple[ViewColumn, ...]
    kinds: tuple[str, ...]
    select: str = ""


def views_in_statement(statement: str) -> dict[str, SqlView]:
    """Return the views whose names occur as words in a statement."""
    words = {word.lower() for word in re.findall(r"[A-Za-z]+", statement)}
    return {name: view for name, view in {**SQL_VIEWS, **KIND_VIEWS}.items() if name in words}


def sql_literal(text: str) -> str:
    """Return a text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def create_kind_view_sql(kind: str, paths: Sequence[str], escaped_paths: Sequence[tuple[str, str]]) -> str:
    """Return the statement that creates the view of a record kind. The view reads `paths`, files with frames.

    `escaped_paths` are the paths that are not valid UTF-8, as pairs of `path_b64` and display form.
    """
    if not paths:
        return _create_empty_view(kind, KIND_VIEWS[kind], "")
    written = ", ".join(f"{sql_literal(name)}: {sql_literal(type_)}" for name, type_ in _COLUMNS_BY_KIND[kind])
    # If a file name has wildcards, DuckDB uses it as a pattern, unless a file with exactly this name exists. Here, it
    # always exists.
    listed = ", ".join(map(sql_literal, paths))
    path_expressions = {
        "path": _path_expression("path", escaped_paths),
        "other_path": _path_expression("other_path", escaped_paths),
    }
    columns = ", ".join(
        f'{path_expressions.get(column.name) or _value_or_default(kind, column)} AS "{column.name}"'
        for column in KIND_VIEWS[kind].columns
    )
    return (
        f"CREATE VIEW {kind} AS SELECT {columns} FROM read_json([{listed}], format = 'newline_delimited', "
        f"compression = 'zstd', columns = {{kind: 'VARCHAR', {written}}}) "
        f"WHERE kind = {sql_literal(kind)}"
    )


def create_pivoted_view_sql(name: str) -> str:
    """Return the statement that creates a view from other views."""
    columns = ", ".join(f'"{column.name}"' for column in SQL_VIEWS[name].columns)
    return f"CREATE VIEW {name} AS SELECT {columns} FROM ({SQL_VIEWS[name].select})"


def create_empty_view_sql(name: str, refusal: str) -> str:
    """Return the statement that creates a view without rows. If `refusal` is not empty, queries fail with it."""
    return _create_empty_view(name, SQL_VIEWS[name], refusal)


def _create_empty_view(name: str, view: SqlView, refusal: str) -> str:
    columns = ", ".join(f'CAST(NULL AS {column.type}) AS "{column.name}"' for column in view.columns)
    return f"CREATE VIEW {name} AS SELECT {columns} WHERE {f'error({sql_literal(refusal)})' if refusal else 'false'}"


def _path_expression(field: str, escaped_paths: Sequence[tuple[str, str]]) -> str:
    cases = " ".join(f"WHEN {sql_literal(path_b64)} THEN {sql_literal(path)}" for path_b64, path in escaped_paths)
    return f"coalesce({field}, CASE {field}_b64 {cases} END)" if cases else field


def _value_or_default(kind: str, column: ViewColumn) -> str:
    default = _DEFAULTS_BY_KIND[kind].get(column.name)
    if default is None:
        return f'"{column.name}"'
    return f'coalesce("{column.name}", {default})'


def _record_fields(type_: type[Record]) -> Iterable[msgspec.structs.FieldInfo]:
    """Return the fields of a record type. The fields with paths come first."""
    fields = msgspec.structs.fields(type_)
    return sorted(fields, key=lambda field: field.encode_name not in ("path", "path_b64"))


def _sql_type(type_: object) -> str:
    if get_origin(type_) in (Union, UnionType):
        (type_,) = (member for member in get_args(type_) if member not in (UnsetType, NoneType))
    if get_origin(type_) is tuple:
        return "VARCHAR[]"
    return {int: "BIGINT", bool: "BOOLEAN"}.get(type_, "VARCHAR") if isinstance(type_, type) else "VARCHAR"


def _default_literal(field: msgspec.structs.FieldInfo) -> str | None:
    """Return the default of a field as SQL, or None if the field has no default."""
    match field.default:
        case str(text):
            return sql_literal(text)
        case bytes(content):
            return sql_literal(content.decode())
        case bool(truth):
            return str(truth)
        case int(number):
            return str(number)
        case ():
            return "[]"
        case _:
            assert field.default in (msgspec.NODEFAULT, UNSET)
            return None


_COLUMNS_BY_KIND = {
    TAG_BY_TYPE[type_]: tuple(ViewColumn(field.encode_name, _sql_type(field.type)) for field in _record_fields(type_))
    for type_ in RECORD_TYPES
}
_DEFAULTS_BY_KIND = {
    TAG_BY_TYPE[type_]: {
        field.encode_name: default
        for field in _record_fields(type_)
        if (default := _default_literal(field)) is not None
    }
    for type_ in RECORD_TYPES
}


def _number_columns(names: Iterable[str]) -> tuple[ViewColumn, ...]:
    return tuple(ViewColumn(name, "BIGINT") for name in names)


def _displayed_columns(kind: str) -> tuple[ViewColumn, ...]:
    """Return the columns of a kind's view, without `path_b64` and `other_path_b64`.

    They are used in views that combine kinds. There, `path` is always set: a path that is not UTF-8 is in display form.
    """
    return tuple(column for column in _COLUMNS_BY_KIND[kind] if not column.name.endswith("_b64"))


def _greatest_values_sql(names: Iterable[str]) -> str:
    """Return SQL that selects, for each metric, the greatest value in a group of rows."""
    expressions = {name: f"max(value) FILTER (WHERE metric = '{name}')" for name in names}
    expressions_or_0 = {
        name: f"CASE WHEN {expressions['complexity']} IS NOT NULL THEN coalesce({expressions[name]}, 0) END"
        for name in expressions
    }
    return ", ".join(
        f"{(expressions_or_0 if name in _METRICS_OMITTED_IF_0 else expressions)[name]} AS {name}"
        for name in expressions
    )


_PIVOTED_VIEWS = {
    "files": SqlView(
        row="a file: its record, its metrics, and its number of findings of each severity",
        columns=(
            *_displayed_columns("file"),
            *_number_columns(FILE_METRICS),
            *_number_columns(f"{each}s" for each in SEVERITIES),
        ),
        kinds=("file", "metric", "diagnostic"),
        select=(
            f"SELECT file.*, {', '.join(f'm.{name}' for name in FILE_METRICS)}, "
            + ", ".join(f"coalesce(d.{each}s, 0) AS {each}s" for each in SEVERITIES)
            + f" FROM file LEFT JOIN (SELECT path, {_greatest_values_sql(FILE_METRICS)} "
            + "FROM metric WHERE symbol = '' GROUP BY path) m USING (path) LEFT JOIN (SELECT path, "
            + ", ".join(f"count(*) FILTER (WHERE severity = '{each}') AS {each}s" for each in SEVERITIES)
            + " FROM diagnostic GROUP BY path) d USING (path)"
        ),
    ),
    "functions": SqlView(
        row="a function with its metrics; functions with the same name on the same line share a row, "
        "which has their highest values, and `count` is the number of these functions",
        columns=(
            ViewColumn("path", "VARCHAR"),
            ViewColumn("symbol", "VARCHAR"),
            *_number_columns(("line", "end_line")),
            ViewColumn("name", "VARCHAR"),
            ViewColumn("symbol_type", "VARCHAR"),
            ViewColumn("visibility", "VARCHAR"),
            *_number_columns(FUNCTION_METRICS),
            ViewColumn("count", "BIGINT"),
        ),
        kinds=("metric", "symbol"),
        select=(
            "SELECT m.* EXCLUDE (last_line), coalesce(s.end_line, m.last_line) AS end_line, "
            f"coalesce(s.name, CASE WHEN {_ANONYMOUS_CONDITION} THEN '{ANONYMOUS}' "
            "WHEN m.last_line IS NOT NULL THEN regexp_extract(m.symbol, '[^.:]+$') END) AS name, "
            "coalesce(s.symbol_type, CASE WHEN m.last_line IS NOT NULL THEN 'function' END) AS symbol_type, "
            "s.visibility "
            "FROM (SELECT path, symbol, line, "
            f"max(end_line) AS last_line, {_greatest_values_sql(FUNCTION_METRICS)}, "
            "count(*) FILTER (WHERE metric = 'complexity') AS count FROM metric WHERE symbol <> '' "
            "GROUP BY path, symbol, line) m LEFT JOIN (SELECT path, qualified AS symbol, line, "
            "max(end_line) AS end_line, min(name) AS name, min(symbol_type) AS symbol_type, "
            f"min(visibility) AS visibility FROM symbol WHERE symbol_type IN {_FUNCTION_TYPES_SQL} "
            "GROUP BY path, qualified, line) s USING (path, symbol, line)"
        ),
    ),
    "findings": SqlView(
        row="a finding, with the language and the class of its file, and the innermost function or property that "
        "encloses the finding",
        columns=(
            *_displayed_columns("diagnostic"),
            ViewColumn("lang", "VARCHAR"),
            ViewColumn("class", "VARCHAR"),
            ViewColumn("symbol", "VARCHAR"),
            ViewColumn("symbol_line", "BIGINT"),
        ),
        kinds=("diagnostic", "file", "symbol"),
        select=(
            "WITH d AS MATERIALIZED (SELECT *, row_number() OVER () AS number FROM diagnostic) SELECT d.*, f.lang, "
            "f.class, e.found.qualified AS symbol, e.found.line AS symbol_line FROM d LEFT JOIN (SELECT path, "
            "any_value(lang) AS lang, any_value(class) AS class FROM file GROUP BY path) f USING (path) LEFT JOIN "
            "(SELECT d.number, arg_max({'qualified': s.qualified, 'line': s.line}, (s.line, s.column)) AS found FROM d "
            f"JOIN symbol s ON s.path = d.path AND s.symbol_type IN {_FUNCTION_TYPES_SQL} "
            "AND s.line <= d.line AND d.line <= s.end_line GROUP BY d.number) e USING (number)"
        ),
    ),
}
_ROW_MEANING_BY_KIND = {
    "file": "a file",
    "diagnostic": "a finding",
    "metric": "a metric of a file or, if `symbol` is not empty, of a function",
    "symbol": "a definition or an import",
    "edge": "an import, a call, an inheritance, or a dependency of a file on another file",
    "failure": "a file that a task could not process",
    "ast": "a stored syntax tree",
    "change": "a change of a file that a task proposes",
    "fingerprints": "hashes of the code of a file, used to find duplicate blocks",
    "names": "names that a file uses without an import",
    "duplicate": "a location of a duplicate block",
    "omission": "a part of the output of a program that is in no finding",
}
KIND_VIEWS: dict[str, SqlView] = {
    kind: SqlView(row=_ROW_MEANING_BY_KIND[kind], columns=_COLUMNS_BY_KIND[kind], kinds=(kind,))
    for kind in RECORD_KINDS
}
"""The views of the kinds of records, by kind."""
SQL_VIEWS: dict[str, SqlView] = {
    **_PIVOTED_VIEWS,
    **{
        name: view if name == kind else view._replace(select=f"SELECT * FROM {kind}")
        for kind, view in KIND_VIEWS.items()
        if (name := f"{kind.removesuffix('s')}s") not in _PIVOTED_VIEWS
    },
}
"""All views that are listed, by name: views that combine several kinds, then a view of each other kind of record."""
