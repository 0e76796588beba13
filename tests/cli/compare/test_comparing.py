"""`diff`, `regressions` and `improvements`: their output, their exit statuses, and the names of the two sides."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

import codebatch
from codebatch.cli import cli
from codebatch.cli.answers.differences import change_row
from codebatch.cli.framework.exit import run_to_exit_status
from codebatch.compare.differences import Change
from codebatch.errors import InvalidInput, UnknownId
from codebatch.model.record import Diagnostic
from codebatch.store.batches.batch_directory import BatchId
from codebatch.store.batches.pins import assign_name
from tests.support.command_line import SCHEMAS
from tests.support.inline_workers import inline, run

_GIT = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A work tree with two commits and an uncommitted change. Each of the three states has a batch."""
    tree = tmp_path_factory.mktemp("compared")
    subprocess.run([*_GIT, "init", "-q", "-b", "trunk", tree], check=True)
    with inline(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree)
        for number, text in enumerate(("import os, re\n", "# A line more.\nimport os\nx == 1\n")):
            (tree / "a.py").write_text(text)
            subprocess.run([*_GIT, "add", "a.py"], cwd=tree, check=True)
            subprocess.run([*_GIT, "commit", "-q", "-m", str(number)], cwd=tree, check=True)
            run(tree, tree / ".codebatch", pipeline="full")
        (tree / "a.py").write_text("import os\n")
        run(tree, tree / ".codebatch", pipeline="full")
        yield tree


@pytest.fixture(autouse=True)
def _inside_tree(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)


def _output(capfd: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[str, str]:
    assert run_to_exit_status(cli, words) == status
    return capfd.readouterr()


def _json_answer(capfd: pytest.CaptureFixture[str], *words: str) -> Any:
    answer = json.loads(_output(capfd, *words, "--json")[0])
    schema = json.loads((SCHEMAS / f"{words[0]}-answer.json").read_text())
    jsonschema.validate(answer, schema)
    return answer


def test_diff_groups_findings_by_state(capfd: pytest.CaptureFixture[str]) -> None:
    output, notes = _output(capfd, "diff", "HEAD~1", "HEAD")
    assert [line.partition("Pointless")[0] for line in output.splitlines()] == [
        "2 new, 1 fixed, 1 moved",
        "new, 2",
        "  a.py:3:1: warning B015 ",
        "  a.py:3:1: error F821 Undefined name `x` [ruff]",
        "fixed, 1",
        "  a.py:1:12: warning F401 `re` imported but unused [ruff]",
    ]
    assert notes == ""
    output, notes = _output(capfd, "regressions", "HEAD~1", "HEAD", "--severity", "error")
    assert output.splitlines()[1:] == ["  a.py:3:1: error F821 Undefined name `x` [ruff]"]
    output, notes = _output(capfd, "improvements", "HEAD", "HEAD", "--exit-code")
    assert (output, notes) == ("", "none; not shown: 3 unchanged\n")
    assert _output(capfd, "regressions", "HEAD~1", "HEAD", "--code", "E999") == ("", "none\n")
    assert _output(capfd, "diff", "HEAD~1", "HEAD", "--code", "E999") == ("nothing found in either batch\n", "")


def test_json_answers_use_the_member_names_of_codebatch_1(capfd: pytest.CaptureFixture[str]) -> None:
    answer = _json_answer(capfd, "diff", "HEAD~1", "HEAD")
    assert [row["code"] for row in answer["added"]] == ["B015", "F821"]
    assert [(row["message"], row["state"]) for row in answer["removed"]] == [("`re` imported but unused", "fixed")]
    assert "reason" not in answer["removed"][0]
    assert [(row["old"]["line"], row["new"]["line"], row["by"]) for row in answer["moved"]] == [(1, 2, "message")]
    assert answer["summary"]["total_changes"] == 3
    assert answer["summary"]["states"]["moved"] == 1
    answer = _json_answer(capfd, "regressions", "HEAD~1", "HEAD")
    assert ([row["state"] for row in answer["regressions"]], answer["count"]) == (["new", "new"], 2)
    answer = _json_answer(capfd, "improvements", "HEAD~1", "HEAD")
    assert ([row["state"] for row in answer["improvements"]], answer["count"]) == (["fixed"], 1)


def test_suppressed_finding_has_its_reason_in_json() -> None:
    finding = Diagnostic(
        path="a.py", line=1, column=1, end_line=1, end_column=2, severity="error", code="c", message="m", tool="t"
    )
    row = change_row(Change("suppressed", finding, None, reason="configuration"))
    assert (row["code"], row["state"], row["reason"]) == ("c", "suppressed", "configuration")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("diff", "HEAD~1", "HEAD"), 1),
        (("diff", "HEAD", "HEAD"), 0),
        (("diff", "HEAD~1", "HEAD", "--code", "F8*"), 1),
        (("diff", "HEAD~1", "HEAD", "--code", "F9*"), 0),
        (("diff", "HEAD~1", "HEAD", "--state", "suppressed"), 0),
        (("improvements", "HEAD~1", "HEAD"), 1),
        (("regressions", "HEAD", "latest"), 0),
    ],
)
def test_exit_code_option_returns_1_if_any_row_is_listed(
    words: tuple[str, ...], status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    _output(capfd, *words, "--exit-code", status=status)


def test_diff_accepts_batches_snapshots_and_commits(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The third batch also has the second commit, but with a change. So the commit does not refer to this batch."""
    third, second, first = (
        batch_row["batch_id"]
        for batch_row in sorted(json.loads(_output(capfd, "batch", "list", "--json")[0]), key=_batch_id)[::-1]
    )
    snapshot = json.loads(_output(capfd, "batch", "show", first, "--json")[0])["snapshot_id"]
    for words, sides in {
        (): (second, third),
        ("latest~2",): (first, third),
        ("HEAD~1", "trunk"): (first, second),
        (snapshot, second): (first, second),
        ("latest~1", "--base-store", str(tree / ".codebatch")): (second, third),
        ("--base-store", str(tree / ".codebatch")): (third, third),
    }.items():
        answer = _json_answer(capfd, "diff", *words)
        assert (answer["old_batch_id"], answer["new_batch_id"]) == sides


def test_python_compare_accepts_the_same_bases_as_the_command_line(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`compare` accepts every base that the command line accepts. The caller need not open it first."""
    third, second, first = (
        batch_row["batch_id"]
        for batch_row in sorted(json.loads(_output(capfd, "batch", "list", "--json")[0]), key=_batch_id)[::-1]
    )
    snapshot = json.loads(_output(capfd, "batch", "show", first, "--json")[0])["snapshot_id"]
    with codebatch.open() as store:
        with store.store.writing():
            assign_name(store.store, BatchId(first), "first")
        batch = store.batch()
        for named in (first, "@first", "latest~2", snapshot, "HEAD~1", store.batch(first)):
            comparison = batch.compare(named)
            assert (comparison.old.question.batch.id, comparison.new.question.batch.id) == (first, third)
            assert [*comparison.differences()] == [*batch.compare(store.batch(first)).differences()] != []
        assert store.side("trunk").id == second
        assert b"fixed" in codebatch.make_report(batch, older="@first").result
        assert codebatch.make_export(batch, "rdjson", than="@first").result.count == 0
        for wrong, error in ((None, InvalidInput), (3, InvalidInput), ("@nobody", UnknownId), ("snap-0", UnknownId)):
            with pytest.raises(error):
                batch.compare(wrong)  # type: ignore[arg-type]  # as in code without type checks
    with pytest.raises(InvalidInput, match="is closed"):
        batch.compare("@first")


def test_diff_compares_files_of_snapshots_without_a_batch(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ids = []
    for files in ({"a.py": "x = 1\n", "gone.py": "1\n"}, {"a.py": "x = 2\n", "new.py": "2 + 2\n"}):
        for row in tmp_path.glob("*.py"):
            row.unlink()
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        ids.append(json.loads(_output(capfd, "snapshot", ".", "--json")[0])["snapshot_id"])
    assert ids[0] != ids[1]
    answer = _json_answer(capfd, "diff", *ids, "--kind", "file")
    assert (answer["old_batch_id"], answer["new_batch_id"], answer["complete"]) == (*ids, True)
    assert [row["path"] for row in answer["added"]] == ["new.py"]
    assert [row["path"] for row in answer["removed"]] == ["gone.py"]
    assert [row["new"]["path"] for row in answer["changed"]] == ["a.py"]
    with inline():
        run(tmp_path, tmp_path / ".codebatch")
    assert _json_answer(capfd, "diff", ids[0], "latest", "--kind", "file")["summary"]["total_changes"] == 3
    assert "removed" in _output(capfd, "diff", ids[0], ids[1], "--kind", "file", "--explain")[0]
    for words in ((), ("--kind", "symbol"), ("--kind", "file", "--kind", "symbol"), ("--kind", "file", "--rerun-base")):
        assert "no batch of the snapshot" in _output(capfd, "diff", ids[0], ids[1], *words, status=2)[1]
    with codebatch.open() as store:
        assert len([*store.side(ids[1], of_files=True).compare(ids[0], kind="file").differences()]) == 3
        with pytest.raises(UnknownId, match="no batch of the snapshot"):
            store.batch().compare(ids[0])


def _batch_id(row: dict[str, str]) -> str:
    return row["batch_id"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("nosuch",), "no batch or commit 'nosuch'"),
        (("--kind", "nosuch"), "'nosuch' is not one of"),
        (("--kind", "ast"), "'ast' is not one of"),
        (("latest", "latest", "--task", "nosuch"), "the batch has no task 'nosuch'"),
        (("snap-0",), "no snapshot"),
        (("--json", "-o", "csv"), "-o csv cannot be used with --json"),
    ],
)
def test_diff_rejects_invalid_arguments(
    words: tuple[str, ...], problem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert problem in _output(capfd, "diff", *words, status=2)[1]


def test_diff_writes_csv_and_jsonl(capfd: pytest.CaptureFixture[str]) -> None:
    rows = _output(capfd, "diff", "HEAD~1", "HEAD", "-o", "csv", "--limit", "1")
    assert rows[0].splitlines()[0].startswith("state,kind,path,line,column")
    assert rows[0].splitlines()[0].endswith(",tool,also,cell,cell_line,reason")
    assert rows[0].splitlines()[1].startswith("new,diagnostic,a.py,3,1")
    assert rows[1] == "2 more; show them with --limit 3\n"
    (row,) = _output(capfd, "regressions", "HEAD~1", "HEAD", "-o", "jsonl", "--code", "F821")[0].splitlines()
    assert json.loads(row)["state"] == "new"


def test_rerun_base_makes_results_of_a_changed_task_comparable(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The current version of the task reports the same finding in both batches."""
    own = tree.parent / "own"
    (own / ".git").mkdir(parents=True)
    (own / "codebatch.toml").write_text("[tasks.own]\npython = 'own.py:task'\n")
    module = "from codebatch_workers.api import Diagnostic\ndef task(file):\n    return [{}][:file.path == b'a.py']\n"
    position = "path='a.py', line=1, column=1, end_line=1, end_column=2"
    record = f"Diagnostic({position}, severity='error', code='{{}}', message='', tool='own')"
    with inline(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(own)
        for code in ("O1", "O2"):
            (own / "own.py").write_text(module.format(record.format(code)))
            (own / "a.py").write_text(f"{code} = 1\n")
            run(own, own / ".codebatch", configured=own, pipeline="full")
        counts = {}
        for words in ((), ("--rerun-base",), ("--rerun-base",)):
            counts[words] = _json_answer(capfd, "diff", "latest~1", *words)["summary"]["states"]
        assert {state for state, number in counts[()].items() if number} == {"not_comparable"}
        assert {state for state, number in counts[("--rerun-base",)].items() if number} == {"unchanged"}
        assert len([*(own / ".codebatch" / "batches").glob("batch-*")]) == 3
        notes = _output(capfd, "diff", "--rerun-base", "--base-store", ".codebatch", status=2)[1]
        assert "--rerun-base cannot be used with --base-store" in notes


def test_diff_reports_a_metric_that_dropped_to_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    branch, plain = "def f(x):\n    if x: return 1\n    return 2\n", "def f(x):\n    return 2\n"
    with inline():
        for text in (branch, plain):
            (tmp_path / "b.py").write_text(text)
            run(tmp_path, tmp_path / ".codebatch", pipeline="full")
    monkeypatch.chdir(tmp_path)
    answer = _json_answer(capfd, "diff", "--kind", "metric")
    values = {
        (row["state"], row["new"].get("symbol", ""), row["old"]["value"], row["new"]["value"])
        for row in answer["changed"]
        if row["new"]["metric"] == "cognitive"
    }
    assert values == {("changed", "", 1, 0), ("improved", "f", 1, 0)}
    # The zero is not a record of the batch.
    back = _json_answer(capfd, "diff", "latest", "latest~1", "--kind", "metric")
    states = answer["summary"]["states"]
    assert back["summary"]["states"] == states | {"improved": 0, "worsened": states["improved"]}
    assert (
        _output(capfd, "improvements", "--kind", "metric", "--metric", "nesting", "--output", "csv")[0].count(",0,")
        == 1
    )
