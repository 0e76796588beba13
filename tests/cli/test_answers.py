"""Output of commands: standard output has only data, text and JSON agree, and file names cannot break it."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import shutil
import subprocess

import pytest
import zstandard

from codebatch.store.objects.frames import decompress_all
from tests.support.command_line import CommandLine, check_schema, make_project, write

from .conftest import Ran

READING = {
    "snapshot list": 1,
    "snapshot show": 7,
    "batch list": 1,
    "config show": 7,
    "pipelines": 3,
    "pipeline full": 3,
    "status": 10,
    "summary": 9,
    "tasks": 4,
    "shards --task parse": 1,
    "files": 9,
    "files --snapshot latest": 9,
    "files --why project/src/main.py": 4,
    "errors": 1,
    "top": 3,
    "top --by path": 2,
    "top --by code": 1,
    "top --by lang": 3,
    "inspect src/main.py": 3,
    "inspect src/main.py --explain": 4,
    "query outputs": 9,
    "query diagnostics": 2,
    "query stats": 4,
    "query symbols --count": 1,
    "explain-miss": 3,
}


@pytest.mark.parametrize("command", READING)
def test_json_option_prints_one_json_document(ran: Ran, command: str) -> None:
    answer = ran.codebatch(*command.split(), "--store", ran.store, "--json").json
    assert len(answer["records"] if isinstance(answer, dict) and "records" in answer else answer) >= READING[command]
    words = itertools.takewhile(lambda word: not word.startswith("-"), command.split())
    name = "-".join(word for word in words if word not in ("full", "src/main.py"))
    name += "-explain" if "--explain" in command else ""
    name += "".join(f"-{option}" for option in ("why", "snapshot") if command.startswith(f"files --{option}"))
    check_schema(answer, name)
    is_map = name in ("top", "config-show", "query-stats", "query-symbols")
    if isinstance(answer, dict) and not is_map and "--why" not in command:
        assert answer["schema"] == f"codebatch.{name}/1"


@pytest.mark.parametrize("command", READING)
def test_closed_pipe_after_one_line_is_no_error(ran: Ran, command: str) -> None:
    ended = ran.codebatch.shell(f"codebatch {command} --store '{ran.store}' | head -1")
    (line,) = ended.lines
    assert line == line.rstrip() != ""
    assert b"error" not in ended.stderr
    assert ended.stderr == b"" or "--explain" in command, "standard error is not empty"


def test_common_options_are_accepted_before_and_after_subcommands(ran: Ran) -> None:
    whole = ran.codebatch("batch", "list", "--store", "store", "--json").stdout
    assert ran.codebatch("--store", "store", "--json", "batch", "list").stdout == whole
    assert ran.codebatch("batch", "--store", "store", "--json", "list").stdout == whole
    assert ran.codebatch("--store", "nowhere", "batch", "--json", "list", "--store", "store").stdout == whole
    assert len(ran.codebatch("snapshot", "--json", "--store=store", "list").json) == 1


def test_quiet_leaves_standard_error_empty(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    assert codebatch("run", "project", "-q").stderr == b""
    assert codebatch("-q", "snapshot", "project").stderr == b""
    assert codebatch("batch", "init", "-q").stderr == b""


def test_verbose_reports_the_store_and_the_files_read(ran: Ran) -> None:
    ended = ran.codebatch("query", "outputs", "--store", "store", "-v")
    assert ended.stdout == ran.codebatch("query", "outputs", "--store", "store").stdout
    store, read = ended.notes.splitlines()[-2:]
    assert store == f"store: {ran.store}"
    few = ran.codebatch("-v", "snapshot", "list", "--store", "store").notes.splitlines()[-1]
    files, fewer = (int(line.split()[1]) for line in (read, few))
    assert files > fewer > 0
    assert ran.codebatch("pipelines", "-v").notes == "store: not used\n"
    assert f"store: {ran.store}" in ran.codebatch("init", "store", "-v").notes.splitlines()
    assert ran.codebatch("pipelines", "-v", "-q").notes == ""


def test_worst_findings_are_sorted_by_severity_then_path(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / "a.py", "def f():\n    return g\n")
    write(codebatch.directory / "tree" / "b.py", "x = (\n")
    codebatch("run", "tree", "-q")
    lines = codebatch("summary").lines
    worst = [line.split(": ")[:2] for line in lines[lines.index("worst:") + 1 :] if ": error " in line]
    assert [path.strip() for path, _ in worst] == ["a.py:2:12", "b.py:2:1"]


def test_snapshot_show_accepts_any_reference_and_lists_files(ran: Ran) -> None:
    shown = ran.codebatch("snapshot", "show", ran.snapshot_id[:8], "--store", "store", "--json").json
    assert (shown["snapshot_id"], shown["files"]) == (ran.snapshot_id, 9)
    assert shown["source"]["roots"] == [str(ran.project)]
    whole = ran.codebatch("snapshot-show", ran.snapshot_id, "--files", "--store", "store", "--json").json
    listed = ran.codebatch("files", "--snapshot", "latest", "--store", "store", "--json").json
    assert whole == {**shown, "listing": listed}
    lines = ran.codebatch("snapshot", "show", "--files", "--store", "store").lines
    assert "src/main.py" in lines


def test_cat_object_prints_the_bytes_of_a_file(ran: Ran) -> None:
    content = (ran.project / "logo.bin").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert ran.codebatch("cat-object", digest, "--store", "store").stdout == content
    assert ran.codebatch("cat-object", f"sha256:{digest}", "--store", "store").stdout == content
    answer = ran.codebatch("cat-object", digest, "--store", "store", "--json").json
    assert (answer["bytes"], base64.b64decode(answer["content_b64"])) == (256, content)
    for wrong, code in (("0" * 64, "unknown_id"), ("../../../etc/passwd", "invalid_id"), ("", "invalid_id")):
        assert ran.codebatch("cat-object", wrong, "--store", "store", "--json", status=2).error["code"] == code


def test_rules_show_has_the_explanation_and_the_findings_count(ran: Ran) -> None:
    rule = ran.codebatch("rules", "show", "F401", "--store", "store", "--json").json
    findings = ran.codebatch("query", "diagnostics", "--code", "F401", "--store", "store", "--json").records
    assert (rule["name"], rule["severity"], rule["findings"]) == ("unused-import", "warning", len(findings))
    assert "## Why is this bad?" in rule["explanation"]
    assert len(findings) == 2
    assert rule["batch_id"] == ran.batch_id
    assert f"2 findings in batch {ran.batch_id}" in ran.codebatch("rules", "show", "F401", "--store", "store").lines


def test_rules_show_omits_the_count_without_lint_results(codebatch: CommandLine) -> None:
    assert codebatch("rules", "show", "todo-comment", "--json").json["summary"]
    write(codebatch.directory / "a.py", "import os\n")
    codebatch("run", ".", "--pipeline", "parse", "-q")
    ended = codebatch("rules", "show", "F401", "--json")
    assert "findings" not in ended.json
    assert ended.notes.endswith(" has no results of the task lint\n")
    assert "hint: did you mean 'todo-comment'?" in codebatch("rules", "show", "todo-coment", status=2).notes
    assert "codebatch rules list" in codebatch("rules", "show", "zzz", status=2).notes


def test_every_listed_ruff_rule_is_known_to_ruff(codebatch: CommandLine) -> None:
    known = {row["code"] for row in json.loads(codebatch.shell("ruff rule --all --output-format json").stdout)}
    listed = codebatch("rules", "list", "--json").json
    assert [row["code"] for row in listed if row["tool"] == "ruff" and row["code"] not in known] == []


def test_batch_show_accepts_the_id_as_argument_or_option(ran: Ran) -> None:
    by_id = ran.codebatch("batch", "show", ran.batch_id, "--store", "store", "--json")
    assert by_id.stdout == ran.codebatch("batch", "show", "--batch", ran.batch_id, "--store", "store", "--json").stdout


def test_shards_status_ready_equals_open(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    codebatch("snapshot", "project", "-q")
    codebatch("batch", "init", "-q")
    command = ("shards", "--task", "parse", "--json", "--status")
    assert len(codebatch(*command, "ready").json) == len(codebatch(*command, "open").json) == 1


def test_path_that_is_not_utf8_is_found_by_every_reading_command(ran: Ran) -> None:
    name = b"caf\xe9.py"
    encoded = base64.b64encode(name).decode()
    paths = {row.get("path_b64") for row in ran.codebatch("files", "--store", "store", "--json").records}
    assert encoded in paths
    inspected = ran.codebatch("inspect", name, "--store", "store", "--json").records
    assert {record["path_b64"] for record in inspected} == {encoded}
    assert ran.codebatch("inspect", name, "--store", "store", "--json", "--explain").json["path_b64"] == encoded
    inspected = ran.codebatch("inspect", b"project/" + name, "--store", "store", "--all")
    assert all(line.startswith("caf") for line in inspected.lines)
    for command in ("files", "query outputs", "query diagnostics", "top --by path", "files --snapshot latest"):
        assert b"caf" in ran.codebatch(*command.split(), "--store", "store").stdout, command
    why = ran.codebatch("files", "--why", b"project/" + name, "--store", "store", "--json").json
    assert why["included"]
    missing = ran.codebatch("inspect", b"th\xe9.py", "--store", "store", "--json", status=2)
    assert missing.error["code"] == "invalid_input"


def test_control_characters_in_names_and_messages_are_escaped(codebatch: CommandLine) -> None:
    """In text, each record is one line without escape sequences, whatever the file name. JSON has the exact name."""
    name = "\x1b]0;mine\x07\x1b[2J\na\u202eb\x9b.py"
    write(codebatch.directory / "project" / name, "def f(:\n")
    first = codebatch("run", "project")
    shown = "\\x1b]0;mine\\x07\\x1b[2J\\na\\u202eb\\x9b.py"
    assert any(shown in line for line in first.lines)
    outputs = [first.text, first.notes, codebatch("inspect", "nowhere\x1b[2J\n.py", status=2).notes]
    for command in (
        "errors",
        "files",
        "top --by path",
        "query outputs",
        "shards --task parse",
        "files --snapshot latest",
    ):
        ended = codebatch(*command.split())
        assert any(shown in line for line in ended.lines), command
        outputs.append(ended.text)
    outputs.append(codebatch("files", "--why", f"project/{name}").text)
    assert not any(character in text for text in outputs for character in "\x1b\x07\x9b\u202e")
    assert {record["path"] for record in codebatch("errors", "--json").records} == {name}


def test_directory_whose_name_is_not_utf8_can_be_run(codebatch: CommandLine) -> None:
    root = os.fsencode(codebatch.directory) + b"/d\xe9p\xf4t"
    os.mkdir(root)
    with open(root + b"/a.py", "wb") as file:
        file.write(b"import os\n")
    assert codebatch("run", root, "--json").json["files"] == 1
    for command in ("batch list", "snapshot list", "status", "errors", "inspect a.py"):
        codebatch(*command.split())
        codebatch(*command.split(), "--json")


def test_commands_work_in_an_ascii_locale(ran: Ran) -> None:
    ascii_only = CommandLine(ran.codebatch.directory, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert len(ascii_only("files", "--store", "store").lines) == 9
    assert len(ascii_only("files", "--store", "store", "--json").records) == 9
    ascii_only("inspect", "Grüße, Welt.py", "--store", "store")


def test_answers_are_equal_in_every_locale(codebatch: CommandLine) -> None:
    ascii_only = CommandLine(codebatch.directory, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})

    def compare(command: str, status: int = 0) -> None:
        expected = codebatch(*command.split(), "--json", status=status)
        assert ascii_only(*command.split(), "--json", status=status).stdout == expected.stdout, command

    write(codebatch.directory / "tree" / "ä.py", "def f():\n    return 1\n\n\nclass C:\n    def m(self): ...\n")
    write(codebatch.directory / "tree" / "ö.py", "from ä import C, f\nf()\nC().m()\n")
    codebatch("run", "tree")
    for command in ("references f", "callers C.m", "impact ä.py", "impact C"):
        compare(command)
    write(codebatch.directory / "tree" / "ä.py", "def g():\n    return 1\n")
    codebatch("run", "tree")
    compare("diff")
    compare("check", 1)


def test_inspect_accepts_paths_relative_to_the_current_directory(ran: Ran) -> None:
    expected = ran.codebatch("inspect", "src/main.py", "--store", "store").stdout
    for path, cwd in (("main.py", "src"), ("../src/main.py", "web"), ("./src/main.py", ""), ("src/../src/main.py", "")):
        assert ran.codebatch("inspect", path, "--store", ran.store, cwd=ran.project / cwd).stdout == expected
    assert ran.codebatch("inspect", ran.project / "src" / "main.py", "--store", "store").stdout == expected


def test_ambiguous_path_is_noted(codebatch: CommandLine) -> None:
    below = codebatch.directory / "below"
    for place in (below.parent, below, below / "below"):
        write(place / "a.py", "x = 1\n")
    codebatch("run", ".", "-q", "--pipeline", "parse")
    for given, expected, other in (
        ("a.py", "a.py", "below/a.py"),
        ("./a.py", "below/a.py", "a.py"),
        ("../a.py", "a.py", None),
        (below / "a.py", "below/a.py", None),
        ("below/a.py", "below/a.py", "below/below/a.py"),
    ):
        ended = codebatch("inspect", given, "--json", cwd=below)
        assert {record["path"] for record in ended.records} == {expected}
        assert (f", ignoring {other}\n" in ended.notes) if other else ("ignoring" not in ended.notes)


def test_empty_answer_prints_a_note_and_no_data(codebatch: CommandLine) -> None:
    codebatch("init")
    assert codebatch("snapshot", "list").stdout == codebatch("batch", "list").stdout == b""
    write(codebatch.directory / "a.txt", "a\n")
    codebatch("run")
    for command, note in (
        ("errors", "no errors\n"),
        ("shards --task parse --status failed", "no matching shards\n"),
        ("query diagnostics", "no diagnostics in 1 file\n"),
    ):
        ended = codebatch(*command.split())
        assert (ended.stdout, ended.notes) == (b"", note), command


def test_filters_select_matching_records(ran: Ran) -> None:
    def query(*arguments: str) -> list[dict[str, object]]:
        records = ran.codebatch("query", *arguments, "--store", "store", "--json").records
        assert isinstance(records, list)
        return records

    every = query("outputs")
    assert query("outputs", "--kind", "symbol") == [record for record in every if record["kind"] == "symbol"]
    assert query("diagnostics") == [record for record in every if record["kind"] == "diagnostic"]
    errors = query("diagnostics", "--severity", "error")
    assert {record["path"] for record in errors} == {"src/broken.py"}
    assert {record["code"] for record in query("diagnostics", "--code", "F4*")} == {"F401"}
    assert [record["qualified"] for record in query("outputs", "--name", "Mai*", "--path", "src/")] == ["Main"]
    assert len(query("outputs", "--limit", "2")) == 2
    assert query("outputs", "--task", "analyze") == query("outputs", "--kind", "metric")
    kinds = {"symbols": "symbol", "edges": "edge", "metrics": "metric", "files": "file"}
    for noun, kind in {**kinds, "failures": "failure", "duplicates": "duplicate"}.items():
        assert query(noun) == [record for record in every if record["kind"] == kind], noun
    assert {record["path"] for record in query("files", "--path", "SRC/*.py")} == set()
    assert {record["path"] for record in query("files", "--path", "SRC/")} == {
        record["path"] for record in query("outputs", "--path", "src/*")
    }
    assert {record.get("lang") for record in query("files", "--lang", "python")} == {"python"}
    assert {record["path"] for record in query("symbols", "--lang", "javascript")} == {"web/app.js"}
    assert query("symbols", "--where", "lang == 'javascript'") == query("symbols", "--lang", "javascript")
    assert query("diagnostics", "--where", "severity == 'error'") == errors
    paths = [str(record.get("path", "")) for record in every if "path" in record]
    assert paths == sorted(paths), "records are not sorted by path"


def test_option_of_other_record_kinds_is_rejected_with_a_hint(ran: Ran) -> None:
    error = ran.codebatch("query", "edges", "--severity=x", "--store", "store", "--json", status=2).error
    assert error["message"] == "--severity cannot be used with edges"
    assert error["hint"] == "available in: query outputs, query diagnostics, query stats"
    error = ran.codebatch("query", "files", "--where", "lnes > 3", "--store", "store", "--json", status=2).error
    assert (error["message"], error["hint"]) == ("unknown field 'lnes'", "did you mean 'lines'?")
    command = ("query", "outputs", "--name", "x", "--code", "y", "--store", "store", "--json")
    assert ran.codebatch(*command, status=2).error["message"] == "no record can match all filters"


def test_language_without_files_is_noted(ran: Ran) -> None:
    ended = ran.codebatch("query", "files", "--lang", "Python", "--store", "store")
    assert (ended.lines, ended.notes.startswith("no Python files in the batch; its languages: ")) == ([], True)


def test_counts_agree_between_commands(ran: Ran) -> None:
    def ask(command: str) -> dict[str, int]:
        records = ran.codebatch(*command.split(), "--store", "store", "--json").records
        assert isinstance(records, dict)
        return records

    every = ran.codebatch("query", "outputs", "--store", "store", "--json").records
    assert sum(ask("top --limit 99").values()) == len(every)
    summary = ran.codebatch("summary", "--store", "store", "--json").json
    assert summary["kinds"] == ask("top --limit 99")
    assert summary["severities"] == ask("top --by severity")
    assert sum(task["total_outputs"] for task in summary["tasks"].values()) == len(every)
    severities = summary["severities"]
    assert summary["totals"] == {
        "outputs": len(every),
        "diagnostics": sum(severities.values()),
        "errors": severities["error"],
        "warnings": severities["warning"],
    }


def test_table_numbers_are_right_aligned_and_words_left_aligned(ran: Ran) -> None:
    header, *rows = ran.codebatch("tasks", "--store", "store").lines
    assert len({len(line) for line in (header, *rows)}) == 1, (
        "the lines differ in length, but the last column has numbers"
    )
    assert all(row.split()[0] == row[: len(row.split()[0])] for row in rows)


def test_answers_are_the_same_before_and_after_the_merge(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    codebatch("run", "project")
    commands = (
        "query outputs",
        "summary",
        "errors",
        "files",
        "top",
        "inspect src/main.py",
        "tasks",
        "shards --task lint",
    )
    merged = [codebatch(*command.split(), "--json").stdout for command in commands]
    (outputs,) = (codebatch.directory / ".codebatch" / "batches").glob("*/outputs/*")
    outputs.rename(codebatch.directory / "away")
    assert [codebatch(*command.split(), "--json").stdout for command in commands] == merged


@pytest.mark.parametrize("content", ["words\n", None], ids=["one file of text", "no file"])
def test_output_without_records_is_a_valid_empty_file(codebatch: CommandLine, content: str | None) -> None:
    (codebatch.directory / "tree").mkdir()
    if content is not None:
        write(codebatch.directory / "tree" / "notes.txt", content)
    codebatch("run", "tree", "--allow-empty")
    outputs = sorted(codebatch.directory.glob(".codebatch/batches/*/outputs/*/*/*.jsonl.zst"))
    lines = {path.parent.name: 0 for path in outputs}
    for path in outputs:
        if shutil.which("zstdcat") is not None:
            answer = subprocess.run(["zstdcat", path], stdout=subprocess.PIPE, check=True).stdout
        else:
            assert zstandard.frame_content_size(path.read_bytes()) >= 0
            answer = decompress_all(path.read_bytes())
        lines[path.parent.name] = len(answer.splitlines())
    assert len(lines) >= 6
    assert lines["symbols"] == 0
    assert bool(sum(lines.values())) == (content is not None)
    assert codebatch("query", "outputs", "--task", "symbols", "--json").records == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("top --limit x", "invalid value for '--limit': 'x' is not a valid integer range"),
        ("top --limit 0", "invalid value for '--limit': 0 is not in the range x>=1"),
        ("query files --offset -1", "invalid value for '--offset': -1 is not in the range x>=0"),
        ("hotspots --limit 1001", "invalid value for '--limit': 1001 is not in the range 1<=x<=1000"),
    ],
)
def test_range_errors_use_the_messages_of_click(codebatch: CommandLine, words: str, message: str) -> None:
    assert codebatch(*words.split(), "--json", status=2).error["message"] == message
