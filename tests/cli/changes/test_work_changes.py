"""`changes` and `apply` for the isolated tasks of a task list."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec import UNSET

from codebatch import open as codebatch_open
from codebatch import work
from codebatch.errors import InvalidInput
from codebatch.model.work.application import AppliedChangeSet, ChangesApplication
from codebatch.model.work.command import CommandId
from codebatch.store.batches.pins import pinned_ids
from codebatch.store.work.applications import ApplicationStore
from tests.changes.projects import Edits, make_changed_batch
from tests.changes.work_batches import IsolatedBatch, make_isolated_batch
from tests.support.command_line import CommandLine, check_schema

FILES = {b"a.py": b"a\n", b"d/b.py": b"b\n"}


def batch_of(directory: Path, *tasks: str, needs: tuple[tuple[str, str], ...] = ()) -> IsolatedBatch:
    """Make a batch of isolated tasks in a project."""
    return make_isolated_batch(directory / ".codebatch", directory, tasks, needs=needs, files=FILES)


def contents(root: Path) -> dict[str, bytes]:
    """Return the content of each Python file of a project."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.py"))}


def patch_of(codebatch: CommandLine, *tasks: str) -> str:
    """Return the patch of the changes of some tasks, by default of all."""
    return "".join(f"{line}\n" for line in codebatch("changes", *tasks, "--patch").lines)


def applications(made: IsolatedBatch) -> list[ChangesApplication]:
    return ApplicationStore(made.batch.files, made.batch.root).read()


def applied(made: IsolatedBatch) -> list[str]:
    """Return the tasks whose changes are applied."""
    return sorted(each.task for each in ApplicationStore(made.batch.files, made.batch.root).read_applied())


@pytest.fixture
def made(tmp_path: Path) -> IsolatedBatch:
    """A batch with two tasks that are done and one that failed."""
    made = batch_of(tmp_path, "fix", "new", "bad")
    made.end("fix", {b"a.py": (b"a\n", b"A\nA\n")})
    made.end("new", {b"d/b.py": (b"b\n", None), b"new.py": (None, b"new\n")})
    made.end("bad", {b"a.py": (b"a\n", b"bad\n")}, type_="failed")
    return made


AFTER = {"a.py": b"A\nA\n", "new.py": b"new\n"}
BEFORE = {"a.py": b"a\n", "d/b.py": b"b\n"}


def test_changes_of_all_attempts_are_listed_with_their_states(tmp_path: Path, made: IsolatedBatch) -> None:
    ended = CommandLine(tmp_path)("changes")
    assert [line.split() for line in ended.lines] == [
        ["path", "task", "state", "added", "removed"],
        ["a.py", "fix", "DONE", "2", "1"],
        ["a.py", "bad", "FAILED", "1", "1"],
        ["d/b.py", "new", "DONE", "0", "1"],
        ["new.py", "new", "DONE", "1", "0"],
    ]
    assert ended.notes == "changes of tasks that are not DONE are not applied\n"
    ended = CommandLine(tmp_path)("changes", "new", "--batch", made.batch.id, "--path", "/d")
    assert [line.split() for line in ended.lines] == [["path", "task", "added", "removed"], ["d/b.py", "new", "0", "1"]]
    assert ended.notes == ""


def test_json_has_the_states_and_the_schema_of_an_analysis(tmp_path: Path, made: IsolatedBatch) -> None:
    answer = CommandLine(tmp_path)("changes", "--json").json
    check_schema(answer)
    assert [(row["path"], row["task"], row["state"]) for row in answer["records"]] == [
        ("a.py", "fix", "DONE"), ("a.py", "bad", "FAILED"), ("d/b.py", "new", "DONE"), ("new.py", "new", "DONE"),
    ]  # fmt: skip
    assert (answer["complete"], answer["percent"], answer["batch_id"]) == (False, 66.6, made.batch.id)


def test_stat_counts_lines(tmp_path: Path, made: IsolatedBatch) -> None:
    lines = CommandLine(tmp_path)("changes", "--stat", "fix", "new").lines
    assert lines[0] == "a.py   | 3 ++-"
    assert lines[-1] == "3 files changed, 3 lines added, 2 lines removed"


def test_patch_has_the_changes_that_apply_writes(tmp_path: Path, made: IsolatedBatch) -> None:
    patch = patch_of(CommandLine(tmp_path))
    other = tmp_path / "other"
    for name, content in BEFORE.items():
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_bytes(content)
    subprocess.run(["git", "apply"], cwd=other, input=patch.encode(), check=True)
    assert contents(other) == AFTER
    assert "+bad" in patch_of(CommandLine(tmp_path), "bad")


@pytest.mark.parametrize(
    ("paths", "reason"),
    [
        ([b"n/HEAD", b"n/objects/x", b"n/refs/x"], "n/HEAD: directory n would be a git repository of its own"),
        ([b"a", b"git~1/config"], "git~1/config: the path belongs to git or codebatch"),
    ],
)
def test_no_patch_is_printed_that_would_make_a_repository(tmp_path: Path, paths: list[bytes], reason: str) -> None:
    made = batch_of(tmp_path, "fix")
    made.end("fix", dict.fromkeys(paths, (None, b"x\n")))
    ended = CommandLine(tmp_path)("changes", "--patch", status=2)
    assert ended.lines == []
    assert f"error: no patch is printed: {reason}" in ended.notes
    assert len(CommandLine(tmp_path)("changes").lines) == len(paths) + 1


def test_apply_writes_the_changes_of_tasks_that_are_done(tmp_path: Path, made: IsolatedBatch) -> None:
    codebatch = CommandLine(tmp_path)
    assert codebatch("apply", "--dry-run").lines[-1] == "3 files can be written"
    assert contents(tmp_path) == BEFORE
    assert (applications(made), pinned_ids(made.store)) == ([], [])
    ended = codebatch("apply")
    assert ended.notes.splitlines()[0] == f"writing to {tmp_path}"
    assert ended.lines == ["written  a.py", "written  d/b.py", "written  new.py", "3 files written"]
    assert contents(tmp_path) == AFTER
    assert applied(made) == ["fix", "new"]
    assert pinned_ids(made.store) == [made.batch.id]
    assert codebatch("apply").lines == ["0 files written, 3 already applied"]
    assert len(applications(made)) == 1
    codebatch("apply", "--reverse")
    assert contents(tmp_path) == BEFORE
    assert (applied(made), len(applications(made))) == ([], 2)


def test_application_names_the_change_sets(tmp_path: Path, made: IsolatedBatch) -> None:
    digest = made.end("bad", {b"a.py": (b"a\n", b"good\n")}, round_=2)
    made.reopen("bad", 1)
    CommandLine(tmp_path)("apply", "bad")
    (application,) = applications(made)
    assert application.change_sets == (AppliedChangeSet(task=CommandId("bad"), changes=digest),)
    assert (application.n, application.root, application.is_reversed) == (1, bytes(tmp_path), False)
    assert contents(tmp_path)["a.py"] == b"good\n"


def test_partial_application_does_not_count(tmp_path: Path, made: IsolatedBatch) -> None:
    codebatch = CommandLine(tmp_path)
    codebatch("apply", "--path", "new.py")
    assert applied(made) == []
    (tmp_path / "a.py").write_bytes(b"dirty\n")
    codebatch("apply", status=3)
    assert applied(made) == []
    codebatch("apply", "--partial", status=3)
    assert applied(made) == ["new"]
    codebatch("apply", "--reverse", "--path", "new.py")
    assert applied(made) == []


def test_named_task_must_be_done(tmp_path: Path, made: IsolatedBatch) -> None:
    ended = CommandLine(tmp_path)("apply", "fix", "bad", status=3)
    assert "nothing is written: bad is FAILED, and only changes of tasks that are DONE can be applied" in ended.notes
    assert contents(tmp_path) == BEFORE


def test_unknown_task_is_an_error(tmp_path: Path, made: IsolatedBatch) -> None:
    for name in ("apply", "changes"):
        ended = CommandLine(tmp_path)(name, "fxi", status=2)
        assert f"batch {made.batch.id} has no task 'fxi'" in ended.notes
        assert "fix" in ended.notes


def test_task_without_changes_changes_nothing(tmp_path: Path) -> None:
    made = batch_of(tmp_path, "fix", "plain")
    made.end("fix", {})
    made.end("plain", None)
    codebatch = CommandLine(tmp_path)
    for words in (["changes"], ["changes", "--patch"], ["apply"], ["apply", "plain"]):
        ended = codebatch(*words)
        assert (ended.lines, "no changes" in ended.notes.splitlines()) == ([], True)


def test_batch_that_is_not_complete_has_no_firm_answer(tmp_path: Path) -> None:
    batch_of(tmp_path, "fix")
    codebatch = CommandLine(tmp_path)
    for words in (["changes"], ["changes", "--patch"], ["apply"]):
        assert codebatch(*words).notes.splitlines()[-1] == "no changes, but the batch is PENDING"


def test_changes_that_could_not_be_recorded_are_reported(tmp_path: Path) -> None:
    """The disk of the store was full."""
    made = batch_of(tmp_path, "fix", "lost")
    made.end("fix", {b"a.py": (b"a\n", b"1\n")})
    made.end("lost", None, type_="failed")
    codebatch = CommandLine(tmp_path)
    expected = "lost: its outputs or changes could not be stored; its tree was not kept"
    for words in (["changes"], ["changes", "--json"], ["changes", "lost"], ["apply"], ["apply", "--dry-run"]):
        assert expected in codebatch(*words, status=3).notes
    assert contents(tmp_path)["a.py"] == b"1\n"
    assert expected not in codebatch("changes", "fix").notes
    assert expected not in codebatch("apply", "--reverse").notes


def test_last_successful_attempt_counts(tmp_path: Path) -> None:
    made = batch_of(tmp_path, "fix")
    made.end("fix", {b"a.py": (b"a\n", b"1\n")})
    made.reopen("fix", 1)
    codebatch = CommandLine(tmp_path)
    assert codebatch("apply").lines == []
    made.end("fix", {b"a.py": (b"a\n", b"2\n")}, round_=2)
    codebatch("apply")
    assert contents(tmp_path)["a.py"] == b"2\n"


def test_changes_of_a_chain_are_composed(tmp_path: Path) -> None:
    """The tree of `second` had the changes of `first`."""
    made = batch_of(tmp_path, "second", "first", "third", needs=(("second", "first"), ("third", "second")))
    made.end("first", {b"a.py": (b"a\n", b"1\n"), b"x.py": (None, b"x\n"), b"d/b.py": (b"b\n", b"c\n")})
    made.end("second", {b"a.py": (b"1\n", b"2\n"), b"x.py": (b"x\n", None)})
    made.end("third", {b"a.py": (b"2\n", b"3\n")})
    codebatch = CommandLine(tmp_path)
    assert patch_of(codebatch).count("diff --git") == 2
    assert codebatch("apply").lines == ["written  a.py", "written  d/b.py", "2 files written"]
    assert contents(tmp_path) == {"a.py": b"3\n", "d/b.py": b"c\n"}
    assert applied(made) == ["first", "second", "third"]
    codebatch("apply", "--reverse", "third")
    assert contents(tmp_path)["a.py"] == b"2\n"
    assert applied(made) == ["first", "second"]
    codebatch("apply", "--reverse", "first", "second")
    assert contents(tmp_path) == BEFORE


@pytest.mark.parametrize(
    ("needs", "before"), [((), b"a\n"), ((), b"1\n"), ((("second", "first"),), b"a\n")], ids=["apart", "like", "old"]
)
def test_two_tasks_that_change_a_file_are_an_error(
    tmp_path: Path, needs: tuple[tuple[str, str], ...], before: bytes
) -> None:
    made = batch_of(tmp_path, "first", "second", needs=needs)
    made.end("first", {b"a.py": (b"a\n", b"1\n")})
    made.end("second", {b"a.py": (before, b"2\n")})
    codebatch = CommandLine(tmp_path)
    for words in (["apply"], ["changes", "--patch"]):
        ended = codebatch(*words, status=2)
        assert "several tasks change 1 file: a.py (first, second)" in ended.notes
        assert "name one of the tasks" in ended.notes
    assert contents(tmp_path) == BEFORE
    codebatch("apply", "first")
    assert contents(tmp_path)["a.py"] == b"1\n"


def test_latest_batch_with_changes_is_used(tmp_path: Path) -> None:
    """A task list without isolated tasks does not count."""
    _, analysis = make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, {"lint": {b"a.py": b"L\n"}})
    codebatch = CommandLine(tmp_path)
    made = batch_of(tmp_path, "fix")
    made.end("fix", {b"a.py": (b"a\n", b"F\n")})
    (tmp_path / "work.toml").write_text('[tasks.a]\nrun = "true"\n')
    codebatch("work", "run")
    assert codebatch("changes", "--json").json["batch_id"] == made.batch.id
    assert codebatch("changes", "--json", "--batch", "latest").json["batch_id"] == made.batch.id
    assert codebatch("changes", "--json", "--batch", analysis.id).json["batch_id"] == analysis.id
    codebatch("apply", "--batch", analysis.id)
    assert contents(tmp_path)["a.py"] == b"L\n"


def test_paths_of_a_worktree_are_relative_to_the_repository(tmp_path: Path) -> None:
    web = tmp_path / "web"
    web.mkdir()
    (tmp_path / ".git").mkdir()
    made = make_isolated_batch(tmp_path / ".codebatch", web, ["fix"], repository=tmp_path)
    made.end("fix", {b"top.py": (None, b"t\n"), b"web/w.py": (None, b"w\n")})
    CommandLine(web)("apply", "--batch", made.batch.id)
    assert contents(tmp_path) == {"top.py": b"t\n", "web/w.py": b"w\n"}


def test_paths_of_a_copy_are_relative_to_the_root(tmp_path: Path) -> None:
    web = tmp_path / "web"
    web.mkdir()
    made = make_isolated_batch(tmp_path / ".codebatch", web, ["fix"], isolation="copy")
    made.end("fix", {b"w.py": (None, b"w\n")})
    CommandLine(web)("apply", "--batch", made.batch.id)
    assert contents(tmp_path) == {"web/w.py": b"w\n"}


def test_other_project_must_be_named(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    made = batch_of(project, "fix")
    made.end("fix", {b"a.py": (b"a\n", b"A\n")})
    words = ("apply", "--store", project / ".codebatch", "--batch", made.batch.id)
    ended = CommandLine(other)(*words, status=2)
    assert "--root DIR" in ended.notes
    assert contents(project) == BEFORE
    CommandLine(other)(*words, "--root", "../project")
    assert contents(project)["a.py"] == b"A\n"


def test_status_counts_the_changes_that_are_not_applied(tmp_path: Path, made: IsolatedBatch) -> None:
    codebatch = CommandLine(tmp_path)
    line = f"changes   3 changes of 2 tasks not applied: codebatch changes --batch {made.batch.id}"
    assert line in codebatch("status", "--batch", made.batch.id).lines
    answer = codebatch("status", "--batch", made.batch.id, "--json").json
    check_schema(answer)
    assert answer["unapplied"] == {"tasks": ["fix", "new"], "changes": 3, "unchanged": []}
    codebatch("apply", "fix")
    assert line.replace("3 changes of 2 tasks", "2 changes of 1 task") in codebatch("status").lines
    codebatch("apply")
    assert not [line for line in codebatch("status").lines if line.startswith("changes")]


def test_status_names_a_needed_task_that_changed_files_again(tmp_path: Path) -> None:
    made = batch_of(tmp_path, "first", "second", "third", needs=(("second", "first"), ("third", "second")))
    made.end("first", {b"a.py": (b"a\n", b"1\n")})
    made.end("second", {})
    made.end("third", {}, type_="failed")
    status = CommandLine(tmp_path)
    assert not [line for line in status("status").lines if "ran again" in line]
    made.reopen("first", 1)
    made.end("first", {b"a.py": (b"a\n", b"2\n")}, round_=2)
    rows = {row["id"]: row["explanation"] for row in status("status", "--json").json["tasks"]}
    assert rows == {
        "first": "",
        "second": "changed nothing; needs first, which ran again since",
        "third": "exit status 1; needs first, which ran again since",
    }
    made.reopen("second", 1)
    made.end("second", {}, round_=2)
    assert "second" not in "".join(line for line in status("status").lines if "ran again" in line).split()[:2]


def test_rerun_does_not_concern_a_task_without_a_tree(tmp_path: Path) -> None:
    made = make_isolated_batch(
        tmp_path / ".codebatch", tmp_path, ["first", "second"], needs=[("second", "first")], others={"second": UNSET}
    )
    made.end("first", {b"a.py": (b"a\n", b"1\n")})
    made.end("second", None)
    made.reopen("first", 1)
    made.end("first", {b"a.py": (b"a\n", b"2\n")}, round_=2)
    assert "ran again" not in CommandLine(tmp_path)("status").text


def test_rerun_with_equal_changes_is_not_reported(tmp_path: Path) -> None:
    made = batch_of(tmp_path, "first", "second", needs=(("second", "first"),))
    made.end("first", {b"a.py": (b"a\n", b"1\n")})
    made.end("second", {})
    made.reopen("first", 1)
    made.end("first", {b"a.py": (b"a\n", b"1\n")}, round_=2)
    assert "ran again" not in CommandLine(tmp_path)("status").text


def test_repository_that_changes_would_make_is_refused(tmp_path: Path) -> None:
    made = batch_of(tmp_path, "one", "two")
    made.end("one", {b"n/HEAD": (None, b"ref: refs/heads/x\n"), b"n/objects/x": (None, b"x")})
    made.end("two", {b"n/refs/x": (None, b"x"), b"n/config": (None, b"[core]\n")})
    codebatch = CommandLine(tmp_path)
    reason = "directory n would be a git repository of its own"
    lines = [f"refused  {path}: {reason}" for path in ("n/HEAD", "n/config", "n/objects/x", "n/refs/x")]
    assert codebatch("apply", status=3).lines == [*lines, "0 files written, 4 refused"]
    codebatch("apply", "one")
    assert codebatch("apply", "two", status=3).lines == [lines[1], lines[3], "0 files written, 2 refused"]
    (tmp_path / "n/refs").mkdir()
    reason = "directory n is another repository"
    lines = [f"refused  {path}: {reason}" for path in ("n/HEAD", "n/objects/x")]
    assert codebatch("apply", "--reverse", "one", status=3).lines == [*lines, "0 files written, 2 refused"]
    (tmp_path / "n").rename(tmp_path / "bare")
    notes = codebatch("apply", "one", "--root", str(tmp_path / "bare"), status=2).notes
    assert "bare belongs to git or codebatch, so nothing is written there" in notes


def test_file_outside_of_the_sparse_checkout_is_not_replaced(tmp_path: Path) -> None:
    made = batch_of(tmp_path, "one")
    made.end("one", {b"d/b.py": (None, b"new\n")})
    codebatch = CommandLine(tmp_path)
    codebatch.shell("git init -q . && echo .codebatch > .gitignore && git add . && git sparse-checkout set --cone none")
    ended = codebatch("apply", status=3)
    assert ended.lines[0] == "refused  d/b.py: it already exists in the index of git"
    assert "new files are not compared with commit 012345678901, which git cannot read" in ended.notes
    assert not (tmp_path / "d").exists()


def test_python_interface_reads_the_contents(
    tmp_path: Path, made: IsolatedBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    read = [(each.path_text, each.task, each.state, each.read_before(), each.read_after()) for each in work.changes()]
    assert read == [
        ("a.py", "fix", "DONE", b"a\n", b"A\nA\n"),
        ("d/b.py", "new", "DONE", b"b\n", None),
        ("new.py", "new", "DONE", None, b"new\n"),
        ("a.py", "bad", "FAILED", b"a\n", b"bad\n"),
    ]
    assert [each.path for each in work.changes("new", path="/d", batch=made.batch.id)] == [b"d/b.py"]
    with pytest.raises(InvalidInput, match="has no task 'x'"):
        work.changes("x")


def test_python_interface_of_an_analysis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    edits: Edits = {"lint": {b"a.py": b"L\n"}, "parse": {b"d/b.py": None}}
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, edits)
    with codebatch_open(tmp_path / ".codebatch") as store:
        batch = store.batch("latest")
        found = [
            (each.path, each.task, each.state, each.read_before(), each.read_after()) for each in batch.changes().result
        ]
        assert found == [(b"a.py", "lint", "", b"a\n", b"L\n"), (b"d/b.py", "parse", "", b"b\n", None)]
        assert [each.path for each in batch.changes("parse").result] == [b"d/b.py"]
        assert batch.changes(path="nothing").result == []


@pytest.mark.parametrize("options", [["p"], ["p", "--partial"], ["--path", "a.py", "p"], ["--path", "d", "--trust"]])
def test_printed_undo_command_undoes_exactly_what_was_applied(tmp_path: Path, options: list[str]) -> None:
    made = batch_of(tmp_path, "p", "q")
    made.end("p", {b"a.py": (b"a\n", b"p\n")})
    made.end("q", {b"a.py": (b"a\n", b"q\n"), b"d/b.py": (b"b\n", b"q\n")})
    codebatch = CommandLine(tmp_path)
    conflict = codebatch("apply", status=2).notes
    assert "apply and commit its changes, then run the other task again" in conflict
    undo = codebatch("apply", *options).notes.splitlines()[-1]
    assert contents(tmp_path) != BEFORE
    codebatch(*undo.removeprefix("to undo this: codebatch ").split())
    assert contents(tmp_path) == BEFORE
