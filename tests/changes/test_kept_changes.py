"""Garbage collection and diagnosis of work batches with change sets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from codebatch.model.change import encode_change_set
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.work.application import AppliedChangeSet
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.trees import TreeSettings
from codebatch.model.work.work_batch import Work
from codebatch.operations.maintenance.diagnosis import diagnose_store
from codebatch.operations.project.project_snapshot import take_snapshot_of_paths
from codebatch.operations.runs.collection import CollectionResult, UnappliedBatch, collect_garbage
from codebatch.snapshotting.selection import SourceRules
from codebatch.store.batches.batch_directory import batch_ids
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.store.maintenance.collection import NS_PER_DAY, iter_record_objects
from codebatch.store.snapshots.snapshots import snapshot_ids
from codebatch.store.work.applications import ApplicationStore
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.clock import wall_ns
from codebatch.system.files.files import RealFiles
from tests.changes.work_batches import IsolatedBatch, change_of, make_isolated_batch, put_objects
from tests.support.command_line import CommandLine, check_schema
from tests.support.stores import collect_all


def batches_of(directory: Path, count: int) -> list[IsolatedBatch]:
    """Make batches of one task list. Each has a task that is done."""
    made = [
        make_isolated_batch(
            directory / "store", directory, ["fix"], trees=directory / "trees", at_ns=(number + 1) * 10**9
        )
        for number in range(count)
    ]
    for number, each in enumerate(made):
        each.end("fix", {b"a.py": (b"before %d" % number, b"after %d" % number)})
    return made


def apply_of(made: IsolatedBatch, *, is_reversed: bool = False) -> None:
    digest = Digest(digest_of(made))
    change_set = AppliedChangeSet(task=CommandId("fix"), changes=digest)
    applications = ApplicationStore(made.batch.files, made.batch.root)
    applications.append([change_set], root=b"/", at_ns=1, is_reversed=is_reversed)


def digest_of(made: IsolatedBatch) -> str:
    (name,) = (made.batch.root / "outcomes").iterdir()
    return str(msgspec.json.decode(name.read_bytes())["outcomes"][0]["changes"])


def ids(made: Sequence[IsolatedBatch]) -> list[str]:
    return [each.batch.id for each in made]


def objects_of(store: StoreDir) -> set[str]:
    return {key.hex() for _, content, _ in store.objects().iter_packs() for key in content.all_keys}


def test_contents_of_kept_change_sets_stay(tmp_path: Path) -> None:
    made = batches_of(tmp_path, 3)
    store = made[0].store
    for each in made:
        apply_of(each)
    put_objects(store, b"unused")
    collected(store)
    assert batch_ids(store) == ids(made[2:])
    assert {digest_of(made[2]), digest_bytes(b"before 2"), digest_bytes(b"after 2")} <= objects_of(store)
    removed = {digest_bytes(content) for content in (b"unused", b"before 0", b"after 1")}
    assert not removed & objects_of(store)


def test_batch_needs_both_contents_of_each_change(tmp_path: Path) -> None:
    made = make_isolated_batch(tmp_path / "store", tmp_path, ["fix"])
    digest = made.end("fix", {b"a": (None, b"new"), b"b": (b"old", b"newer"), b"c": (b"deleted", None)})
    contents = map(digest_bytes, (b"new", b"old", b"newer", b"deleted"))
    assert sorted(iter_record_objects(made.store, made.batch)) == sorted([digest, *contents])


def test_change_sets_of_failed_and_earlier_attempts_stay(tmp_path: Path) -> None:
    made = make_isolated_batch(tmp_path / "store", tmp_path, ["fix"])
    made.end("fix", {b"a": (None, b"first")}, type_="failed")
    made.end("fix", {b"a": (None, b"second")}, round_=2)
    collect_all(made.store, keep=1)
    assert {digest_bytes(b"first"), digest_bytes(b"second")} <= objects_of(made.store)


def collected(store: StoreDir, *, removes_unapplied: bool = False) -> CollectionResult:
    return collect_garbage(store, keep=1, removes_unapplied=removes_unapplied)


def test_batches_with_unapplied_changes_are_kept_and_reported(tmp_path: Path) -> None:
    made = batches_of(tmp_path, 4)
    store = made[0].store
    for each in made[1:]:
        apply_of(each)
    apply_of(made[1], is_reversed=True)
    result = collected(store)
    assert result.batches == (made[2].batch.id,)
    assert result.unapplied == tuple(
        UnappliedBatch(batch_id=each.batch.id, tasks=1, changes=1) for each in (made[1], made[0])
    )
    assert collected(store, removes_unapplied=True).batches == (made[0].batch.id, made[1].batch.id)
    assert batch_ids(store) == ids(made[3:])


def test_unapplied_changes_outlive_the_directory_of_their_task_list(tmp_path: Path) -> None:
    source = tmp_path / "place" / "tree"
    source.mkdir(parents=True)
    made = [
        make_isolated_batch(tmp_path / "store", source, ["fix"], trees=tmp_path / "trees", at_ns=number * 10**9)
        for number in (1, 2)
    ]
    for number, each in enumerate(made):
        each.end("fix", {b"a.py": (b"before %d" % number, b"after %d" % number)})
    apply_of(made[1])
    shutil.rmtree(source)
    two_days_ago_ns = wall_ns() - 2 * NS_PER_DAY
    os.utime(source.parent, ns=(two_days_ago_ns, two_days_ago_ns))
    result = collect_garbage(made[0].store, keep=50)
    assert (result.batches, result.removed_sources) == ((made[1].batch.id,), (str(source),))
    assert [each.batch_id for each in result.unapplied] == ids(made[:1])
    apply_of(made[0])
    assert collect_garbage(made[0].store, keep=50).batches == (made[0].batch.id,)


@pytest.mark.parametrize("edits", [{}, None])
def test_batch_without_changes_is_removed(tmp_path: Path, edits: dict[bytes, tuple[bytes, bytes]] | None) -> None:
    made = [make_isolated_batch(tmp_path / "store", tmp_path, ["fix"], at_ns=number * 10**9) for number in (1, 2)]
    for each in made:
        each.end("fix", edits)
    assert collected(made[0].store).batches == (made[0].batch.id,)


def test_damaged_application_counts_as_not_applied(tmp_path: Path) -> None:
    made = batches_of(tmp_path, 2)
    apply_of(made[0])
    (made[0].batch.root / "applied" / "000001.json").write_bytes(b"{}")
    assert [each.batch_id for each in collected(made[0].store).unapplied] == ids(made[:1])
    (damage,) = diagnose_store(made[0].store, is_full=False).damaged
    assert "applied/000001.json is damaged" in damage.problem


def test_gc_prints_the_batches_that_it_keeps(tmp_path: Path) -> None:
    made = batches_of(tmp_path, 2)
    codebatch = CommandLine(tmp_path)
    words = ("gc", "--keep", "1", "--store", made[0].store.root)
    ended = codebatch(*words)
    assert ended.lines[0] == f"kept      {made[0].batch.id}: 1 change of 1 task is not applied"
    assert f"codebatch gc --unapplied --store {made[0].store.root}" in ended.notes
    check_schema(codebatch(*words, "--json").json)
    assert codebatch(*words, "--unapplied").lines[0] == f"batch     {made[0].batch.id}"


def test_snapshot_of_the_trees_stays_with_the_batch(tmp_path: Path) -> None:
    store = create_store(RealFiles(), tmp_path / "store")[0]
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("a")
    with store.writing():
        snapshot = take_snapshot_of_paths(store, [project], SourceRules()).snapshot_id
    command = Command(id=CommandId("fix"), run="true", isolation="copy")
    work = Work(
        source="test",
        root=os.fsencode(project),
        order=(command.id,),
        trees=TreeSettings(directory=b"/trees", snapshot=snapshot),
    )
    batch = make_work_batch(store, [command], work, at_ns=1)
    collect_all(store, keep=1, now_ns=wall_ns() + 100 * NS_PER_DAY)
    assert snapshot in snapshot_ids(store.files, store.root)
    assert digest_bytes(b"a") in objects_of(store)
    assert diagnose_store(store, is_full=True).damaged == ()
    store.files.remove_tree(store.root / "snapshots" / snapshot)
    (damage,) = diagnose_store(store, is_full=False).damaged
    assert f"snapshot {snapshot}, with which the trees of its tasks start, is missing" in damage.problem
    assert damage.names == (f"batches/{batch.id}",)


def test_batch_with_an_unreadable_list_keeps_all_snapshots(tmp_path: Path) -> None:
    made = batches_of(tmp_path, 2)
    (made[1].batch.root / "work.json").write_bytes(b"{}")
    notes: list[str] = []
    collect_all(made[0].store, keep=1, notes=notes)
    assert any("neither snapshots nor objects were removed" in note for note in notes)
    assert digest_of(made[0]) in objects_of(made[0].store)


PLANTED = {
    "missing": None,
    "not a change set": b"x",
    "path out of the tree": encode_change_set([change_of(b"../x", (b"a", b"b"))]),
    "absolute path": encode_change_set([change_of(b"/etc/passwd", (b"a", b"b"))]),
    "two changes of a path": 2 * encode_change_set([change_of(b"a", (b"a", b"b"))]),
    "not sorted": encode_change_set([change_of(b"b", (b"a", b"b"))])
    + encode_change_set([change_of(b"a", (b"a", b"b"))]),
    "nothing is changed": encode_change_set([change_of(b"a", (b"a", b"a"))]),
    "no digest": encode_change_set([change_of(b"a", (b"a", b"b"))]).replace(digest_bytes(b"b").encode(), b"../../x"),
    "not canonical": encode_change_set([change_of(b"a", (b"a", b"b"))]).replace(b":", b": "),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_change_set_is_damage(tmp_path: Path, name: str) -> None:
    """It is reported, never applied, and no object is removed."""
    made = make_isolated_batch(tmp_path / ".codebatch", tmp_path, ["fix"], files={b"a": b"a"})
    data = PLANTED[name]
    digest = Digest("0" * 64) if data is None else put_objects(made.store, b"a", b"b", data)[-1]
    made.end_with("fix", digest)
    codebatch = CommandLine(tmp_path)
    for words in (["changes"], ["changes", "--patch"], ["apply"], ["apply", "--partial"]):
        ended = codebatch(*words, status=4)
        assert f"the change set {digest}" in ended.notes
        assert "Traceback" not in ended.notes
    assert (tmp_path / "a").read_bytes() == b"a"
    (damage,) = diagnose_store(made.store, is_full=True).damaged
    assert digest in damage.problem
    notes: list[str] = []
    put_objects(made.store, b"unused")
    collect_all(made.store, keep=1, notes=notes)
    assert any(note.startswith("no objects were removed") for note in notes)
    assert digest_bytes(b"unused") in objects_of(made.store)
    assert codebatch("status", "--batch", made.batch.id).status == 0


def test_huge_change_set_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.store.work.change_sets.CHANGE_SET_BYTES_MAX", 100)
    made = batches_of(tmp_path, 1)[0]
    (damage,) = diagnose_store(made.store, is_full=True).damaged
    assert "more than 100" in damage.problem


def test_missing_contents_of_a_change_are_damage_and_refused(tmp_path: Path) -> None:
    made = make_isolated_batch(tmp_path / ".codebatch", tmp_path, ["fix"], files={b"a": b"a"})
    (digest,) = put_objects(made.store, encode_change_set([change_of(b"a", (b"a", b"b"))]))
    made.end_with("fix", digest)
    ended = CommandLine(tmp_path)("apply", status=3)
    assert "its new content, object" in ended.lines[0]
    assert (tmp_path / "a").read_bytes() == b"a"
    (damage,) = diagnose_store(made.store, is_full=True).damaged
    assert "is not in any pack" in damage.problem


@pytest.mark.parametrize("path", [b".git/hooks/x", b".GIT/x", b"d/.git/config", b".codebatch/store.json", b"link/x"])
def test_planted_path_is_refused(tmp_path: Path, path: bytes) -> None:
    canary = tmp_path / "canary"
    canary.mkdir()
    root = tmp_path / "project"
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / "link").symlink_to(canary)
    made = make_isolated_batch(root / ".codebatch", root, ["fix"])
    made.end("fix", {path: (None, b"planted\n"), b"ok.txt": (None, b"ok\n")})
    ended = CommandLine(root)("apply", "--partial", "--refused", status=3)
    assert ended.lines[-1] == "1 file written, 1 refused"
    assert list(canary.iterdir()) == []
    written = [name for name in root.rglob("*") if name.is_file() and name.read_bytes() == b"planted\n"]
    assert written == []


@pytest.mark.parametrize("is_copied", [False, True])
def test_trees_are_removed_with_their_batch_only_in_an_own_store(tmp_path: Path, is_copied: bool) -> None:
    """A copied store may be planted. Its batches name directories that are not ours."""
    made = batches_of(tmp_path, 2)
    store = made[0].store
    if is_copied:
        shutil.copytree(store.root, tmp_path / "copied", symlinks=True)
        store = open_store(RealFiles(), tmp_path / "copied")
    trees = [tmp_path / "trees" / store.id / each.batch.id / "fix.r1" for each in made]
    for tree in trees:
        tree.mkdir(parents=True)
        (tree / "file").write_text("x")
    assert collected(store, removes_unapplied=True).batches == (made[0].batch.id,)
    assert [tree.exists() for tree in trees] == [is_copied, True]
