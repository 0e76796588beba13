"""`index-build`: its output, and that answers are the same with an index."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from codebatch.operations.runs.indexing import IndexAnswer
from tests.cli.conftest import Ran
from tests.support.command_line import CommandLine

QUESTIONS = (
    ("query", "outputs", "--name", "m*", "--json"),
    ("query", "outputs", "--name", "nope"),
    ("query", "diagnostics", "--code", "F*"),
    ("query", "symbols", "--where", "name == 'run'"),
    ("callers", "eval"),
)


@pytest.fixture
def store(ran: Ran, tmp_path: Path) -> Path:
    """A copy of the store without its index, for tests that write to it."""
    shutil.copytree(ran.store, tmp_path / "store", symlinks=True)
    for index in (tmp_path / "store" / "indexes").glob("batch-*"):
        shutil.rmtree(index)
    return tmp_path / "store"


@pytest.fixture
def copied_command_line(ran: Ran, store: Path) -> CommandLine:
    """The command line in the project, with the copied store."""
    return CommandLine(ran.project, {"CODEBATCH_STORE": str(store)})


def test_index_changes_no_answer_and_its_damage_is_reported(copied_command_line: CommandLine, store: Path) -> None:
    """Queries change nothing, so they also work on a store that cannot be written."""
    before = [copied_command_line(*question).stdout for question in QUESTIONS]
    assert before[0].count(b'"kind"') > 0
    answer = msgspec.json.decode(copied_command_line("index-build", "--json").stdout, type=IndexAnswer)
    assert answer.terms > 5
    assert "matches its records" in copied_command_line("index", "build", "--verify").text
    assert f"an older index covers all {answer.shard_files} shard files\n" in copied_command_line("index-build").text
    files = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    assert [copied_command_line(*question).stdout for question in QUESTIONS] == before
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*")} == files
    (database,) = store.glob("indexes/*/*/base-000000.lmdb.zst")
    database.write_bytes(database.read_bytes()[:-1])
    for question, expected in zip(QUESTIONS, before, strict=True):
        ended = copied_command_line(*question)
        assert ended.stdout == expected
        assert "reading all results, because the index cannot be used" in ended.notes
    error = copied_command_line("index-build", "--verify", "--json", status=4).error
    assert (error["code"], "--rebuild" in error["hint"]) == ("store_corrupt", True)
    assert "matches its records" in copied_command_line("index-build", "--rebuild", "--verify").text


def test_index_build_rejects_a_missing_index_and_an_unknown_batch(copied_command_line: CommandLine) -> None:
    assert "build it with: codebatch index build" in copied_command_line("index-build", "--verify", status=2).notes
    assert "no batch" in copied_command_line("index-build", "--batch", "batch-nope", status=2).notes
