"""The steps of an isolated attempt in this process: full disks, lost contents and requests to stop."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from codebatch.model.digest import digest_bytes
from codebatch.model.outcome import OutcomeType
from codebatch.model.work.trees import TreeInput
from codebatch.protocol.messages import Assign, AttemptInput
from codebatch.store import layout
from codebatch.store.batches.store_directory import open_store
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.work.trees import TreeName
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from codebatch.work.control.status import failure_reason_text
from codebatch_workers.commands.attempt import AttemptResult
from codebatch_workers.commands.attempt_outputs import STORE_SECONDS_MAX
from codebatch_workers.commands.attempt_tree import AttemptTree
from codebatch_workers.commands.log import EVIDENCE_BYTES_MAX, AttemptLogWriter
from codebatch_workers.commands.masking import SecretMasker
from codebatch_workers.commands.tree_bases import TreeNotMade
from codebatch_workers.commands.trees import TreeMaker, make_tree_or_result
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.trees.places import FILES, Kind, TreePlace, isolated, make_tree_place

KINDS = pytest.mark.parametrize("kind", ["worktree", "copy"])
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
DONE = AttemptResult(type="result")


class FullDisk:
    """Calls that fail while the store has no space for objects."""

    def __init__(self) -> None:
        self.failures_left = 0

    def __call__(self, operation: Operation) -> Fate | None:
        if self.failures_left and operation.call == "create" and operation.path.suffix == layout.PART_SUFFIX:
            self.failures_left -= 1
            return Fate(FULL)
        return None


def make_maker(place: TreePlace, disk: FullDisk | None = None) -> TreeMaker:
    files = RealFiles(WatchedCalls(RealCalls(), disk or FullDisk()))
    store = open_store(files, place.place.store.root)
    return TreeMaker(store, place.place.batch.id, place.root, place.settings, store.objects())


def make_tree(
    maker: TreeMaker, kind: Kind = "worktree", *, round_: int = 1, given: TreeInput | None = None
) -> AttemptTree:
    return maker.make(kind, "a", round_, given or TreeInput(), print, lambda: True)


@KINDS
def test_changes_are_on_disk_before_the_outcome_is_committed(tmp_path: Path, kind: Kind) -> None:
    place = make_tree_place(tmp_path, isolated("true", kind=kind))
    tree = make_tree(make_maker(place), kind)
    (tree.root / "a").write_bytes(b"new")
    result = tree.finish(DONE, print)
    assert digest_bytes(b"new").encode() in place.read(result.changes)
    assert place.read(digest_bytes(b"new")) == b"new"


@KINDS
def test_full_disk_delays_the_end_of_an_attempt(tmp_path: Path, kind: Kind) -> None:
    place = make_tree_place(tmp_path, isolated("true", kind=kind))
    disk = FullDisk()
    tree = make_tree(make_maker(place, disk), kind)
    (tree.root / "a").write_bytes(b"new")
    disk.failures_left = 3
    slept: list[float] = []
    assert tree.finish(DONE, print, slept.append).type == "result"
    assert slept == [1.0] * 3


@pytest.mark.parametrize(
    ("type_", "expected"),
    [("result", ("failed", "check")), ("failed", ("failed", "exit")), ("blocked", ("blocked", None))],
)
def test_changes_that_cannot_be_stored_fail_a_success(
    tmp_path: Path, type_: OutcomeType, expected: tuple[OutcomeType, str | None]
) -> None:
    place = make_tree_place(tmp_path, isolated("true"))
    disk = FullDisk()
    tree = make_tree(make_maker(place, disk))
    (tree.root / "a").write_bytes(b"new")
    disk.failures_left = 1000
    notes: list[str] = []
    slept: list[float] = []
    given = AttemptResult(type=type_, reason="exit" if type_ == "failed" else None, exit_status=0)
    result = tree.finish(given, notes.append, slept.append)
    assert ((result.type, result.reason), result.changes) == (expected, "")
    expected_text = "its outputs or changes could not be stored" if type_ == "result" else ""
    assert result.reason != "check" or failure_reason_text(result.reason, result.exit_status) == expected_text
    assert sum(slept) == STORE_SECONDS_MAX
    path = place.trees.path(TreeName("a", 1))
    assert notes[0].startswith(f"the changes in {path} cannot be recorded: ")
    assert notes[1:] == [f"the tree is kept: {path}"]


def test_tree_that_the_command_removed_is_not_kept(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"))
    maker = make_maker(place)
    tree = make_tree(maker)
    shutil.rmtree(tree.root)
    notes: list[str] = []
    result = tree.finish(DONE, notes.append)
    assert (result.type, len(notes)) == ("failed", 1)
    maker.end(tree, result)
    maker.remove_ended()
    assert (place.names(), place.registered()) == ([], [])


def test_only_the_tree_of_the_last_failure_is_kept(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"))
    maker = make_maker(place)
    for round_, given in ((1, TreeInput()), (2, TreeInput()), (3, TreeInput(continued_round=2))):
        tree = make_tree(maker, round_=round_, given=given)
        maker.end(tree, tree.finish(AttemptResult(type="blocked" if round_ == 2 else "failed"), print))
        maker.remove_ended()
        assert place.names() == {1: ["a.r1"], 2: ["a.r2"], 3: ["a.r2", "a.r3"]}[round_]


def test_full_disk_while_the_tree_is_made(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"))
    disk = FullDisk()
    disk.failures_left = 1000
    with pytest.raises(TreeNotMade, match="No space left"):
        make_tree(make_maker(place, disk))
    assert place.names() == place.registered() == []


def test_space_is_checked_before_the_tree_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = make_tree_place(tmp_path, isolated("true"), files={"a": bytes(100_000)})
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=200_000))
    with pytest.raises(TreeNotMade, match=r"for a tree in .*: 208.2 kB must be free, but only 200.0 kB are"):
        make_tree(make_maker(place))
    assert place.names() == []


def test_contents_that_garbage_collection_removed_are_stored_again(tmp_path: Path) -> None:
    """While a task waits for an answer, nothing names the contents of the files that it has not changed."""
    place = make_tree_place(tmp_path, isolated("true"))
    maker = make_maker(place)
    tree = make_tree(maker)
    (tree.root / "a").write_bytes(b"first")
    blocked = tree.finish(AttemptResult(type="blocked"), print)
    maker.end(tree, blocked)
    maker.remove_ended()
    objects = place.place.store.objects()
    location = objects.find_location(digest_bytes(b"b\n"))
    assert location is not None
    for path in objects.root.glob(f"{location.pack}.*"):
        path.unlink()
    with PackWriter(place.place.store.objects()) as writer:  # The change set of the question names this content.
        writer.add(FILES["a"])
    tree = make_tree(make_maker(place), round_=2, given=TreeInput(continued_round=1))
    (tree.root / "sub/b").write_bytes(b"second")
    result = tree.finish(DONE, print)
    assert result.type == "result"
    assert place.read(digest_bytes(b"b\n")) == b"b\n"


@pytest.mark.parametrize("type_", ["cancelled", None])
@KINDS
def test_request_ends_the_making_of_a_tree(tmp_path: Path, kind: Kind, type_: OutcomeType | None) -> None:
    place = make_tree_place(tmp_path, isolated("true", kind=kind))
    maker = make_maker(place)
    log = AttemptLogWriter(
        RealFiles(), f"{tmp_path}/log", tmp_path, 1 << 20, masker=SecretMasker(), end_bytes=EVIDENCE_BYTES_MAX
    )
    assign = Assign(unit=place.place.unit(0), epoch=1, brief=AttemptInput(tree=TreeInput()))
    result = make_tree_or_result(maker, kind, assign, "a", log, lambda: AttemptResult(type=type_))
    maker.remove_ended()
    assert isinstance(result, AttemptResult), "the command would start"
    assert result.type == type_
    assert place.names() == []


def test_stopped_continuation_keeps_the_tree(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"))
    maker = make_maker(place)
    types: list[OutcomeType | None] = ["blocked", None, "result"]
    for round_, type_ in enumerate(types, 1):
        tree = make_tree(maker, round_=round_, given=TreeInput(continued_round=round_ // 2 and 1))
        assert tree.origin.round == 1
        result = tree.finish(AttemptResult(type=type_), print)
        maker.end(tree, result)
        maker.remove_ended()
        assert place.names() == [["a.r1"], ["a.r1", "a.r2"], []][round_ - 1]


def test_stopped_attempt_in_a_new_tree_leaves_none(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"))
    maker = make_maker(place)
    tree = make_tree(maker)
    maker.end(tree, tree.finish(AttemptResult(type=None), print))
    maker.remove_ended()
    assert place.names() == place.registered() == []


def test_copy_that_git_would_take_for_a_repository_is_not_made(tmp_path: Path) -> None:
    """The project has a `.git`, which its copy has not. git would run the programs that `config` names."""
    files = {"HEAD": b"ref: refs/heads/x", "objects/x": b"", "refs/x": b"", "config": b""}
    place = make_tree_place(tmp_path, isolated("true", kind="copy"), files=files)
    with pytest.raises(TreeNotMade, match="git would take the copy of the files"):
        make_tree(make_maker(place), "copy")
    assert place.names() == []
