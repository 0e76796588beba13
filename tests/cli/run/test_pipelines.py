"""Pipelines of the configuration on the command line, `run --dry-run`, and batches without the task `parse`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write

PLUGIN = Path(__file__).parent.parent.parent / "support" / "plugin"
SETTINGS = """
[pipelines.ci]
tasks = ["lint"]
description = "what blocks a merge"
default = true

[pipelines.prose]
tasks = ["spelling"]
"""


@pytest.fixture
def codebatch(tmp_path: Path) -> CommandLine:
    """The command line in a project with two pipelines and two files."""
    codebatch = CommandLine(tmp_path, plugins=PLUGIN)
    write(tmp_path / "codebatch.toml", SETTINGS)
    write(tmp_path / "a.py", "import os\n# teh end\n")
    write(tmp_path / "b.py", "x = 1\n")
    return codebatch


def executed_and_reused(codebatch: CommandLine) -> dict[str, tuple[int, int]]:
    """Return for each task of the latest batch how many results were executed and reused."""
    rows = codebatch("explain-miss", "--json").json["tasks"]
    return {row["task"]: (row["executed"], row["reused"]) for row in rows}


def test_pipelines_and_their_tasks_are_listed(codebatch: CommandLine) -> None:
    rows = {row["name"]: row for row in codebatch("pipelines", "--json").json}
    assert list(rows) == ["parse", "analyze", "full", "ci", "prose"]
    assert [name for name, row in rows.items() if row["default"]] == ["ci"]
    assert [name for name, row in rows.items() if not row["builtin"]] == ["ci", "prose"]
    assert (rows["ci"]["tasks"], rows["ci"]["description"]) == (["parse", "lint"], "what blocks a merge")
    lines = codebatch("pipelines").lines
    assert lines[4].split(maxsplit=5) == ["ci", "(default)", "parse,", "lint", "what", "blocks a merge"]
    assert lines[5].split() == ["prose", "spelling", "-"]
    (task,) = codebatch("pipeline", "prose", "--json").json["tasks"]
    assert (task["task_id"], task["version"], task["tools"]["spelling"]) == ("spelling", "1", "1.0")
    header, row = codebatch("pipeline", "ci").lines[1:3]
    assert header.split() == ["task", "version", "needs", "tools", "records", "description"]
    assert row.startswith("parse        1  -      python 3.")
    assert "tree-sitter-python" not in row
    assert " grammars  file, diagnostic, ast  " in row
    assert "did you mean 'prose'?" in codebatch("pipeline", "prse", status=2).notes


def test_run_uses_the_default_pipeline(codebatch: CommandLine) -> None:
    codebatch("run", ".", "-q")
    status = codebatch("status", "--json").json
    assert (status["pipeline"], [task["task_id"] for task in status["tasks"]]) == ("ci", ["parse", "lint"])
    write(codebatch.directory / "a.py", "import re\n")
    assert codebatch("findings").notes.endswith(f"codebatch run {codebatch.directory}\n")
    codebatch("run", ".", "-q", "--pipeline", "full")
    assert "--pipeline full" not in codebatch("findings").notes
    assert codebatch("batch", "init").lines[0].endswith("in 1 shard, parse, lint")
    assert codebatch("batch", "init", "--pipeline", "prose").lines[0].endswith("in 1 shard, spelling")


def test_dry_run_shows_tasks_tools_files_and_cached_results(codebatch: CommandLine) -> None:
    def preview(*words: str) -> dict[str, tuple[int, int]]:
        answer = codebatch("run", ".", "--dry-run", "--json", *words).json
        assert answer["files"] == 3
        return {task["task_id"]: (task["results"], task["cached"]) for task in answer["tasks"]}

    assert preview() == {"parse": (3, 0), "lint": (3, 0)}
    assert not (codebatch.directory / ".codebatch").exists(), "a store was created"
    codebatch("run", ".", "-q")
    assert preview() == {"parse": (3, 3), "lint": (3, 3)}
    assert preview("--again") == {"parse": (3, 0), "lint": (3, 0)}
    write(codebatch.directory / "a.py", "import re\n")
    assert preview("--task", "lint") == {"lint": (3, 2)}
    assert preview("--no-cache") == {"parse": (3, 0), "lint": (3, 0)}
    full = preview("--pipeline", "full")
    assert (full["parse"], full["lint"], full["analyze"], full["duplicates"]) == ((3, 2), (3, 2), (3, 0), (1, 0))
    assert preview("--pipeline", "full", "--task", "duplicates").keys() == {"parse", "analyze", "duplicates"}
    assert len(codebatch("batch", "list", "--json").json) == 1, "a batch was created"
    lines = codebatch("run", ".", "--dry-run").lines
    assert lines[0].startswith(f"pipeline ci over {codebatch.directory}: 3 files, ")
    assert lines[-1] == "4 of 6 results cached, 2 to execute"
    ran = codebatch("run", ".", "--json").json
    assert (ran["reused"], ran["executed"]) == (4, 2), "the preview was wrong"
    assert "--dry-run cannot be used with --batch" in codebatch("run", "--dry-run", "--batch", "latest", status=2).notes
    assert "--name cannot be used with --dry-run" in codebatch("run", "--dry-run", "--name", "x", status=2).notes


def test_dry_run_shows_the_batch_that_would_be_used(codebatch: CommandLine) -> None:
    full = codebatch("run", ".", "--pipeline", "full", "--json").json
    answer = codebatch("run", ".", "--pipeline", "full", "--dry-run", "--json").json
    assert answer["batch_id"] == full["batch_id"]
    assert all(task["results"] == task["cached"] for task in answer["tasks"])
    codebatch("run", ".", "-q")
    assert codebatch("run", ".", "--pipeline", "full", "--dry-run", "--json").json["batch_id"] == full["batch_id"]
    new = codebatch("batch", "init", "--pipeline", "prose", "--json").json["batch_id"]
    answer = codebatch("run", ".", "--pipeline", "prose", "--dry-run", "--json").json
    assert (answer["batch_id"], answer["tasks"][0]["cached"]) == (new, 0)
    assert f"batch {new} has the same files" in codebatch("run", ".", "--pipeline", "prose", "--dry-run").text


def test_project_result_of_an_equal_snapshot_is_shown_as_cached(codebatch: CommandLine) -> None:
    codebatch("run", ".", "-q", "--pipeline", "full")
    write(codebatch.directory / "codebatch.toml", "[pipelines.dup]\ntasks = ['duplicates']\n")
    codebatch("run", ".", "-q", "--pipeline", "full")
    answer = codebatch("run", ".", "--pipeline", "dup", "--dry-run", "--json").json
    assert {task["task_id"]: task["cached"] for task in answer["tasks"]} == {"parse": 3, "analyze": 3, "duplicates": 1}
    codebatch("run", ".", "-q", "--pipeline", "dup")
    assert executed_and_reused(codebatch) == {"parse": (0, 3), "analyze": (0, 3), "duplicates": (0, 1)}
    write(codebatch.directory / "a.py", "import re\n")
    answer = codebatch("run", ".", "--pipeline", "dup", "--dry-run", "--json").json
    assert {task["task_id"]: task["cached"] for task in answer["tasks"]} == {"parse": 2, "analyze": 2, "duplicates": 0}


def test_dry_run_skips_a_base_for_few_missing_results_as_the_run_does(codebatch: CommandLine) -> None:
    for number in range(600):
        write(codebatch.directory / "many" / f"{number}.txt", f"{number}\n")
    for content in ("first", "second"):
        write(codebatch.directory / "b.py", f"x = '{content}'\n")
        codebatch("run", ".", "-q", "--pipeline", "prose")
    write(codebatch.directory / "b.py", "x = 'first'\n")
    write(codebatch.directory / "c.py", "")
    (task,) = codebatch("run", ".", "--pipeline", "prose", "--dry-run", "--json").json["tasks"]
    assert (task["results"], task["cached"]) == (604, 602), "the first batch has the result of b.py"
    assert codebatch("run", ".", "--pipeline", "prose", "--json").json["reused"] == 602


def test_check_of_a_batch_without_findings_is_refused(codebatch: CommandLine) -> None:
    write(codebatch.directory / "codebatch.toml", "[pipelines.sizes]\ntasks = ['sizes']\n")
    codebatch("run", ".", "-q", "--pipeline", "sizes")
    error = codebatch("check", "--no-base-ok", "--json", status=2).error
    assert error["message"] == "no task of the batch produces records of kind 'diagnostic': it has only sizes"
    assert error["hint"] == "run with: codebatch run --pipeline full; also in the pipelines parse, analyze"


def test_run_reuses_results_of_a_newer_batch_of_another_pipeline(codebatch: CommandLine) -> None:
    """Four older batches of the same pipeline would otherwise be the only ones to reuse from."""
    for number in range(4):
        write(codebatch.directory / "b.py", f"x = {number}\n")
        codebatch("run", ".", "-q", "--pipeline", "full")
    write(codebatch.directory / "b.py", "x = 'new'\n")
    codebatch("run", ".", "-q")
    codebatch("run", ".", "-q", "--pipeline", "prose")
    codebatch("run", ".", "-q", "--pipeline", "full")
    counts = executed_and_reused(codebatch)
    assert (counts["parse"], counts["lint"], counts["symbols"]) == ((0, 3), (0, 3), (1, 2))


def test_batch_keeps_its_tasks_if_the_pipeline_changes(codebatch: CommandLine) -> None:
    first = codebatch("run", ".", "--json").json["batch_id"]
    planned = codebatch("batch", "init", "--json").json["batch_id"]
    write(codebatch.directory / "codebatch.toml", SETTINGS.replace('["lint"]', '["lint", "analyze"]'))
    codebatch("resume", "--batch", planned, "-q")
    tasks = codebatch("tasks", "--batch", planned, "--json").json
    assert [task["task_id"] for task in tasks] == ["parse", "lint"]
    assert codebatch("verify", planned, "--sample", "100%", "--json").json["different"] == 0
    latest = codebatch("run", ".", "--json").json
    assert latest["tasks_completed"] == 3
    assert codebatch("batch", "show", "latest~2", "--json").json["batch_id"] == first
    counts = executed_and_reused(codebatch)
    assert (counts["lint"], counts["analyze"]) == ((1, 2), (3, 0)), "only the changed configuration file is new"


def test_restricted_run_is_covered_by_a_whole_run_with_its_tasks(codebatch: CommandLine) -> None:
    whole = codebatch("run", ".", "--pipeline", "full", "--json").json["batch_id"]
    prose = codebatch("run", ".", "--pipeline", "prose", "--json").json["batch_id"]
    codebatch("run", "a.py", "-q")
    assert codebatch("batch", "show", "--json").json["batch_id"] == whole
    part = codebatch("run", "a.py", "--pipeline", "prose", "--json").json["batch_id"]
    assert part != prose
    assert codebatch("batch", "show", "--json").json["batch_id"] == prose
    write(codebatch.directory / "codebatch.toml", SETTINGS.replace('["spelling"]', '["errata"]'))
    more = codebatch("run", "a.py", "--pipeline", "prose", "--json").json["batch_id"]
    assert codebatch("batch", "show", "--json").json["batch_id"] == more, "no whole run has the task errata"


def test_error_names_the_pipelines_with_the_missing_task(codebatch: CommandLine) -> None:
    codebatch("run", ".", "-q", "--pipeline", "prose")
    for command, hint in {
        "def x": "hint: run with: codebatch run --pipeline full\n",
        "duplicates": "hint: run with: codebatch run --pipeline analyze; also in the pipeline full\n",
        "query outputs --task lint": "hint: run with: codebatch run --pipeline ci; also in the pipeline full\n",
        "findings --lang python": (
            "hint: run with: codebatch run --pipeline ci; also in the pipelines parse, analyze, full\n"
        ),
        "query outputs --task spelt": "hint: did you mean 'spelling'?\n",
    }.items():
        assert codebatch(*command.split(), status=2).notes.endswith(hint), command
    codebatch("run", ".", "-q")
    notes = codebatch("query", "outputs", "--task", "spelling", "--store", ".codebatch", status=2).notes
    assert notes.endswith("hint: run with: codebatch run --pipeline prose --store .codebatch\n")
    assert "; run with: codebatch run --pipeline full\n" in codebatch("sql", "select * from symbol").notes


def test_batch_without_parse_has_correct_answers(codebatch: CommandLine) -> None:
    ran = codebatch("run", ".", "--pipeline", "prose", "--json").json
    assert (ran["files"], ran["records"], ran["failures"]) == (3, 1, 0)
    assert codebatch("status", "--json").json["results"] == 3
    assert codebatch("files").lines[0] == "a.py  ?  ? lines"
    assert codebatch("summary").lines[0] == "3 files, 1 record"
    assert codebatch("findings").lines[1] == "  a.py:2:1"
    assert codebatch("export", "checkstyle").text.count("<error ") == 1
    assert codebatch("check", "--no-base-ok", "--json").json["compared"] is False
    assert codebatch("inspect", "a.py").lines[:2] == ["a.py", "  findings  1 warning"]
    assert codebatch("sql", "select count(*) from diagnostic").lines[-1].split() == ["1"]
    codebatch("report", "-o", "report.html")
    assert '"asked":["diagnostic"]' in (codebatch.directory / "report.html").read_text().replace(" ", "")
    (codebatch.directory / "report.html").unlink()
    write(codebatch.directory / "a.py", "import os\n")
    codebatch("run", ".", "--pipeline", "prose", "-q")
    assert codebatch("diff", "--json").json["summary"]["states"]["fixed"] == 1
    assert codebatch("findings").notes == "no findings of spelling; the batch did not run lint\n"
    assert codebatch("findings", "--task", "spelling").notes == "no findings\n"


def test_pipelines_are_completed(codebatch: CommandLine) -> None:
    def completed(words: str, last: int) -> list[str]:
        line = f"COMP_WORDS='{words}' COMP_CWORD={last} _CODEBATCH_COMPLETE=bash_complete codebatch"
        return [row.partition(",")[2] for row in codebatch.shell(line).lines]

    assert completed("codebatch pipeline p", 2) == ["parse", "prose"]
    assert completed("codebatch run --pipeline p", 3) == ["parse", "prose"]
    write(codebatch.directory / "codebatch.toml", "jbos = 1\n")
    assert completed("codebatch run --pipeline p", 3) == ["parse"]
