"""Every command of the two quick starts and command lists of CodeBatch 1, as written there."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Ran
from tests.support.command_line import CommandLine, make_project

# The order is that of the README and the documentation of CodeBatch 1.0 (seeds 000 and 001).
QUICK_START = """\
codebatch init ./store
codebatch snapshot ./my-project --store ./store
codebatch pipelines
codebatch batch init --snapshot <id> --pipeline full --store ./store
codebatch run --batch <id> --store ./store
codebatch status --batch <id> --store ./store
codebatch summary --batch <id> --store ./store
""".splitlines()

COMMAND_LISTS = """\
codebatch run --batch <id> --store ./store
codebatch resume --batch <id> --store ./store
codebatch status --batch <id> --store ./store
codebatch summary --batch <id> --store ./store
codebatch pipelines
codebatch pipeline full
codebatch tasks --batch <id> --store ./store
codebatch shards --batch <id> --task 01_parse --store ./store
codebatch errors --batch <id> --store ./store
codebatch files --batch <id> --store ./store
codebatch top --batch <id> --store ./store
codebatch inspect src/main.py --batch <id> --store ./store
codebatch inspect src/main.py --batch <id> --store ./store --explain
codebatch run-shard --batch <id> --task 01_parse --shard ab --store ./store
codebatch query outputs --batch <id> --task 01_parse --store ./store
codebatch query diagnostics --batch <id> --task 01_parse --store ./store
""".splitlines()


def test_every_line_of_the_quick_start_works(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "my-project")
    known = ""
    for line in QUICK_START:
        ended = codebatch.shell(line.replace("<id>", known))
        assert ended.stdout
        for kind in ("snapshot", "batch"):
            if ended.lines[0].startswith(f"{kind} {kind[:4]}"):
                known = ended.lines[0].split()[1].rstrip(":")
    assert known.startswith("batch-")
    for line in COMMAND_LISTS:
        is_of_none = line.startswith("codebatch run-shard")
        ended = codebatch.shell(line.replace("<id>", known), status=5 if is_of_none else 0)
        assert "no shard id starts with 'ab'" in ended.notes if is_of_none else ended.stdout, line


def test_each_step_returns_the_ids_that_the_next_step_needs(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    codebatch("init", "store")
    taken = codebatch("snapshot", "project", "--store", "store", "--json").json
    assert taken["files"] == 9
    assert taken["bytes"] == sum(path.stat().st_size for path in Path(codebatch.directory, "project").rglob("*.*"))
    made = codebatch("batch", "init", "--snapshot", taken["snapshot_id"], "--store", "store", "--json").json
    assert codebatch("status", "--batch", made["batch_id"], "--store", "store", "--json").json["status"] == "PENDING"
    ended = codebatch("run", "--batch", made["batch_id"], "--store", "store", "--json").json
    expected = {"snapshot_id", "batch_id", "status", "result_digest", "files", "records", "failures", "seconds"}
    assert expected <= ended.keys()
    assert (ended["batch_id"], ended["snapshot_id"]) == (made["batch_id"], taken["snapshot_id"])
    assert (ended["status"], ended["files"], ended["failures"]) == ("COMPLETED", 9, 0)


def test_run_has_the_same_result_as_the_separate_steps(codebatch: CommandLine, ran: Ran) -> None:
    make_project(codebatch.directory / "project")
    ended = codebatch("run", "project")
    assert "created store" in ended.notes
    assert ended.lines[0].startswith("9 files in ")
    assert any(line.startswith("Likely bugs (") for line in ended.lines)
    assert ended.notes.splitlines()[-1] == "next: codebatch findings"
    again, first = codebatch("status", "--json").json, ran.codebatch("status", "--store", "store", "--json").json
    assert again["result_digest"] == first["result_digest"]


def test_run_shard_executes_every_shard_with_the_given_prefix(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    codebatch("snapshot", "project")
    codebatch("batch", "init")
    (shard,) = codebatch("shards", "--task", "parse", "--json").json
    other = "0" if shard["shard_id"][0] != "0" else "1"
    none = codebatch("run-shard", "--task", "01_parse", "--shard", other, "--json", status=5)
    assert (none.stdout, none.error["message"]) == (b"", f"no shard id starts with {other!r}")
    one = codebatch("run-shard", "--task", "01_parse", "--shard", shard["shard_id"][:2], "--json").json
    assert one["shards"] == [{"shard_id": shard["shard_id"], "status": "done"}]
    (shard,) = codebatch("shards", "--task", "01_parse", "--json").json
    assert (shard["status"], shard["files_processed"]) == ("done", 9)
    tasks = {task["task_id"]: task["status"] for task in codebatch("tasks", "--json").json}
    others = dict.fromkeys(("analyze", "symbols", "lint", "dependencies", "duplicates"), "pending")
    assert tasks == {"parse": "done", **others}
    assert codebatch("run", "--batch", "latest", "--json").json["status"] == "COMPLETED"


def test_run_of_one_task_can_be_completed_later(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    first = codebatch("run", "project", "--task", "01_parse", "--json").json
    assert first["status"] == "RUNNING"
    assert codebatch("query", "outputs", "--task", "parse", "--kind", "file", "--json").records
    whole = codebatch("run", "project", "--json").json
    assert (whole["status"], whole["batch_id"], whole["action"]) == ("COMPLETED", first["batch_id"], "resumed")
