"""Parts that are joined give the bytes of a plain run, for any division, order, subset and repetition of parts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codebatch.coordinator.analysis.execution import NOTHING_EXECUTED
from codebatch.store.part_files import read_part
from tests.bad_input.test_store_fuzz import ask
from tests.support.command_line import write
from tests.support.inline_workers import InlineCrew
from tests.support.parts import (
    CONTENTS,
    NAMES_OF_A_TREE,
    SETTINGS,
    answer_of_part,
    ask_in,
    decode_answer,
    make_tree,
    read_outputs,
    read_plain_outputs,
    run_part,
)

pytestmark = pytest.mark.usefixtures("inline_runs")

DIRECTORIES = st.sampled_from(["", "d/", "d/e/"])
NAMES = st.builds("{}{}.{}".format, DIRECTORIES, st.sampled_from(["a", "b", "fail", "x"]), st.sampled_from([*CONTENTS]))
TREES = st.lists(NAMES, min_size=1, max_size=14, unique=True)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(names=TREES, divisions=st.lists(st.integers(1, 6), min_size=1, max_size=2), data=st.data())
def test_joined_parts_equal_a_plain_run(
    names: list[str], divisions: list[int], data: st.DataObject, tmp_path: Path
) -> None:
    root = tmp_path / "example"
    shutil.rmtree(root, ignore_errors=True)
    tree = make_tree(root / "tree", names)
    (root / "parts").mkdir()
    plain = read_plain_outputs(tree, root / "plain")
    choices = [f"{number}/{count}" for count in divisions for number in range(1, count + 1)]
    chosen = data.draw(st.lists(st.sampled_from(choices), min_size=1, max_size=5))
    store = st.sampled_from(["plain", "shared", "own", "fresh"])
    parts = []
    for number, choice in enumerate(chosen):
        name = data.draw(store)
        parts.append(run_part(tree, choice, root / (f"{name}{number}" if name == "fresh" else name), root / "parts"))
    # The bytes of a part do not depend on the store in which it ran.
    assert len({path.name for path in parts}) == len(set(chosen)) == len(list((root / "parts").iterdir()))
    ask_in(tree, "join", *map(str, parts), ".", "--store", str(root / "joined"), status=None)
    assert read_outputs(root / "joined") == plain
    ask_in(tree, "join", *map(str, reversed(parts)), "--store", str(root / "joined"), status=None)
    assert read_outputs(root / "joined") == plain


def test_nothing_is_merged_and_no_project_task_runs_in_a_part(tree: Path, tmp_path: Path) -> None:
    answer = decode_answer(
        ask_in(tree, "run", "--part", "1/1", ".", "--store", str(tmp_path / "store"), "--part-output", str(tmp_path))
    )
    assert (answer["failures"], answer["part"]) == (1, "1/1")
    assert answer["executed"] == answer["results"] == answer["files"] * 6
    (batch,) = (tmp_path / "store").glob("batches/batch-*")
    assert not list((batch / "outputs").iterdir())
    assert not [path.name for path in (batch / "outcomes").iterdir() if "project" in path.name]


def test_the_same_command_again_writes_the_same_file_and_executes_nothing(tree: Path, tmp_path: Path) -> None:
    first = run_part(tree, "2/3", tmp_path / "store", tmp_path)
    answer = decode_answer(
        ask_in(tree, "run", "--part", "2/3", ".", "--store", str(tmp_path / "store"), "--part-output", str(tmp_path))
    )
    assert answer["file"] == str(first)
    assert len(list(tmp_path.glob("*.cbpart"))) == 1


def test_several_parts_in_one_file(tree: Path, parts: list[Path], tmp_path: Path) -> None:
    both = read_part(run_part(tree, "2-3/3", tmp_path / "store", tmp_path))
    assert {shard.id for shard in both.header.shards} == {
        shard.id for path in parts[1:] for shard in read_part(path).header.shards
    }


def test_more_parts_than_shards_give_empty_parts(tree: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree)
        answer = ask(
            ("run", "--part", "50/50", ".", "--store", str(tmp_path / "store"), "--part-output", str(tmp_path))
        )
    assert (answer.status, "the part is empty" in answer.stderr) == (0, True)
    (path,) = tmp_path.glob("*.cbpart")
    assert read_part(path).header.shards == ()
    ask_in(tree, "join", str(path), ".", "--store", str(tmp_path / "joined"), status=3)


def test_a_plan_with_syntax_trees_has_no_parts(tree: Path, tmp_path: Path) -> None:
    write(tree / "codebatch.toml", SETTINGS + "[tasks.parse]\nemit_ast = true\n")
    error = json.loads(ask_in(tree, "run", "--part", "1/2", ".", "--store", str(tmp_path / "s"), status=2).stderr)
    assert "stores syntax trees" in error["error"]["message"]
    assert not list((tmp_path / "s").glob("batches/batch-*"))


@pytest.mark.parametrize(
    "words",
    [
        ("--batch", "latest"),
        ("--name", "x"),
        ("--task", "parse"),
        ("--emit-ast",),
        ("--dry-run",),
    ],
)
def test_options_that_cannot_be_used_with_a_part(tree: Path, words: tuple[str, ...]) -> None:
    error = json.loads(ask_in(tree, "run", "--part", "1/2", *words, status=2).stderr)["error"]
    assert error["message"] == f"{words[0]} cannot be used with --part"


def test_snapshots_exclude_part_files(tree: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        ask_in(tree, "run", "--part", f"{number}/2")
    parts = sorted(path.name for path in tree.glob("*.cbpart"))
    assert len(parts) == 2
    assert decode_answer(ask_in(tree, "join", "--strict", *parts, status=3))["action"] == "resumed"
    assert "it is a codebatch report or part" in ask_in(tree, "files", "--why", parts[0]).stdout.decode()


def test_a_part_that_a_signal_ended_has_no_file(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InlineCrew, "exit_status", 143)
    words = ("run", "--part", "1/2", ".", "--store", str(tmp_path / "store"), "--part-output", str(tmp_path))
    answer = decode_answer(ask_in(tree, *words, status=143))
    assert (answer["file"], list(tmp_path.glob("*.cbpart"))) == (None, [])


def test_a_part_with_missing_results_has_no_file(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example, another host may have leases on its units."""
    monkeypatch.setattr("codebatch.operations.runs.execution.execute", lambda *_, **__: NOTHING_EXECUTED)
    words = ("run", "--part", "1/2", ".", "--store", str(tmp_path / "store"), "--part-output", str(tmp_path))
    error = json.loads(ask_in(tree, *words, status=3).stderr)["error"]
    assert error["code"] == "batch_incomplete"
    assert "of the part are missing" in error["message"]
    assert list(tmp_path.glob("*.cbpart")) == []


@pytest.mark.parametrize(
    ("part", "note"),
    [("1/2", "less than 20 s of estimated work; a run without --part is better"), ("1/1", ""), ("1-2/2", "better")],
)
def test_small_parts_get_a_note(tree: Path, tmp_path: Path, part: str, note: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree)
        answer = ask(("run", "--part", part, ".", "--store", str(tmp_path / "store"), "--part-output", str(tmp_path)))
    assert (note in answer.stderr, "better" in answer.stderr) == (True, bool(note))


def test_the_note_names_a_better_number_of_parts(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.coordinator.analysis.costs.COST_PER_CPU_SECOND", 500)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree)
        words = ("run", "--part", "1/50", ".", "--store", str(tmp_path / "store"), "--part-output", str(tmp_path))
        answer = ask(words)
    assert "better: --part K/2" in answer.stderr


def test_a_part_of_a_complete_batch_is_written_from_its_outputs(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", NAMES_OF_A_TREE, SETTINGS.partition("[tasks.marked]")[0])
    fresh = run_part(tree, "1/2", tmp_path / "fresh", tmp_path)
    store = tmp_path / "store"
    ask_in(tree, "run", ".", "--store", str(store))
    for _ in range(2):
        answer = answer_of_part(tree, "1/2", store, tmp_path)
        assert (answer["file"], answer["executed"]) == (str(fresh), 0)
        ask_in(tree, "gc", "--store", str(store))  # Settles the batch.
    assert not list(store.glob("batches/*/outcomes"))


def test_results_beyond_a_limit_are_not_written(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.store.external_outcomes.EXTERNAL_RECORD_BYTES_MAX", 10)
    words = ("run", "--part", "1/2", ".", "--store", str(tmp_path / "store"), "--part-output", str(tmp_path))
    error = json.loads(ask_in(tree, *words, status=2).stderr)["error"]
    assert "cannot be in a part file: an outcome with too many records" in error["message"]
    assert [path.name for path in tmp_path.iterdir() if "cbpart" in path.name] == []


def test_a_part_without_files_is_an_error_and_makes_no_store(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    store = tmp_path / "store"
    ask_in(tmp_path / "empty", "run", "--part", "1/2", ".", "--store", str(store), status=5)
    assert not store.exists()
    answer = decode_answer(
        ask_in(tmp_path / "empty", "run", "--part", "1/2", ".", "--store", str(store), "--allow-empty")
    )
    assert (answer["files"], answer["shards"]) == (0, 0)
    joined = ask_in(tmp_path / "empty", "join", answer["file"], ".", "--store", str(store), "--allow-empty")
    assert decode_answer(joined)["status"] == "COMPLETED"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("run", "--part", "3"), "--part '3': it must be K/N"),
        (("run", "--part", "auto/x"), "it must be K/N"),
        (("run", "--part-output", "x"), "--part-output is used without --part"),
        (("run", "--part", "1/2", "--part-output", "none/x"), "cannot write the part file 'none/x'"),
        (("run", "--part", "1/2", "--part-output", ""), "cannot write the part file ''"),
        (("run", "--part", "1/2", "--part-output", "/dev/null"), "cannot write the part file '/dev/null'"),
        (("join", "."), "no part file was given"),
        (("join", "/dev/zero"), "it is not a regular file"),
        (("join", "a.py"), "'a.py' is not a part file"),
    ],
)
def test_invalid_arguments_are_refused_before_anything_is_written(
    tree: Path, words: tuple[str, ...], problem: str
) -> None:
    error = json.loads(ask_in(tree, *words, status=2).stderr)["error"]
    assert (error["code"], problem in error["message"]) == ("invalid_input", True), error
    assert not (tree / ".codebatch").exists()


def test_a_part_is_written_to_the_named_file(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"older")
    words = ("run", "--part", "1/2", ".", "--store", str(tmp_path / "store"), "--part-output", str(tmp_path / "x"))
    assert decode_answer(ask_in(tree, *words))["file"] == str(tmp_path / "x")
    assert read_part(tmp_path / "x").header.part.text == "1/2"


def test_failures_are_reported_even_if_notes_are_not(tree: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree)
        words = ("run", "--part", "1/1", ".", "-q", "--store", str(tmp_path / "store"), "--part-output", str(tmp_path))
        answer = ask(words)
    (path,) = tmp_path.glob("*.cbpart")
    assert answer.status == 0
    assert answer.stdout.decode().splitlines()[0] == str(path)
    assert b"part 1/1: 14 files, 84 results, " in answer.stdout
    assert "1 of 84 results failed; see: codebatch errors --batch batch-" in answer.stderr


def test_parts_of_a_small_project_are_balanced_and_join_a_store_with_a_plain_run(tmp_path: Path) -> None:
    """The plain run has two shards, so its batch cannot take the parts. Its results are reused nevertheless."""
    names = [f"d{number % 7}/m{number}.py" for number in range(300)]
    tree = make_tree(tmp_path / "tree", names, "pipeline = 'parse'\n")
    stores = [tmp_path / f"store{number}" for number in range(4)]
    ask_in(tree, "run", ".", "--store", str(stores[0]))
    digest = decode_answer(ask_in(tree, "status", "--store", str(stores[0])))["result_digest"]
    answers = [answer_of_part(tree, f"{number}/4", store, tmp_path) for number, store in enumerate(stores, 1)]
    assert min(answer["files"] for answer in answers) > 0.5 * max(answer["files"] for answer in answers)
    assert answers[0]["executed"] == 0
    paths = [answer["file"] for answer in answers]
    for store in (stores[0], tmp_path / "joined"):
        assert decode_answer(ask_in(tree, "join", "--missing", *paths, ".", "--store", str(store)))["parts"] == []
        joined = decode_answer(ask_in(tree, "join", "--strict", *paths, ".", "--store", str(store)))
        assert joined["executed"] == 0
        assert decode_answer(ask_in(tree, "status", "--store", str(store)))["result_digest"] == digest
        again = decode_answer(ask_in(tree, "run", ".", "--store", str(store)))
        assert (again["batch_id"], again["executed"]) == (joined["batch_id"], 0)
