"""`sql`: its answers and formats, the mark of incomplete answers, and its isolation from everything but the views."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import sys
from pathlib import Path

import duckdb
import pytest

from codebatch.cli import cli
from codebatch.cli.framework.exit import run_to_exit_status
from codebatch.installation import extra_command
from codebatch.operations.queries.sql import _DUCKDB_SETTINGS, _query_error
from tests.cli.conftest import Ran
from tests.support.command_line import CommandLine, Ended, make_project, wait_until, write

FOREVER = "select count(*) from range(100000000) a, range(100000000) b where a.range * b.range = 7"


def ask(ran: Ran, statement: str, *arguments: str, status: int = 0) -> Ended:
    return ran.codebatch("sql", statement, *arguments, "--store", "store", status=status)


@pytest.mark.parametrize("kind", ["file", "diagnostic", "metric", "symbol", "edge", "failure", "duplicate"])
def test_view_of_a_kind_has_the_records_that_query_returns(ran: Ran, kind: str) -> None:
    fields = [row["column_name"] for row in ask(ran, f"describe {kind}", "--json").json["rows"]]
    command = ("query", "outputs", "--kind", kind, "--fields", ",".join(fields), "-o", "csv", "--store", "store")
    expected = [list(row) for row in csv.reader(io.StringIO(ran.codebatch(*command).text))]
    rows = [list(row) for row in csv.reader(io.StringIO(ask(ran, f"from {kind}", "-o", "csv").text))]
    assert (rows[0], sorted(rows[1:])) == (expected[0], sorted(expected[1:]))


def test_every_format_has_the_same_rows(ran: Ran) -> None:
    statement = (
        "select path, count(*) as n, [1, 2] as l, {'a': n} as s, 1.5 as d from symbol group by path order by path"
    )
    answer = ask(ran, statement, "--json").json
    assert [column["name"] for column in answer["columns"]] == ["path", "n", "l", "s", "d"]
    assert (answer["complete"], answer["batch_id"]) == (True, ran.batch_id)
    assert ask(ran, statement, "-o", "json").json == answer
    assert [json.loads(line) for line in ask(ran, statement, "-o", "jsonl").lines] == answer["rows"]
    first = answer["rows"][0]
    assert first == {"path": first["path"], "n": first["n"], "l": [1, 2], "s": {"a": first["n"]}, "d": 1.5}
    cells = [first["path"], str(first["n"]), "1, 2", f'{{"a":{first["n"]}}}', "1.5"]
    assert list(csv.reader(ask(ran, statement, "-o", "csv").lines))[1] == cells
    assert ask(ran, statement, "-o", "md").lines[2] == f"| {' | '.join(cells)} |"
    assert ask(ran, statement, "-o", "plain").lines[0] == "\t".join(cells)
    assert ask(ran, statement).lines[0].split() == ["path", "n", "l", "s", "d"]
    assert ask(ran, f"-- what each file defines\n{statement}").lines[0].split() == ["path", "n", "l", "s", "d"]
    assert ask(ran, "from file where false").notes == "no rows\n"
    assert ask(ran, statement, "-o", "csv", "--json", status=2).error["message"].startswith("-o csv cannot")


def test_values_without_json_type_become_text_or_null(ran: Ran) -> None:
    (row,) = ask(
        ran, "select 'nan'::float f, 170141183460469231731687303715884105727 h, date '2020-01-02' d, 1 f", "--json"
    ).json["rows"]
    assert row == {"f": None, "h": "170141183460469231731687303715884105727", "d": "2020-01-02", "f_1": 1}
    assert ask(ran, "select chr(27) || '[31m' as x", "-o", "plain").lines == ["\\x1b[31m"]


@pytest.mark.parametrize(
    ("statement", "problem", "hint"),
    [
        ("select * from symobls", "Table with name symobls does not exist", "did you mean 'symbols'?"),
        ("select nme from symbol", 'column "nme" not found', 'Candidate bindings: "name"'),
        ("selec 1", "Parser Error", None),
        ("select 'a'::int", "Conversion Error", None),
        ("", "the statement is empty", "for example"),
        ("select 1; select 2", "expected one statement, got 2", "for example"),
        ("from query('from sym' || 'bols')", "write the name of the view in the statement itself: symbols", None),
        ("select '\ud800'", "not valid UTF-8", None),
    ],
)
def test_invalid_statement_fails_with_a_one_line_message(
    ran: Ran, statement: str, problem: str, hint: str | None
) -> None:
    error = ask(ran, statement.replace("\ud800", "\udcff"), "--json", status=2).error
    assert problem in error["message"]
    assert "\n" not in error["message"]
    assert (error["hint"] or "").startswith(hint or "")


@pytest.mark.parametrize("form", ["table", "json", "csv", "jsonl"])
def test_time_with_zone_is_returned_or_its_cast_suggested(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    monkeypatch.chdir(ran.project)
    monkeypatch.setitem(sys.modules, "pytz", None)
    status = run_to_exit_status(cli, ["sql", "select now()", "--store", str(ran.store), "-o", form])
    output = capsys.readouterr()
    if status == 2:  # DuckDB before 2.0.1 needs pytz.
        assert "cast the value to text" in output.err
    else:
        assert (status, re.search(r"\b20\d\d-\d\d-\d\d[ T]\d\d:", output.out) is not None) == (0, True)


def test_error_about_pytz_suggests_a_cast_to_text() -> None:
    refused = _query_error(duckdb.InvalidInputException("Invalid Input Error: Required module 'pytz' failed to import"))
    assert (str(refused), refused.hint) == (
        "times with a time zone cannot be returned", "cast the value to text, for example now()::varchar"
    )  # fmt: skip


@pytest.mark.parametrize(
    "statement",
    [
        "select * from read_csv('{}')",
        "select * from read_text('{}')",
        "select * from read_blob('{}')",
        "select * from read_text('{store}/store.json')",
        "select * from sniff_csv('{}')",
        "select * from glob('/*')",
        "select * from '{}'",
        "from read_parquet('https://example.org/x')",
        "select * from statement",
        "with x as (select * from read_csv('{}')) select * from x",
        "copy file to '{}'",
        "copy (select 1) to '{}'",
        "export database '{}'",
        "attach '{}'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "reset lock_configuration",
        "pragma enable_profiling",
        "call enable_logging(storage = 'file', storage_path = '{}')",
        "create table x as select 1",
        "create table x as pivot file on lang using count(*)",
        "create secret (type s3)",
        "explain analyze copy file to '{}'",
        "select 1; copy file to '{}'",
        "prepare x as copy file to '{}'",
    ],
)
def test_sql_can_access_only_the_views(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], statement: str
) -> None:
    monkeypatch.chdir(ran.project)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    secret = write(tmp_path / "secret.csv", "secret\n")
    filled_in = statement.format(secret, store=ran.store)
    assert run_to_exit_status(cli, ["sql", filled_in, "--store", str(ran.store)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "secret\n" not in err
    assert secret.read_text() == "secret\n"
    assert list(tmp_path.iterdir()) == [secret], "a file was written, or a copy was left behind"


def test_sql_cannot_access_python_variables_or_change_settings(ran: Ran) -> None:
    settings = (
        "select name, value from duckdb_settings() where name in ('enable_external_access', 'lock_configuration')"
    )
    rows = ask(ran, settings, "--json").json["rows"]
    assert {row["name"]: row["value"] for row in rows} == {
        "enable_external_access": "false",
        "lock_configuration": "true",
    }
    for name in ("VIEWS", "directory", "views", "kinds", "rows"):
        ask(ran, f"select * from {name}", status=2)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_stops_sql_and_removes_the_temporary_copies(ran: Ran, tmp_path: Path, number: int, status: int) -> None:
    codebatch = CommandLine(tmp_path)
    process = codebatch.start(
        "sql", "--batch", ran.batch_id, f"{FOREVER} and (select count(*) from file) > 0", "--store", ran.store
    )
    wait_until(lambda: any(tmp_path.glob("codebatch-sql-*/*.zst")), "the copies are made")
    process.send_signal(number)
    codebatch.finish(process, status=status)
    assert list(tmp_path.iterdir()) == []


def test_sql_memory_is_limited(ran: Ran, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ran.project)
    assert _DUCKDB_SETTINGS["memory_limit"] == "2147483648B"
    monkeypatch.setattr(
        "codebatch.operations.queries.sql._DUCKDB_SETTINGS", {**_DUCKDB_SETTINGS, "memory_limit": "64MB"}
    )
    assert run_to_exit_status(cli, ["sql", "select list(i) from range(30000000) t(i)", "--store", str(ran.store)]) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error: Out of Memory Error")
    assert hint.startswith("hint: a query can use 2 GiB")


def test_sql_answer_of_an_incomplete_batch_is_marked(codebatch: CommandLine) -> None:
    project = make_project(codebatch.directory / "project")
    codebatch("batch", "init", "--snapshot", str(codebatch("snapshot", project, "--json").json["snapshot_id"]))
    ended = codebatch("sql", "select count(*) from file", "--json", status=3)
    assert ended.json["rows"] == [{"count_star()": 0}]
    assert (ended.json["complete"], ended.json["percent"]) == (False, 0.0)
    assert ended.notes.startswith("incomplete: 0 of 9 files done, batch ")
    assert codebatch("sql", "select 1").lines == ["1", "1"]


def test_sql_fails_if_a_used_shard_file_is_damaged(codebatch: CommandLine) -> None:
    codebatch("run", make_project(codebatch.directory / "project"), "-q")
    (path,) = codebatch.directory.glob(".codebatch/batches/*/outputs/*/symbols/*")
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    assert codebatch("sql", "select count(*) from symbol", "--json", status=4).error["code"] == "store_corrupt"
    assert codebatch("sql", "select count(*) n from file").lines[0] == "n"


def test_views_have_plural_names_and_those_of_their_kinds(ran: Ran) -> None:
    """Names of kinds are not listed."""
    listed = [row["name"] for row in ask(ran, "show tables", "--json").json["rows"]]
    assert {"symbols", "edges", "metrics", "diagnostics", "files", "functions", "findings"} <= {*listed}
    assert not {"symbol", "edge", "metric", "diagnostic", "file"} & {*listed}
    for kind in ("symbol", "edge", "metric", "diagnostic"):
        counts = [ask(ran, f"select count(*) n from {name}", "--json").json["rows"] for name in (kind, f"{kind}s")]
        assert counts[0] == counts[1]


def test_view_of_a_kind_without_task_is_empty(codebatch: CommandLine) -> None:
    codebatch("run", make_project(codebatch.directory / "project"), "-q", "--pipeline", "parse")
    ended = codebatch("sql", "select count(*) n from symbol")
    assert ended.lines[1].strip() == "0"
    assert "no task of the batch produces records of kind 'symbol'" in ended.notes


def test_sql_without_duckdb_names_the_package_to_install(ran: Ran, tmp_path: Path) -> None:
    write(tmp_path / "duckdb.py", "raise ImportError\n")
    lone = CommandLine(ran.codebatch.directory, {"PYTHONPATH": str(tmp_path)})
    hint = lone("sql", "select 1", "--store", "store", "--json", status=2).error["hint"]
    assert hint == f"install it with: {extra_command('sql')}"
    assert lone("sql", "--help").text


def test_other_commands_do_not_import_duckdb(ran: Ran) -> None:
    imported = CommandLine(ran.codebatch.directory, {"PYTHONPROFILEIMPORTTIME": "1"})(
        "summary", "--store", "store"
    ).notes
    assert " duckdb" not in imported


def test_sql_works_in_a_temporary_directory_with_special_characters(ran: Ran, tmp_path: Path) -> None:
    for name in ("it's [a]", "*?"):
        (tmp_path / name).mkdir()
        codebatch = CommandLine(ran.codebatch.directory, {"TMPDIR": str(tmp_path / name)})
        assert codebatch("sql", "select count(*) as n from file", "--store", "store", "--json").json["rows"] == [
            {"n": 9}
        ]
        assert list((tmp_path / name).iterdir()) == []
