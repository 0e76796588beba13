"""Tests of the gates `parse` and `findings` for the changes that isolated tasks made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from codebatch.model.change import UnrecordedPath, encode_change_set
from codebatch.store.work.applications import ApplicationStore
from tests.changes.work_batches import Edit, IsolatedBatch, change_of, make_isolated_batch, put_objects
from tests.support.command_line import CommandLine, check_schema
from tests.support.git_repositories import git

FILES = {b"a.py": b"a\n", b"b.py": b"b\n"}
BROKEN = b"a\ndef f(:\n"
CONFLICT = b"<<<<<<< one\nx\n=======\ny\n>>>>>>> two\n"
BODY = b"".join(b"x%d = 1\n" % number for number in range(9))
EVIDENCE = "the new content has 1 syntax error, the first in line 2; the old one has 0"


def batch_of(directory: Path, needs: tuple[tuple[str, str], ...] = (), **edits: Mapping[bytes, Edit]) -> IsolatedBatch:
    """Make a batch of tasks that are done and made some edits."""
    made = make_isolated_batch(directory / ".codebatch", directory, list(edits), needs=needs, files=FILES)
    for task, edit in edits.items():
        made.end(task, edit)
    return made


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(root.glob("*.*")) if path.is_file()}


def refused(codebatch: CommandLine) -> dict[str, str]:
    """Map the path of each refused change to the gate."""
    return {row["path"]: row["refused"]["gate"] for row in codebatch("changes", "--refused", "--json").records}


def test_syntax_error_of_a_task_is_refused_with_the_reason(tmp_path: Path) -> None:
    made = batch_of(tmp_path, bad={b"a.py": (b"a\n", BROKEN)}, good={b"b.py": (b"b\n", b"B\n")})
    codebatch = CommandLine(tmp_path)
    assert codebatch("changes").lines[1].endswith(f"parse: {EVIDENCE}")
    answer = codebatch("changes", "--refused", "--json").json
    check_schema(answer)
    assert [(row["path"], row["refused"]) for row in answer["records"]] == [
        ("a.py", {"gate": "parse", "evidence": EVIDENCE})
    ]
    patch = codebatch("changes", "--patch")
    assert (b"a.py" in patch.stdout, b"b.py" in patch.stdout) == (False, True)
    assert b"def f(:" in codebatch("changes", "--patch", "--refused").stdout
    ended = codebatch("apply")
    assert ended.lines == [
        "written  b.py",
        f"left out a.py: refused by parse: {EVIDENCE}",
        "1 file written, 1 left out by gates",
    ]
    assert "add --refused" in ended.notes
    assert {each.task for each in ApplicationStore(made.batch.files, made.batch.root).read_applied()} == {"good"}
    assert "1 change of 1 task not applied" in codebatch("status").text
    assert codebatch("apply", "bad", "--no-commands", status=1).lines[-1] == "0 files written, 1 left out by gates"
    codebatch("apply", "bad", "--refused")
    assert contents(tmp_path) == {"a.py": BROKEN, "b.py": b"B\n"}
    assert codebatch("apply", "--reverse").lines[-1] == "2 files written"
    assert contents(tmp_path) == {"a.py": b"a\n", "b.py": b"b\n"}
    assert ApplicationStore(made.batch.files, made.batch.root).read_applied() == set()


@pytest.mark.parametrize(
    ("edits", "gates"),
    [
        ({b"new.py": (None, BROKEN)}, {"new.py": "parse"}),
        ({b"new.js": (None, b"f( {\n")}, {"new.js": "parse"}),
        ({b"notes.txt": (b"x\n", CONFLICT)}, {"notes.txt": "findings"}),
        ({b"notes.txt": (CONFLICT, CONFLICT + b"x\n")}, {}),
        ({b"a.py": (BROKEN, BROKEN + b"x = 1\n")}, {}),
        ({b"a.py": (b"x = = 1\n", b"x = = 1\n\ny = = 1\n")}, {"a.py": "parse"}),
        ({b"a.py": (BROKEN, None)}, {}),
        ({b"a.unknown": (None, BROKEN)}, {}),
        ({b"a.py": (b"a\n", b"\0\1(")}, {}),
        # A moved file is compared with the deleted one.
        ({b"a.py": (BROKEN, None), b"d.py": (None, BROKEN)}, {}),
        ({b"a.py": (BROKEN + BODY, None), b"d.py": (None, BROKEN + BODY + b"x = 2\n")}, {}),
        ({b"a.py": (BODY, None), b"d.py": (None, BODY + b"def f(:\n")}, {"a.py": "parse", "d.py": "parse"}),
        ({b"a.py": (BROKEN, None), b"d.py": (None, b"x\ny\nz\ndef g(:\n")}, {"d.py": "parse"}),
    ],
)
def test_new_content_is_compared_with_the_old_one(
    tmp_path: Path, edits: dict[bytes, Edit], gates: dict[str, str]
) -> None:
    batch_of(tmp_path, fix=edits)
    assert refused(CommandLine(tmp_path)) == gates


def test_links_and_missing_contents_are_not_judged(tmp_path: Path) -> None:
    made = make_isolated_batch(tmp_path / ".codebatch", tmp_path, ["link", "lost"], files=FILES)
    link = change_of(b"l.py", (None, b"(("))
    (digest, *_) = put_objects(made.store, encode_change_set([replace(link, change=replace(link.change, kind="link"))]))
    put_objects(made.store, b"((")
    made.end_with("link", digest)
    lost = put_objects(made.store, encode_change_set([change_of(b"a.py", (b"a\n", b"lost ("))]))
    made.end_with("lost", lost[0])
    codebatch = CommandLine(tmp_path)
    assert refused(codebatch) == {}
    assert "its new content, object" in codebatch("apply", "--dry-run", status=3).text


def test_changes_that_build_on_each_other_are_judged_together(tmp_path: Path) -> None:
    needs = (("second", "first"), ("third", "second"))
    made = batch_of(tmp_path, needs, first={b"a.py": (b"a\n", b"1\n")}, second={b"a.py": (b"1\n", BROKEN)}, third={})
    codebatch = CommandLine(tmp_path)
    assert [(row["task"], "refused" in row) for row in codebatch("changes", "--json").records] == [
        ("first", False),
        ("second", True),
    ]
    codebatch("apply")
    assert contents(tmp_path)["a.py"] == b"1\n"
    made.reopen("third", 1)
    made.end("third", {b"a.py": (BROKEN, b"a\ndef f():\n    pass\n")}, round_=2)
    assert refused(codebatch) == {}
    (tmp_path / "a.py").write_bytes(b"a\n")
    codebatch("apply")
    assert contents(tmp_path)["a.py"] == b"a\ndef f():\n    pass\n"


def test_later_task_does_not_hide_the_error_of_an_earlier_one(tmp_path: Path) -> None:
    needs = (("after", "broke"),)
    batch_of(tmp_path, needs, broke={b"a.py": (b"a\n", BROKEN)}, after={b"a.py": (BROKEN, b"b\n" + BROKEN)})
    codebatch = CommandLine(tmp_path)
    assert len(codebatch("changes", "--refused", "--json").records) == 2
    assert codebatch("apply", status=1).lines[-1] == "0 files written, 2 left out by gates"


def test_refused_change_is_no_conflict(tmp_path: Path) -> None:
    batch_of(tmp_path, bad={b"a.py": (b"a\n", BROKEN)}, good={b"a.py": (b"a\n", b"A\n")})
    codebatch = CommandLine(tmp_path)
    codebatch("apply")
    assert contents(tmp_path)["a.py"] == b"A\n"
    codebatch("apply", "--refused", status=2)


def test_trees_use_the_attributes_of_their_commit(tmp_path: Path) -> None:
    """Also `--branch` leaves the refused change out, and names the reason."""
    root = tmp_path / "project"
    root.mkdir()
    (root / ".gitattributes").write_text("*.py linguist-language=Text\n*.inc linguist-language=PHP\n")
    (root / "a.py").write_bytes(b"a\n")
    (root / "work.toml").write_text(
        '[trees]\ndirectory = "../trees"\n[defaults]\nisolation = "worktree"\n'
        "[tasks.text]\nrun = \"echo 'def f(:' >> a.py\"\n"
        "[tasks.php]\nrun = \"echo '<?php if (' > a.inc\"\n"
    )
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "config", "user.name", "n")
    git(root, "config", "user.email", "n@n")
    git(root, "commit", "-qm", "base")
    codebatch = CommandLine(root)
    codebatch("work", "run", "-q")
    assert refused(codebatch) == {"a.inc": "parse"}
    ended = codebatch("apply", "php", "--branch", "php", status=1)
    assert ended.lines == ["left out a.inc: refused by parse: the new content has 1 syntax error, the first in line 1"]
    assert "add --refused" in ended.notes
    codebatch("apply", "--branch", "both")
    assert git(root, "diff", "--name-only", "main...both") == "a.py"


def test_tasks_that_changed_nothing_are_named(tmp_path: Path) -> None:
    """Files that git ignores do not count as changes, but other work that is not recorded does."""
    made = batch_of(tmp_path, edit={b"a.py": (b"a\n", b"A\n")}, none={}, ignored={}, lost={})
    for task, unrecorded in (
        ("ignored", UnrecordedPath(path=b"x", reason="ignored")),
        ("lost", UnrecordedPath(path=b"x", reason="repository")),
    ):
        (digest,) = put_objects(made.store, encode_change_set([], [unrecorded]))
        made.reopen(task, 1)
        made.end_with(task, digest, round_=2)
    codebatch = CommandLine(tmp_path)
    answer = codebatch("status", "--json").json
    check_schema(answer)
    assert [task["id"] for task in answer["tasks"] if task["changed_nothing"]] == ["none", "ignored"]
    text = codebatch("status").text
    assert [line.split()[1] for line in text.splitlines() if line.endswith("-      changed nothing")] == [
        "none",
        "ignored",
    ]
    assert "Summary: 4 of 4 done (100%), 2 of them changed nothing" in text
    ended = codebatch("changes", status=3)
    assert "done, changed nothing: none, ignored\n" in ended.notes
    answer = codebatch("changes", "--json", status=3).json
    check_schema(answer)
    assert (answer["unchanged"], answer["older_batch"]) == (["none", "ignored"], None)
    assert codebatch("changes", "edit", "--json").json["unchanged"] == []


def test_changes_and_apply_name_an_older_batch(tmp_path: Path) -> None:
    older = make_isolated_batch(tmp_path / ".codebatch", tmp_path, ["fix", "bad"], files=FILES, at_ns=1)
    older.end("fix", {b"a.py": (b"a\n", b"A\n")})
    older.end("bad", {}, type_="failed")
    batch_of(tmp_path, fix={b"a.py": (b"a\n", b"A\n")})
    codebatch = CommandLine(tmp_path)
    for words in (("changes",), ("changes", "--patch"), ("apply", "--dry-run"), ("apply",)):
        notes = codebatch(*words).notes
        assert f"an older batch of this list is partial: {older.batch.id} (1 of 2 tasks not done)" in notes
    answer = codebatch("apply", "--json").json
    check_schema(answer)
    assert answer["older_batch"]["batch_id"] == older.batch.id
