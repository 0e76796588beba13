"""`query`: options of every noun, and output formats."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter

import pytest

from tests.cli.conftest import Ran
from tests.support.command_line import CommandLine, Ended, write


def test_files_are_selected_by_language_and_path_as_in_query(ran: Ran) -> None:
    """Variants of a language count, as in all other filters, and so does a language that no file has."""
    for options in (("--lang", "python"), ("--lang", "javascript", "--path", "a"), ("--path", "lib/")):
        listed = ran.codebatch("files", *options, "--store", "store", "--json").records
        queried = query(ran, "files", *options, "--json").records
        names = [[row.get("path", row.get("path_b64")) for row in rows] for rows in (listed, queried)]
        assert names[0] == names[1]
    assert len(ran.codebatch("files", "--lang", "python", "--limit", "1", "--store", "store").lines) == 1
    error = ran.codebatch("files", "--lang", "pyhton", "--store", "store", "--json", status=2).error
    assert (error["message"], error["hint"]) == ("unknown language in the batch 'pyhton'", "did you mean 'python'?")
    for option in (("--why", "a.py"), ("--snapshot", "latest")):
        error = ran.codebatch("files", "--lang", "python", *option, "--store", "store", "--json", status=2).error
        assert error["message"] == "--parse, --class, --lang and --path apply only to batches"


def query(ran: Ran, *arguments: str, status: int = 0) -> Ended:
    return ran.codebatch("query", *arguments, "--store", "store", status=status)


def test_every_format_has_the_same_records(ran: Ran) -> None:
    records = query(ran, "outputs", "--json").records
    assert query(ran, "outputs", "-o", "json").records == records
    assert [json.loads(line) for line in query(ran, "outputs", "-o", "jsonl").lines] == records
    rows = list(csv.DictReader(io.StringIO(query(ran, "outputs", "-o", "csv").text)))
    shown = [record for record in records if record["kind"] != "fingerprints"]
    assert [row["message"] for row in rows] == [record.get("message", "") for record in records]
    assert {row["path"] for row in rows} >= {"caf\\xe9.py", "Grüße, Welt.py"}
    assert len(query(ran, "outputs", "-o", "table").lines) == len(shown) + 1
    assert query(ran, "outputs", "-o", "md").lines[1].startswith("| --- | --- |")
    assert query(ran, "outputs", "-o", "plain").stdout == query(ran, "outputs").stdout
    assert query(ran, "outputs", "-o", "table", "--json", status=2).error["message"].startswith("-o table cannot")


@pytest.mark.parametrize("form", ["", "--json", "-o json", "-o jsonl", "-o csv", "-o md", "-o plain --color always"])
def test_empty_answer_notes_the_number_of_searched_records(ran: Ran, form: str) -> None:
    ended = query(ran, "symbols", "--name", "nope", *form.split())
    assert ended.notes == "no matching symbols (searched 11 in 9 files)\n"
    assert ended.text in ("", query(ran, "symbols", "--name", "nope", *form.split(), "-q").text)


def test_empty_answer_notes_its_cause(ran: Ran) -> None:
    assert query(ran, "failures").notes == "no failures in 9 files\n"
    assert (
        query(ran, "files", "--offset", "99").notes == "no matching files after the first 99 (searched 9 in 9 files)\n"
    )
    assert query(ran, "outputs", "--path", "nope", "--group-by", "kind").text == ""
    assert query(ran, "stats", "--path", "nope", "--json").notes == "no analysed file matches the path 'nope'\n"
    assert query(ran, "stats", "--kind", "edge", "--group-by", "resolution", "--path", "src").notes.endswith(
        "without the field resolution\n"
    )
    assert query(ran, "files", "--lang", "odd").notes.count("\n") == 1
    assert query(ran, "symbols", "--name", "nope", "--count").notes == ""


def test_query_colors_severities_and_names_on_request(ran: Ran) -> None:
    plain = query(ran, "outputs").text
    painted = query(ran, "outputs", "--color", "always").text
    assert "\x1b[31merror\x1b[0m" in painted
    assert "class \x1b[1mMain\x1b[0m\n" in painted
    assert re.sub(r"\x1b\[\d+m", "", painted) == plain
    assert "\x1b" not in query(ran, "outputs", "--color", "always", "-o", "table").text

    def ask(*arguments: str, **environment: str) -> str:
        return CommandLine(ran.codebatch.directory, environment)(
            "query", "outputs", "--store", "store", *arguments
        ).text

    assert ask(FORCE_COLOR="1") == painted
    assert ask(FORCE_COLOR="") == ask(FORCE_COLOR="1", NO_COLOR="1") == plain
    assert ask("--color", "never", FORCE_COLOR="1") == plain
    assert ask("--color", "always", NO_COLOR="1") == painted


def test_query_escapes_control_characters_in_names(codebatch: CommandLine) -> None:
    write(codebatch.directory / "project" / "\x1b[31m.py", "def f(:\n")
    codebatch("run", "project", "-q")
    for line in codebatch("query", "diagnostics", "--color", "always").lines:
        assert line.startswith("\\x1b[31m.py:")
    for form in ("table", "md", "plain"):
        assert "\x1b" not in codebatch("query", "diagnostics", "-o", form, "--fields", "path,message").text
    (path,) = {row["path"] for row in csv.DictReader(codebatch("query", "files", "-o", "csv").text.splitlines())}
    assert path == "\x1b[31m.py", "programs must get the exact name"


def test_fields_option_selects_the_members_of_records(ran: Ran) -> None:
    command = ("symbols", "--name", "latin", "--fields", "path,line,lang,visibility")
    assert query(ran, *command, "--json").records == [
        {"path_b64": "Y2Fm6S5weQ==", "line": 4, "lang": "python", "visibility": "public"}
    ]
    assert query(ran, *command).lines == ["caf\\xe9.py\t4\tpython\tpublic"]
    assert query(ran, *command, "-o", "md").lines[2] == "| caf\\\\xe9.py | 4 | python | public |"
    assert query(ran, *command, "-o", "csv").lines == ["path,line,lang,visibility", "caf\\xe9.py,4,python,public"]
    error = query(ran, "edges", "--fields", "path,taget", "--json", status=2).error
    assert (error["message"], error["hint"]) == ("unknown field 'taget'", "did you mean 'target'?")


def test_offset_continues_a_sorted_answer_after_its_limit(ran: Ran) -> None:
    command = ("metrics", "--sort", "-value", "--json")
    every = query(ran, *command).records
    values = [record["value"] for record in every]
    assert values == sorted(values, reverse=True)
    assert query(ran, *command, "--limit", "3").records + query(ran, *command, "--offset", "3").records == every


@pytest.mark.parametrize(
    "narrowed", [(), ("--path", "src/"), ("--kind", "diagnostic"), ("--where", "line > 1")], ids=" ".join
)
def test_counts_match_the_records(ran: Ran, narrowed: tuple[str, ...]) -> None:
    records = query(ran, "outputs", *narrowed, "--json").records
    assert query(ran, "outputs", *narrowed, "--count", "--json").records == {"count": len(records)}
    assert query(ran, "outputs", *narrowed, "--count").lines == [str(len(records))]
    by_kind = Counter(record["kind"] for record in records)
    assert query(ran, "stats", *narrowed, "--json").records == by_kind
    assert query(ran, "outputs", *narrowed, "--group-by", "kind", "--json").records == by_kind
    codes = query(ran, "stats", *narrowed, "--group-by", "code", "--json")
    assert codes.records == Counter(record["code"] for record in records if "code" in record)
    absent = sum("code" not in record for record in records)
    assert codes.notes == (f"not counted: {absent:,} records without the field code\n" if absent else "")


def test_groups_are_sorted_by_count_in_every_format(ran: Ran) -> None:
    whole = query(ran, "stats", "--json").records
    first, second = list(whole.items())[:2]
    assert first[1] >= second[1]
    assert query(ran, "stats").lines[1].split() == [str(first[1]), first[0]]
    command = ("stats", "--limit", "1", "--offset", "1", "-o")
    assert query(ran, *command, "csv").lines == ["count,kind", f"{second[1]},{second[0]}"]
    assert query(ran, *command, "plain").lines == [f"{second[1]}\t{second[0]}"]
    assert json.loads(query(ran, *command, "jsonl").stdout) == {"count": second[1], "kind": second[0]}
    assert query(ran, *command, "json").records == dict([second])


@pytest.mark.parametrize(
    "wrong",
    [
        "outputs --count --limit 2",
        "outputs --count --group-by kind",
        "outputs --group-by kind --sort line",
        "outputs --group-by nope",
        "stats --group-by nope",
        "stats --sort line",
        "symbols --sort=",
        "symbols --fields=",
        "symbols --fields path,,line",
        "symbols --offset -1",
        "symbols -o xml",
    ],
)
def test_query_rejects_options_without_effect(ran: Ran, wrong: str) -> None:
    assert query(ran, *wrong.split(), status=2).notes.startswith("error: ")
