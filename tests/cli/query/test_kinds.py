"""Analyses and work batches: the kinds that each command accepts (SPEC.md "Kinds of batches")."""

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
"""Commands that name a batch by an argument. The others use --batch."""
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
    "join": "part.cbpart",
    "run-shard": "--task lint --shard 0",
    "verify": "",
    "work-add": "--task new=true",
    "work-answer": "first done",
    "work-retry": "first --no-run",
    "work-set": "max-parallel=2",
    "work-skip": "first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedStore:
    """A store with an analysis and a newer work batch."""

    store: Path
    analysis: str
    work: str
    work_list: str
    directory: Path


@pytest.fixture(scope="module")
def mixed_store(ran: Ran, tmp_path_factory: pytest.TempPathFactory) -> MixedStore:
    directory = tmp_path_factory.mktemp("both")
    store = directory / "store"
    shutil.copytree(ran.store, store, symlinks=True)
    opened = open_store(RealFiles(), store)
    order = (CommandId("first"), CommandId("second"))
    commands = [Command(id=id_, run=f"echo {id_} >>{directory}/witness") for id_ in order]
    # The root is that of the analysis, but the work batch must not be taken for an analysis.
    listed = Work(source="work.toml", root=os.fsencode(ran.project), order=order)
    with opened.writing():
        work_batch = make_work_batch(opened, commands, listed, at_ns=wall_ns())
    return MixedStore(
        store=store,
        analysis=ran.batch_id,
        work=work_batch.id,
        work_list=work_batch.about.snapshot_id,
        directory=directory,
    )


def rows() -> list[tuple[list[str], str, str]]:
    """Return the table: commands (by the names of their answers), accepted kinds, and the kind of `latest`."""
    cells = read_rows("Kinds of batches")[1:]
    listed = [
        ([answer_of(tuple(name.split())) for name in re.findall(r"`([^`]+)`", names)], accepted, latest.strip("| "))
        for names, accepted, latest in cells
    ]
    others = sorted(commands_alone().keys() - {name for names, _, _ in listed for name in names})
    return [(names or others, accepted, latest) for names, accepted, latest in listed]


def commands_that_take(kind: str) -> list[str]:
    """Return the names of the commands that accept a kind of batch."""
    return [name for names, accepted, _ in rows() if accepted == kind for name in names]


def words_of(name: str, batch: str) -> list[str]:
    """Return a command line that queries or changes a batch."""
    more = WORDS.get(name, MORE_WORDS.get(name, "")).split()
    reference = [batch] if name in POSITIONAL else ["--batch", batch]
    return [*commands_alone()[name], *(reference + more if name in POSITIONAL else more + reference)]


def error_of(mixed_store: MixedStore, name: str, batch: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    status = run_to_exit_status(cli, [*words_of(name, batch), "--store", str(mixed_store.store), "--json"])
    output = capsys.readouterr()
    assert (status, output.out) == (2, ""), output.err
    error = json.loads(output.err.splitlines()[-1])["error"]
    assert isinstance(error, dict)
    return error


def test_kinds_table_has_every_command_once() -> None:
    names_in_table = [name for names, _, _ in rows() for name in names]
    assert sorted(names_in_table) == sorted(commands_alone())


@pytest.mark.parametrize("name", commands_that_take("analyses"))
def test_analysis_command_rejects_a_work_batch(
    mixed_store: MixedStore, ran: Ran, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ran.project)
    error = error_of(mixed_store, name, mixed_store.work, capsys)
    assert error["code"] == "wrong_kind"
    assert f"codebatch status --batch {mixed_store.work}" in str(error["hint"])
    assert not (mixed_store.directory / "witness").exists()
    assert not list((mixed_store.store / "batches" / mixed_store.work / "leases").iterdir())


@pytest.mark.parametrize("name", commands_that_take("work batches"))
def test_work_command_rejects_an_analysis(
    mixed_store: MixedStore, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert error_of(mixed_store, name, mixed_store.analysis, capsys)["code"] == "wrong_kind"


@pytest.mark.parametrize("words", ["snapshot show", "files --snapshot", "batch init --snapshot"])
def test_task_list_snapshot_is_rejected_as_a_source_tree(
    mixed_store: MixedStore, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run_to_exit_status(
        cli, [*words.split(), mixed_store.work_list, "--store", str(mixed_store.store), "--json"]
    )
    assert (status, json.loads(capsys.readouterr().err)["error"]["code"]) == (2, "wrong_kind")


def test_latest_resolves_to_the_kind_that_the_command_accepts(mixed_store: MixedStore, ran: Ran) -> None:
    line = CommandLine(ran.project, {"CODEBATCH_STORE": str(mixed_store.store)})
    assert line("status", "--json").json["batch_id"] == mixed_store.work
    assert line("status", "--batch", "latest", "--json").json["batch_id"] == mixed_store.work
    for words in ("summary", "tasks"):
        assert (
            line(words, "--json", "--batch", "latest").stdout
            == line(words, "--json", "--batch", mixed_store.analysis).stdout
        )
    assert line("batch", "show", "--json").json["batch_id"] == mixed_store.analysis
    assert line("batch", "show", "latest", "--json").json["batch_id"] == mixed_store.analysis
    assert line("batch", "show", mixed_store.work, "--json").json["status"] == "PENDING"
    assert line("snapshot", "show", "--json").json["snapshot_id"] != mixed_store.work_list
    assert line("work", "log", "--json").json == []
    listed = line("batch", "list", "--json").json
    assert [(row["batch_id"], row["status"]) for row in listed] == [
        (mixed_store.analysis, "COMPLETED"),
        (mixed_store.work, "PENDING"),
    ]
    assert [row["batch_id"] for row in line("batch", "list", "--pipeline", "work", "--json").json] == [mixed_store.work]
    assert [row["batch_id"] for row in line("batch", "list", "--active", "--json").json] == [mixed_store.work]


def test_batch_lookup_returns_analyses_by_default(mixed_store: MixedStore, ran: Ran) -> None:
    store = open_store(RealFiles(), mixed_store.store)
    assert [batch.id for batch in iter_batches(store)] == [mixed_store.analysis]
    assert [batch.id for batch in iter_batches(store, kind="work")] == [mixed_store.work]
    with codebatch.open(mixed_store.store, project=ran.project) as opened:
        assert opened.batch().id == mixed_store.analysis
        with pytest.raises(WrongBatchKind):
            opened.batch(mixed_store.work)


def test_run_ignores_a_newer_work_batch_of_the_same_root(mixed_store: MixedStore, tmp_path: Path) -> None:
    """The root of the commands is the project, but a run reuses nothing from the work batch."""
    line = CommandLine(tmp_path)
    write(tmp_path / "project" / "a.py", "import os\n")
    before = line("run", "project", "--json").json
    opened = open_store(RealFiles(), tmp_path / ".codebatch")
    one = CommandId("one")
    listed = Work(source="work.toml", root=os.fsencode(tmp_path / "project"), order=(one,))
    with opened.writing():
        work_batch = make_work_batch(opened, [Command(id=one, run="true")], listed, at_ns=wall_ns())
    assert line("run", "project", "--json").json["action"] == "up to date"
    write(tmp_path / "project" / "a.py", "import os, sys\n")
    after = line("run", "project", "--json").json
    bases = json.loads((tmp_path / ".codebatch" / "batches" / after["batch_id"] / "batch.json").read_bytes())["bases"]
    assert bases == [before["batch_id"]]
    assert line("diff", "--json").json["old_batch_id"] == before["batch_id"]
    for words in (("gate", "bundle", "all"), ("diagnose",), ("gc",)):
        line(*words)
    assert work_batch.id in {row["batch_id"] for row in line("batch", "list", "--json").json}


def test_analysis_commands_fail_in_a_store_with_only_work_batches(mixed_store: MixedStore, tmp_path: Path) -> None:
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
