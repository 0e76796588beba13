"""`run --name NAME`, and `@NAME` as a reference to a batch."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine, write


@pytest.fixture
def project(codebatch: CommandLine) -> CommandLine:
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    return codebatch


def test_run_names_its_batch_and_every_command_accepts_the_name(project: CommandLine) -> None:
    first = project("run", "tree", "--pipeline", "parse", "--name", "before", "--json").json["batch_id"]
    write(project.directory / "tree" / "a.py", "x = 2\n")
    second = project("run", "tree", "--pipeline", "parse", "--name", "after", "--json").json["batch_id"]
    commands = [
        "status", "summary", "tasks", "shards --task parse", "query outputs", "files", "batch show", "run", "resume",
        "errors", "top --by kind",
    ]  # fmt: skip
    for command in commands:
        project(*command.split(), "--batch", "@before")
    project("verify", "@before")
    project("explain-miss", "@after")
    assert project("status", "--batch", "@before", "--json").json["batch_id"] == first
    listed = project("batch", "list", "--json").json
    assert [(row["batch_id"], row["names"]) for row in listed] == [(first, ["before"]), (second, ["after"])]
    assert project("batch", "list").lines[1].endswith("  @before")
    assert project("batch", "show", "--json").json["names"] == ["after"]
    assert project("store-stats", "--json").json["batch_names"] == {"after": second, "before": first}
    assert project("gc", "--keep", "1", "--json").json["batches"] == []
    for name in ("@before", "@after"):
        project("unpin", name)
    assert project("gc", "--keep", "1", "--json").json["batches"] == [first]
    assert project("summary", "--batch", "@before", "--json", status=2).error["code"] == "unknown_id"


def test_name_of_an_older_batch_moves_to_the_new_batch_with_a_note(project: CommandLine) -> None:
    first = project("run", "tree", "--pipeline", "parse", "--name", "x", "--json").json["batch_id"]
    assert "@x" not in project("run", "tree", "--pipeline", "parse", "--name", "x").notes, (
        "a batch that already has the name needs no note"
    )
    write(project.directory / "tree" / "a.py", "x = 2\n")
    second = project("run", "tree", "--pipeline", "parse", "--name", "x", "--json", "-q")
    assert second.notes == f"@x is now {second.json['batch_id']} (was {first})\n"


def test_invalid_batch_name_is_rejected_before_a_store_is_created(project: CommandLine) -> None:
    for wrong in ("", "@x", "../x"):
        error = project("run", "tree", "--name", wrong, "--json", status=2).error
        assert error["code"] == "invalid_id"
    assert not (project.directory / ".codebatch").exists()
    project("run", "tree", "--pipeline", "parse")
    assert project("run", "--name", "a b", "--json", status=2).error["code"] == "invalid_id"
    assert project("status", "--batch", "@../../etc", "--json", status=2).error["code"] == "invalid_id"
