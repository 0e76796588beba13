"""Tests of the views for SQL: their columns and rows, whatever the names of directories and files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import msgspec
import pytest

from codebatch.model.record import (
    RECORD_KINDS,
    Diagnostic,
    Edge,
    File,
    Metric,
    Record,
    Symbol,
    SymbolType,
)
from codebatch.protocol.record_frames import FrameWriter
from codebatch.query.answers.sql_views import (
    KIND_VIEWS,
    SQL_VIEWS,
    create_empty_view_sql,
    create_kind_view_sql,
    create_pivoted_view_sql,
    views_in_statement,
)
from tests.specification import read_rows

SYMBOL = Symbol(
    path="a.py", name="f", symbol_type="function", qualified="f", scope="", line=2, column=5, end_line=9, end_column=1
)
FILE = File(path="a.py", lang="python", encoding="utf-8", lines=9, class_="text", parse="ok")


def finding(line: int, path: str = "a.py") -> Diagnostic:
    return Diagnostic(
        path=path,
        line=line,
        column=1,
        end_line=line,
        end_column=2,
        severity="error",
        code="E",
        message="it's",
        tool="t",
    )


def opened(directory: Path, *records: Record, strange: tuple[tuple[str, str], ...] = ()) -> duckdb.DuckDBPyConnection:
    """Return a connection with all views over some records in two files."""
    lines = [msgspec.json.encode(record) + b"\n" for record in records]
    paths = []
    for number, part in enumerate((lines[::2], lines[1::2])):
        path = directory / f"{number}.zst"
        path.write_bytes(FrameWriter().encode(b"".join(part)))
        paths.append(str(path))
    connection = duckdb.connect(":memory:")
    for kind in KIND_VIEWS:
        connection.execute(create_kind_view_sql(kind, paths, strange))
    for name in SQL_VIEWS.keys() - KIND_VIEWS.keys():
        connection.execute(create_pivoted_view_sql(name))
    return connection


def test_views_have_the_fields_of_their_records_with_defaults(tmp_path: Path) -> None:
    metric, edge = (
        Metric(path="a", metric="m", value=3),
        Edge(path="a", edge_type="calls", source="", target="x", line=1),
    )
    views = opened(tmp_path, metric, edge, SYMBOL)
    assert set(KIND_VIEWS) == set(RECORD_KINDS)
    plurals = {f"{kind.removesuffix('s')}s" for kind in RECORD_KINDS}
    assert set(SQL_VIEWS) == {*plurals, "functions", "findings"}
    for name, view in {**KIND_VIEWS, **SQL_VIEWS}.items():
        described = views.execute(f"DESCRIBE {name}").fetchall()
        assert [(column, type_) for column, type_, *_ in described] == list(view.columns)
    assert views.execute("SELECT * FROM metric").fetchall() == [("a", None, "m", 3, "", 1, None, None, None)]
    assert views.execute("SELECT resolution, imported, is_module FROM edge").fetchall() == [(None, "", False)]
    for name in ("symbol", "symbols"):
        assert views.execute(f"SELECT parameters, visibility FROM {name}").fetchall() == [([], "public")]
    assert views.execute("SELECT * FROM duplicate").fetchall() == []


def test_views_display_escaped_paths_from_any_directory(tmp_path: Path) -> None:
    directory = tmp_path / "it's [a]*?"
    directory.mkdir()
    record = Metric(path_b64="/w==", metric="m", value=1)
    views = opened(directory, record, Metric(path="b", metric="m", value=2), strange=(("/w==", "\\xff'"),))
    assert views.execute("SELECT path, path_b64 FROM metric").fetchall() == [("\\xff'", "/w=="), ("b", None)]


def test_files_view_has_a_row_with_metrics_and_finding_counts(tmp_path: Path) -> None:
    numbers = [Metric(path="a.py", metric=name, value=value) for name, value in (("code", 7), ("complexity", 0))]
    other_file = msgspec.structs.replace(FILE, path="b")
    views = opened(tmp_path, FILE, other_file, *numbers, finding(1), finding(2))
    query = "SELECT path, lines, code, complexity, max_nesting, errors, hints FROM files ORDER BY path"
    assert views.execute(query).fetchall() == [("a.py", 9, 7, 0, 0, 2, 0), ("b", 9, None, None, None, 0, 0)]


def test_functions_view_has_a_row_with_metrics_and_symbol(tmp_path: Path) -> None:
    def metric_of(metric: str, value: int, symbol: str = "f", line: int = 2) -> Metric:
        return Metric(path="a.py", metric=metric, value=value, symbol=symbol, line=line)

    hardest, simpler = (metric_of("complexity", value, "f.<anonymous>", 5) for value in (4, 2))
    twice = [msgspec.structs.replace(hardest, end_line=6), msgspec.structs.replace(simpler, end_line=5)]
    unknown = metric_of("complexity", 1, "g", 7)
    views = opened(
        tmp_path,
        SYMBOL,
        metric_of("complexity", 1),
        metric_of("parameters", 3),
        *twice,
        unknown,
        metric_of("code", 9, symbol=""),
    )
    query = "SELECT symbol, line, end_line, name, symbol_type, complexity, cognitive, parameters, count FROM functions"
    assert views.execute(f"{query} ORDER BY line").fetchall() == [
        ("f", 2, 9, "f", "function", 1, 0, 3, 1),
        ("f.<anonymous>", 5, 6, "<anonymous>", "function", 4, 0, 0, 2),
        ("g", 7, None, None, None, 1, 0, 0, 1),
    ]


@pytest.mark.parametrize("symbol_type", ["method", "constructor", "property"])
def test_functions_view_includes_properties(tmp_path: Path, symbol_type: SymbolType) -> None:
    symbol = msgspec.structs.replace(SYMBOL, symbol_type=symbol_type, qualified="C.f")
    number = Metric(path="a.py", metric="complexity", value=1, symbol="C.f", line=2)
    views = opened(tmp_path, FILE, symbol, number, finding(3))
    query = "SELECT end_line, name, symbol_type, visibility FROM functions"
    assert views.execute(query).fetchall() == [(9, "f", symbol_type, "public")]
    assert views.execute("SELECT symbol, symbol_line FROM findings").fetchall() == [("C.f", 2)]


def test_findings_view_has_the_innermost_function(tmp_path: Path) -> None:
    inner = msgspec.structs.replace(SYMBOL, qualified="f.g", line=4, end_line=5)
    class_ = msgspec.structs.replace(SYMBOL, qualified="C", symbol_type="class", line=4)
    views = opened(tmp_path, FILE, SYMBOL, inner, class_, *map(finding, (1, 3, 4, 4, 9)), finding(3, "b.py"))
    query = "SELECT path, line, lang, symbol, symbol_line FROM findings ORDER BY ALL"
    assert views.execute(query).fetchall() == [
        ("a.py", 1, "python", None, None),
        ("a.py", 3, "python", "f", 2),
        ("a.py", 4, "python", "f.g", 4),
        ("a.py", 4, "python", "f.g", 4),
        ("a.py", 9, "python", "f", 2),
        ("b.py", 3, None, None, None),
    ]


def test_empty_view_has_no_rows_and_unavailable_view_fails() -> None:
    connection = duckdb.connect(":memory:")
    connection.execute(create_kind_view_sql("file", [], []))
    connection.execute(create_empty_view_sql("edges", "ask it's"))
    assert connection.execute("SELECT * FROM file").fetchall() == []
    with pytest.raises(duckdb.Error, match="ask it's"):
        connection.execute("SELECT count(*) FROM edges").fetchall()


def test_named_views_are_found_in_any_statement() -> None:
    statement = "select * from main.\"Symbol\", FILES where x = 'edge' and metrics = 1"
    assert sorted(views_in_statement(statement)) == ["edge", "files", "metrics", "symbol"]


def test_specification_lists_the_columns_of_additional_views() -> None:
    documented = {row[0].strip("`"): row[2] for row in read_rows("SQL")[1:]}
    assert documented == {
        name: ", ".join(column.name for column in view.columns)
        for name, view in SQL_VIEWS.items()
        if len(view.kinds) > 1
    }
