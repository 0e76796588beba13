"""Batches of files and batches of commands: what each command does with which, as SPEC.md "Kinds of batches" says."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import codebatch
from codebatch.cli import cli
from codebatch.cli.framework.exit import run_to_exit_status
from codebatch.errors import WrongBatchKind
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.work_batch import Work
from codebatch.store.batches.batch_directory import iter_batches
from codebatch.store.batches.store_directory import open_store
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.clock import wall_ns
from codebatch.system.files.files import RealFiles
from tests.cli.conftest import Ran
from tests.cli.test_interface import MORE_WORDS, answer_of, commands_alone
from tests.specification import SPEC, read_rows
from tests.support.command_line import CommandLine, write

POSITIONAL = {"verify", "explain-miss", "diff", "regressions", "improvements", "check", "batch-show", "pin", "unpin"}
"""They name a batch by an argument; the others by --batch."""
WORDS = {
    "ast": "src/main.py",
    "baseline-create": "made.json",
    "baseline-update": "made.json",
    "diff": "",
    "gate-run": "outputs-match",
    "export": "sarif -o made",
    "import": f"sarif {SPEC} --as eslint",
    "improvements": "",
    "regressions": "",
    "report": "-o made",
    "run-shard": "--task lint --shard 0",
    "verify": "",
    "work-answer": "first done",
    "work-retry": "first --no-run",
    "work-set": "max-parallel=2",
    "work-skip": "first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """A store with an analysis, and a work batch that is newer."""

    store: Path
    analysis: str
    work: str
    work_list: str
    directory: Path


@pytest.fixture(scope="module")
def both(ran: Ran, tmp_path_factory: pytest.TempPathFactory) -> Both:
    directory = tmp_path_factory.mktemp("both")
    store = directory / "store"
    shutil.copytree(ran.store, store, symlinks=True)
    opened = open_store(RealFiles(), store)
    order = (CommandId("first"), CommandId("second"))
    commands = [Command(id=id_, run=f"echo {id_} >>{directory}/witness") for id_ in order]
    # Of the same root as the analysis, which it is not to be taken for.
    listed = Work(source="work.toml", root=os.fsencode(ran.project), order=order)
    with opened.writing():
        made = make_work_batch(opened, commands, listed, at_ns=wall_ns())
    return Both(store=store, analysis=ran.batch_id, work=made.id, work_list=made.about.snapshot_id, directory=directory)


def rows() -> list[tuple[list[str], str, str]]:
    """Return the table: commands (by the names of their answers), what they accept, the kind of batch of `latest`."""
    cells = read_rows("Kinds of batches")[1:]
    listed = [
        ([answer_of(tuple(name.split())) for name in re.findall(r"`([^`]+)`", names)], accepted, latest.strip("| "))
        for names, accepted, latest in cells
    ]
    others = sorted(commands_alone().keys() - {name for names, _, _ in listed for name in names})
    return [(names or others, accepted, latest) for names, accepted, latest in listed]


def commands_that_take(kind: str) -> list[str]:
    """Return the names of the commands in the row of a kind."""
    return [name for names, accepted, _ in rows() if accepted == kind for name in names]


def words_of(name: str, batch: str) -> list[str]:
    """A command line that asks a batch, or acts on it."""
    more = WORDS.get(name, MORE_WORDS.get(name, "")).split()
    named = [batch] if name in POSITIONAL else ["--batch", batch]
    return [*commands_alone()[name], *(named + more if name in POSITIONAL else more + named)]


def error_of(both: Both, name: str, batch: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    status = run_to_exit_status(cli, [*words_of(name, batch), "--store", str(both.store), "--json"])
    told = capsys.readouterr()
    assert (status, told.out) == (2, ""), told.err
    error = json.loads(told.err.splitlines()[-1])["error"]
    assert isinstance(error, dict)
    return error


def test_kinds_table_has_every_command_once() -> None:
    told = [name for names, _, _ in rows() for name in names]
    assert sorted(told) == sorted(commands_alone())


@pytest.mark.parametrize("name", commands_that_take("analyses"))
def test_analysis_command_rejects_a_work_batch(
    both: Both, ran: Ran, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ran.project)
    error = error_of(both, name, both.work, capsys)
    assert error["code"] == "wrong_kind"
    assert f"codebatch status --batch {both.work}" in str(error["hint"])
    assert not (both.directory / "witness").exists()
    assert not list((both.store / "batches" / both.work / "leases").iterdir())


@pytest.mark.parametrize("name", commands_that_take("work batches"))
def test_work_command_rejects_an_analysis(both: Both, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(both, name, both.analysis, capsys)["code"] == "wrong_kind"


@pytest.mark.parametrize("words", ["snapshot show", "files --snapshot", "batch init --snapshot"])
def test_task_list_snapshot_is_rejected_as_a_source_tree(
    both: Both, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run_to_exit_status(cli, [*words.split(), both.work_list, "--store", str(both.store), "--json"])
    assert (status, json.loads(capsys.readouterr().err)["error"]["code"]) == (2, "wrong_kind")


def test_latest_resolves_to_the_kind_that_the_command_accepts(both: Both, ran: Ran) -> None:
    line = CommandLine(ran.project, {"CODEBATCH_STORE": str(both.store)})
    assert line("status", "--json").json["batch_id"] == both.work
    assert line("status", "--batch", "latest", "--json").json["batch_id"] == both.work
    for words in ("summary", "tasks"):
        assert (
            line(words, "--json", "--batch", "latest").stdout == line(words, "--json", "--batch", both.analysis).stdout
        )
    assert line("batch", "show", "--json").json["batch_id"] == both.analysis
    assert line("batch", "show", "latest", "--json").json["batch_id"] == both.analysis
    assert line("batch", "show", both.work, "--json").json["status"] == "PENDING"
    assert line("snapshot", "show", "--json").json["snapshot_id"] != both.work_list
    assert line("work", "log", "--json").json == []
    listed = line("batch", "list", "--json").json
    assert [(row["batch_id"], row["status"]) for row in listed] == [
        (both.analysis, "COMPLETED"),
        (both.work, "PENDING"),
    ]
    assert [row["batch_id"] for row in line("batch", "list", "--pipeline", "work", "--json").json] == [both.work]
    assert [row["batch_id"] for row in line("batch", "list", "--active", "--json").json] == [both.work]


def test_batch_lookup_returns_analyses_by_default(both: Both, ran: Ran) -> None:
    store = open_store(RealFiles(), both.store)
    assert [batch.id for batch in iter_batches(store)] == [both.analysis]
    assert [batch.id for batch in iter_batches(store, kind="work")] == [both.work]
    with codebatch.open(both.store, project=ran.project) as opened:
        assert opened.batch().id == both.analysis
        with pytest.raises(WrongBatchKind):
            opened.batch(both.work)


def test_run_ignores_a_newer_work_batch_of_the_same_root(both: Both, tmp_path: Path) -> None:
    """The tree is that of the project, and so is the root of the commands: nothing of theirs is taken over."""
    line = CommandLine(tmp_path)
    write(tmp_path / "project" / "a.py", "import os\n")
    before = line("run", "project", "--json").json
    opened = open_store(RealFiles(), tmp_path / ".codebatch")
    one = CommandId("one")
    listed = Work(source="work.toml", root=os.fsencode(tmp_path / "project"), order=(one,))
    with opened.writing():
        made = make_work_batch(opened, [Command(id=one, run="true")], listed, at_ns=wall_ns())
    assert line("run", "project", "--json").json["action"] == "up to date"
    write(tmp_path / "project" / "a.py", "import os, sys\n")
    after = line("run", "project", "--json").json
    bases = json.loads((tmp_path / ".codebatch" / "batches" / after["batch_id"] / "batch.json").read_bytes())["bases"]
    assert bases == [before["batch_id"]]
    assert line("diff", "--json").json["old_batch_id"] == before["batch_id"]
    for words in (("gate", "bundle", "all"), ("diagnose",), ("gc",)):
        line(*words)
    assert made.id in {row["batch_id"] for row in line("batch", "list", "--json").json}


def test_analysis_commands_fail_in_a_store_with_only_work_batches(both: Both, tmp_path: Path) -> None:
    opened = tmp_path / "store"
    line = CommandLine(tmp_path, {"CODEBATCH_STORE": str(opened)})
    line("init", opened)
    store = open_store(RealFiles(), opened)
    one = CommandId("one")
    with store.writing():
        make_work_batch(
            store, [Command(id=one, run="true")], Work(source="w", root=b"/", order=(one,)), at_ns=wall_ns()
        )
    for command in ("summary", "verify", "check"):
        error = line(command, "--json", status=3).error
        assert error["code"] == "no_batch"
        assert error["message"].startswith(f"no analysis of project {tmp_path} in the store ")
    assert line("snapshot", "show", "--json", status=2).error["code"] == "unknown_id"
    assert line("rules", "show", "F401", "--json").json.get("batch_id") is None
