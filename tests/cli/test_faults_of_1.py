"""Faults of CodeBatch 1.0.2 in status, queries, cache, gates and errors, which this version does not have."""

from __future__ import annotations

import json
import re

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.support.command_line import SCHEMAS, CommandLine, make_project, wait_until, write, write_own_task

from .conftest import Ran

_WAIT = """
import os, time
def task(file):
    while not os.path.exists(%r):
        time.sleep(0.01)
    return []
"""
_FAIL = """
import os
def task(file):
    if not os.path.exists(%r):
        raise RuntimeError("boom")
    return []
"""


@pytest.fixture
def analysed(codebatch: CommandLine) -> CommandLine:
    """A tree of one file, with a complete batch and an index."""
    write(codebatch.directory / "tree" / "a.py", "import os\nimport sys; import re\n\n\ndef f():\n    pass\n")
    codebatch("run", "tree", "-q")
    codebatch("index-build", "-q")
    return codebatch


# -- Status and queries -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("files", [0, 1])
def test_finished_batch_with_few_files_is_completed(codebatch: CommandLine, files: int) -> None:
    (codebatch.directory / "tree").mkdir()
    for number in range(files):
        write(codebatch.directory / "tree" / f"{number}.py", "x = 1\n")
    codebatch("run", "tree", "-q", "--allow-empty")
    status = codebatch("status", "--json").json
    assert (status["status"], status["results"]) == ("COMPLETED", status["planned"])
    assert {task["status"] for task in codebatch("tasks", "--json").json} == {"done"}
    assert [row["status"] for row in codebatch("batch", "list", "--json").json] == ["COMPLETED"]


def test_shards_lists_running_shards(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    wait = codebatch.directory / "go"
    write_own_task(codebatch.directory, "wait", _WAIT % str(wait))
    process = codebatch.start("run", "tree", "-q")
    command = ("shards", "--task", "wait", "--json", "--status")
    wait_until(lambda: any(codebatch.directory.glob(".codebatch/batches/batch-*/leases/*")), "a lease is claimed")
    assert [row["status"] for row in codebatch(*command, "running").json] == ["running"]
    assert codebatch(*command, "open").json == []
    write(wait, "")
    codebatch.finish(process)
    assert codebatch(*command, "running").json == []
    assert len(codebatch(*command, "done").json) == 1


def test_counts_of_diagnostics_include_only_diagnostics(ran: Ran) -> None:
    diagnostics = ran.codebatch("query", "diagnostics", "--store", "store", "--json").records
    summary = ran.codebatch("summary", "--store", "store", "--json").json
    assert sum(summary["severities"].values()) == summary["totals"]["diagnostics"] == len(diagnostics)
    assert "none" not in summary["severities"]
    assert "none" not in ran.codebatch("top", "--by", "code", "--store", "store").text


def test_inspect_with_all_names_every_symbol(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / ".a.py", "".join(f"def f{n}():\n    pass\n" for n in range(120)))
    codebatch("run", "tree", "-q")
    shown = codebatch("inspect", ".a.py", "--all").text
    assert [n for n in range(120) if not re.search(rf"\bf{n}\b", shown)] == []
    assert "bytes" in shown
    assert codebatch("inspect", "no.py", "--json", status=2).error["code"] == "invalid_input"


@pytest.mark.parametrize("command", ["run", "resume"])
def test_run_and_resume_print_only_json_with_json_option(analysed: CommandLine, command: str) -> None:
    assert analysed(command, "--json").json["success"] is True


def test_run_of_an_unknown_task_fails(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "tree")
    codebatch("snapshot", "tree", "-q")
    codebatch("batch", "init", "-q")
    assert codebatch("run", "--task", "nope", "--json", status=2).error["code"] == "invalid_input"
    assert codebatch("status", "--json").json["status"] == "PENDING"


def test_task_run_alone_has_the_same_result_as_in_the_pipeline(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "tree")
    codebatch("snapshot", "tree", "-q")
    codebatch("batch", "init", "-q")
    codebatch("run", "--task", "lint", "-q")
    command = ("query", "diagnostics", "--task", "lint", "--json")
    alone = codebatch(*command).json
    codebatch("run", "-q")
    assert codebatch(*command).json == alone != []


def test_shard_that_succeeds_on_retry_is_not_failed(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    fine = codebatch.directory / "fine"
    write_own_task(codebatch.directory, "once", _FAIL % str(fine))
    command = ("shards", "--task", "once", "--json")
    codebatch("run", "tree", "-q", status=3)
    assert [(row["status"], row["files_failed"]) for row in codebatch(*command).json] == [("failed", 1)]
    assert "boom" in codebatch("errors").text
    write(fine, "")
    codebatch("resume", "-q")
    assert [(row["status"], row["files_failed"]) for row in codebatch(*command).json] == [("done", 0)]
    assert "boom" not in codebatch("errors").text


@pytest.mark.parametrize("wrong", ["--batch nope", "--task nope", "--kind sym"])
def test_query_for_unknown_values_is_an_error(analysed: CommandLine, wrong: str) -> None:
    assert analysed("query", "outputs", *wrong.split(), "--json", status=2).error["message"]


# -- The cache, now the index -----------------------------------------------------------------------------------------


def test_index_changes_no_answer_and_hides_no_damage(analysed: CommandLine) -> None:
    commands: list[tuple[str, ...]] = [
        ("query", noun, "--json") for noun in ("outputs", "diagnostics", "symbols", "edges", "stats")
    ]
    commands += [("query", "symbols", "--name", "f", "--json"), ("inspect", "a.py", "--json"), ("summary", "--json")]
    with_index = [analysed(*command).stdout for command in commands]
    for index in analysed.directory.glob(".codebatch/indexes/*"):
        index.rename(analysed.directory / index.name)
    assert [analysed(*command).stdout for command in commands] == with_index
    for index in analysed.directory.glob("batch-*"):
        index.rename(analysed.directory / ".codebatch" / "indexes" / index.name)
    for output in (analysed.directory / ".codebatch").glob("batches/*/outputs/*/*/*.jsonl.zst"):
        output.chmod(0o600)
        output.write_bytes(b"")
    for command in commands[:4]:
        assert analysed(*command, status=4).error["code"] == "store_corrupt"


def test_each_batch_has_its_own_index(analysed: CommandLine) -> None:
    write(analysed.directory / "tree" / "b.py", "def g():\n    pass\n")
    analysed("run", "tree", "-q")
    analysed("index-build", "-q")
    for batch, names in (("latest~1", ["f"]), ("latest", ["f", "g"])):
        assert [
            row["name"]
            for row in analysed("query", "symbols", "--symbol-type", "function", "--batch", batch, "--json").records
        ] == names
        assert analysed("index-build", "--batch", batch, "--verify", "-q").status == 0


def test_index_contains_long_paths_and_names(codebatch: CommandLine) -> None:
    deep = "/".join(["d" * 200] * 4)
    write(codebatch.directory / "tree" / deep / "a.py", f"class {'C' * 450}:\n    pass\n")
    codebatch("run", "tree", "-q")
    codebatch("index-build", "-q")
    (symbol,) = codebatch("query", "symbols", "--name", "C" * 450, "--json").records
    assert symbol["path"] == f"{deep}/a.py"


# -- Gates, api, errors -----------------------------------------------------------------------------------------------


def test_every_self_test_accepts_its_old_id(analysed: CommandLine) -> None:
    for gate in analysed("gate", "list", "--json").json:
        for alias in gate["aliases"]:
            assert analysed("gate", "explain", alias, "--json").json["gate_id"] == gate["gate_id"]
    assert analysed("gate", "run", "P2-G1", "--json").json["passed"] is True


def test_batch_that_never_ran_fails_the_plan_covered_self_test(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    codebatch("snapshot", "tree", "-q")
    codebatch("batch", "init", "-q")
    answer = codebatch("gate", "run", "P2-G1", "--json", status=1).json
    assert answer["passed"] is False


@pytest.mark.parametrize(
    "command",
    [
        "status",
        "summary",
        "tasks",
        "errors",
        "batch-show",
        "snapshot-show",
        "query outputs",
        "shards --task parse",
        "inspect a.py",
        "top",
        "store-stats",
        "gate run store-schema",
        "index-build",
        "diagnose",
    ],
)
def test_missing_store_is_a_json_error_and_is_not_created(codebatch: CommandLine, command: str) -> None:
    ended = codebatch(*command.split(), "--store", "typo", "--json", status=4)
    assert ended.error["code"] == "store_not_found"
    assert list(codebatch.directory.iterdir()) == []


def test_unknown_pipeline_is_a_json_error(codebatch: CommandLine) -> None:
    assert codebatch("pipeline", "nope", "--json", status=2).error["message"]


def test_store_is_not_created_in_a_directory_with_files(codebatch: CommandLine) -> None:
    write(codebatch.directory / "full" / "kept", "kept")
    assert "not empty" in codebatch("snapshot", "full", "--store", "full", "--json", status=4).error["message"]
    assert [path.name for path in (codebatch.directory / "full").iterdir()] == ["kept"]


@pytest.mark.parametrize("chosen", ["../../escaped", "has space/slash", ""])
def test_id_option_is_rejected(codebatch: CommandLine, chosen: str) -> None:
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    assert codebatch("snapshot", "tree", "--id", chosen, "--json", status=2).error["hint"].startswith("ids cannot")
    codebatch("snapshot", "tree", "-q")
    assert codebatch("batch", "init", "--id", chosen, "--json", status=2).error["hint"].startswith("ids cannot")
    assert not (codebatch.directory.parent / "escaped").exists()


def test_stored_records_conform_to_the_schema(ran: Ran) -> None:
    schema = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "record.json").read_bytes()))
    kinds = set()
    for record in ran.codebatch("query", "outputs", "--store", "store", "--json").records:
        schema.validate(record)
        kinds.add(record["kind"])
    assert {"file", "symbol", "edge", "metric", "diagnostic"} <= kinds
    api = ran.codebatch("api", "--json", "--store", "store").json
    assert kinds <= {kind["name"] if isinstance(kind, dict) else kind for kind in api["kinds"]}
    assert "store-stats" in json.dumps(api["commands"])


def test_closed_standard_output_does_not_end_a_run(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "tree")
    process = codebatch.start("run", "tree", "-v")
    assert process.stdout is not None
    process.stdout.close()
    codebatch.finish(process)
    assert codebatch("status", "--json").json["status"] == "COMPLETED"


@pytest.mark.parametrize("damage", ["remove", "cut", "change"])
def test_diagnose_finds_damaged_and_missing_objects(analysed: CommandLine, damage: str) -> None:
    (pack,) = (analysed.directory / ".codebatch" / "objects").glob("*.pack")
    pack.chmod(0o600)
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 0xFF
    if damage == "change":
        pack.with_suffix(".idx").unlink()
    if damage == "remove":
        pack.unlink()
    else:
        pack.write_bytes(content if damage == "change" else content[:-20])
    ended = analysed("diagnose", *(("--full",) if damage == "change" else ()), "--json", status=4, has_answer=True)
    (damaged,) = ended.json["damaged"]
    assert re.fullmatch(r"object [0-9a-f]{64} is (missing or damaged|not in any pack) in .*", damaged["problem"])
    assert damaged["names"][0].startswith("snapshots/")
    content[len(content) // 2] ^= 0xFF
    pack.write_bytes(content)
    pack.with_suffix(".bad").unlink(missing_ok=True)
    assert analysed("diagnose", "--full", "--json").json["damaged"] == [], "the restored objects must be valid"
