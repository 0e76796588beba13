"""IDs from outside that are unknown, ambiguous or hostile. Invalid IDs are never looked up."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine, make_project, write

HOSTILE = [
    "../../x",
    "..",
    ".",
    "/",
    "/etc/passwd",
    "a/b",
    "",
    " ",
    "-x",
    "a\nb",
    "%s",
    "*",
    "\udcff",
    "x" * 300,
    "latest~x",
]


@pytest.fixture(scope="module")
def codebatch(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A store with two batches of two snapshots, and with hostile documents beside them."""
    codebatch = CommandLine(tmp_path_factory.mktemp("ids"))
    make_project(codebatch.directory / "project")
    codebatch("run", "project")
    codebatch("run", "project", "--include", "*.py")
    for place in ("x", ".codebatch/x", ".codebatch/snapshots/x", "etc"):
        write(codebatch.directory / place / "batch.json", '{"hostile": true}')
    return codebatch


@pytest.mark.parametrize("hostile", HOSTILE)
def test_invalid_id_is_rejected(codebatch: CommandLine, hostile: str) -> None:
    option = ("--batch", "--snapshot")[HOSTILE.index(hostile) % 2]
    ended = codebatch("files", f"{option}={hostile}", "--json", status=2)
    assert ended.error["code"] == "invalid_id", ended.notes


@pytest.mark.parametrize("option", ["--batch", "--snapshot"])
def test_unknown_id_is_reported_with_a_hint(codebatch: CommandLine, option: str) -> None:
    for unknown in ("batch-19990101", "snap-ffff", "nope", "latest~7", "latest~99999"):
        ended = codebatch("files", option, unknown, "--json", status=2)
        assert ended.error["code"] == "unknown_id"
        assert "codebatch " in ended.error["hint"]


@pytest.mark.parametrize("kind", ["batch", "snap"])
def test_ambiguous_prefix_is_reported_with_its_candidates(codebatch: CommandLine, kind: str) -> None:
    option = {"batch": "--batch", "snap": "--snapshot"}[kind]
    noun = {"batch": "batch", "snap": "snapshot"}[kind]
    ended = codebatch("files", option, f"{kind}-", "--json", status=2)
    assert ended.error["code"] == "ambiguous_id"
    known = [row[f"{noun}_id"] for row in codebatch(noun, "list", "--json").json]
    assert len(known) == 2
    assert all(id_ in ended.error["hint"] for id_ in known)


def test_a_unique_prefix_and_latest_name_a_batch(codebatch: CommandLine) -> None:
    first, last = (row["batch_id"] for row in codebatch("batch", "list", "--json").json)
    length = next(at for at, (one, other) in enumerate(zip(first, last, strict=True)) if one != other) + 1

    def named(*arguments: str) -> str:
        batch_id = codebatch("status", *arguments, "--json").json["batch_id"]
        assert isinstance(batch_id, str)
        return batch_id

    assert named("--batch", first[:length]) == first
    assert named("--batch", last[:length].removeprefix("batch-")) == last
    assert named() == named("--batch", "latest") == named("--batch", "latest~0") == last
    assert named("--batch", "latest~1") == first


@pytest.mark.parametrize("hostile", ["../x", "/", "*", "zz"])
def test_unknown_shard_or_task_changes_nothing(codebatch: CommandLine, hostile: str) -> None:
    ended = codebatch("run-shard", "--task", "parse", "--shard", hostile, "--json", status=5)
    assert (ended.stdout, ended.error["code"]) == (b"", "nothing_to_do")
    codebatch("run-shard", "--task", hostile, "--shard", "a", status=2)
    codebatch("shards", "--task", hostile, status=2)


def test_hostile_file_name_is_reported_as_missing(codebatch: CommandLine) -> None:
    for hostile in ("../../etc/passwd", "/etc/passwd", "", ".", "a" * 5000, "x\n"):
        ended = codebatch("inspect", hostile, "--json", status=2)
        assert ended.error["code"] == "invalid_input"
