"""Tests of splicing: a snapshot spliced from the previous one equals a first snapshot."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.errors import SourceUnreadable
from codebatch.snapshotting import snapshot as take
from codebatch.snapshotting.capture import capture_entry
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.listing import ListedTree, TreeLister
from codebatch.snapshotting.stat_cache import FileStat, StatRow, read_stat_cache
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.snapshots.snapshots import SnapshotDocument

from .conftest import Workbench

NAMES = ("a", "b.py", "d/a", "d/b.py", "d/e/new\nline", "d/\udcff", "caf\u00e9", 'd"', ".codebatchignore", ".gitignore")


def _index(bench: Workbench, snapshot_id: str) -> bytes:
    return (bench.store / "snapshots" / snapshot_id / "files.index.jsonl.zst").read_bytes()


def _frames(bench: Workbench, snapshot_id: str) -> SnapshotDocument:
    return bench.load_id(snapshot_id).document


@contextlib.contextmanager
def _is_spliced(monkeypatch: pytest.MonkeyPatch, *, expected: bool) -> Iterator[None]:
    """Check whether the enclosed code lists the tree completely (`expected=False`) or splices."""
    listed: list[TreeLister] = []
    whole = TreeLister.list_all

    def list_all(lister: TreeLister) -> ListedTree:
        listed.append(lister)
        return whole(lister)

    with monkeypatch.context() as patch:
        patch.setattr(TreeLister, "list_all", list_all)
        yield
    assert bool(listed) is not expected


def _take_with_and_without_cache(bench: Workbench) -> None:
    """Take a snapshot with the cache and another into an empty store. Check that their bytes are equal."""
    store, fresh_store = bench.store, bench.store.with_name("fresh")
    try:
        known = bench.take()
    except SourceUnreadable:
        bench.store = fresh_store
        with pytest.raises(SourceUnreadable):
            bench.take()
        bench.store = store
        return
    bench.store = fresh_store
    fresh = bench.take()
    assert (known.snapshot_id, known.digest, known.files, known.bytes, known.entries) == (
        fresh.snapshot_id, fresh.digest, fresh.files, fresh.bytes, fresh.entries,
    )  # fmt: skip
    assert (known.notes, known.skipped) == (fresh.notes, fresh.skipped)
    data, frames = _index(bench, fresh.snapshot_id), _frames(bench, fresh.snapshot_id).frames
    shutil.rmtree(bench.store)
    bench.store = store
    assert (_index(bench, known.snapshot_id), _frames(bench, known.snapshot_id).frames) == (data, frames)
    snapshot = bench.load(known)
    assert all(snapshot.read(entry.path) is not None for entry in snapshot.entries if entry.kind == "file")


def _open_without_blocking(path: str, flags: int) -> int:
    """Call open(2) without waiting for a reader of a FIFO."""
    return os.open(path, flags | os.O_NONBLOCK, 0o666)


def _apply(source: Path, step: tuple[str, str, str, bytes]) -> None:
    action, name, other_name, content = step
    path, target = source / name, source / other_name
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        match action:
            case "edit":
                with open(path, "wb", opener=_open_without_blocking) as file:
                    file.write(content)
            case "remove":
                path.unlink()
            case "rename":
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)
            case "chmod":
                path.chmod(path.stat().st_mode ^ 0o100)
            case "symlink":
                path.unlink(missing_ok=True)
                path.symlink_to(os.fsdecode(content) or "x")
            case "directory":
                path.unlink(missing_ok=True)
                path.mkdir()
                (path / "inside").write_bytes(content)
            case "touch":
                os.utime(path, ns=(1, 1))
            case _:
                os.mkfifo(path)


_names = st.sampled_from(NAMES)
_kinds = ("edit", "edit", "edit", "remove", "rename", "chmod", "symlink", "directory", "touch", "fifo")
_contents = st.sampled_from((b"x\n", b"y\n", b"a\n", b"version https://git-lfs.github.com/spec/v1\n"))
_steps = st.lists(st.lists(st.tuples(st.sampled_from(_kinds), _names, _names, _contents), max_size=3), max_size=5)


@pytest.mark.slow
@pytest.mark.parametrize("is_repository", [True, False])
@settings(max_examples=20, deadline=None)
@given(history=_steps)
def test_incremental_snapshots_match_first_snapshots(is_repository: bool, history: list) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as root:
        bench = Workbench(Path(root))
        for name in NAMES[:7]:
            bench.write(name, name.encode("utf-8", "surrogateescape"))
        if is_repository:
            bench.commit()
        _take_with_and_without_cache(bench)
        for steps in history:
            for step in steps:
                # With git's listing, a FIFO is noticed only when the listing changes.
                if not (is_repository and step[0] == "fifo"):
                    _apply(bench.source, step)
            _take_with_and_without_cache(bench)


def _warm(bench: Workbench, *names: str) -> None:
    for name in names or ("a.py", "b.py", "d/c.py"):
        bench.write(name, name)
    bench.settle()
    bench.take()


@pytest.mark.parametrize("is_repository", [True, False])
def test_edit_is_spliced_and_reads_only_its_file(
    bench: Workbench, is_repository: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_repository:
        bench.git("init", "-q")
    _warm(bench)
    for content in ("1", "22", "333"):
        bench.write("d/c.py", content)
        bench.settle()
        with _is_spliced(monkeypatch, expected=True):
            result = bench.take()
        assert (result.read_files, result.files) == (1, 3)
        assert bench.load(result).read(b"d/c.py") == content.encode()
        assert bench.take().reused
    _take_with_and_without_cache(bench)


def test_deleted_and_restored_tracked_file_is_spliced(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.py", "b.py"):
        bench.write(name)
    bench.commit()
    _warm(bench, "a.py", "b.py")
    for is_there in (False, True):
        _apply(bench.source, ("edit" if is_there else "remove", "b.py", "", b"again"))
        bench.settle()
        with _is_spliced(monkeypatch, expected=True):
            bench.take()
        _take_with_and_without_cache(bench)


def test_changes_with_wider_effects_trigger_a_full_listing(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\n"
    steps = (
        ("edit", ".codebatchignore", b"b.py\n"),
        ("edit", ".codebatchignore", b""),
        ("directory", "a.py", b""),
        ("edit", "c.py", pointer),
        ("edit", "c.py", b"x"),
        ("edit", "new.py", b""),
        ("remove", "b.py", b""),
    )
    for name in ("a.py", "b.py", "c.py"):
        bench.write(name)
    for what, name, content in steps:
        bench.settle()
        bench.take()
        _apply(bench.source, (what, name, "", content))
        bench.settle()
        with _is_spliced(monkeypatch, expected=False):
            bench.take()
        _take_with_and_without_cache(bench)


def test_fifo_appears_and_disappears_with_its_note(bench: Workbench) -> None:
    _warm(bench)
    for what in ("fifo", "edit", "fifo", "remove"):
        with contextlib.suppress(FileNotFoundError):
            (bench.source / "b.py").unlink()
        _apply(bench.source, (what, "b.py", "", b"x"))
        _take_with_and_without_cache(bench)


def test_rule_file_with_an_untrusted_time_triggers_a_full_listing(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = bench.write(".codebatchignore", "b.py\n")
    os.utime(rules, ns=(1 << 61, 1 << 61))
    bench.write("a.py")
    bench.take()
    for _ in range(2):
        with _is_spliced(monkeypatch, expected=False):
            bench.take()


def test_tree_with_a_store_tag_triggers_a_full_listing(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    _warm(bench, "a.py", "other/CACHEDIR.TAG")
    bench.write("a.py", "changed")
    with _is_spliced(monkeypatch, expected=False):
        bench.take()


def test_content_of_a_submodule_directory_determines_its_entry(bench: Workbench) -> None:
    inner = bench.source.parent / "inner"
    inner.mkdir()
    (inner / "x").write_bytes(b"x")
    bench.commit(cwd=inner)
    bench.write("a.py")
    bench.git("init", "-q")
    bench.git("submodule", "--quiet", "add", str(inner), "sub")
    bench.commit()
    bench.git("submodule", "--quiet", "deinit", "-f", "sub")
    bench.settle()
    _take_with_and_without_cache(bench)
    for what, name in (("edit", "a.py"), ("edit", "sub/deep/x"), ("remove", "sub/deep/x"), ("remove", "a.py")):
        _apply(bench.source, (what, name, "", b"1"))
        _take_with_and_without_cache(bench)


@pytest.mark.parametrize("damage", ["index", "document", "pack", "cache", "gone"])
def test_damaged_cache_data_triggers_a_full_listing(
    bench: Workbench, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _warm(bench)
    before = bench.take()
    directory = bench.store / "snapshots" / before.snapshot_id
    bench.write("b.py", "changed")
    bench.settle()
    match damage:
        case "index":
            data = bytearray((directory / "files.index.jsonl.zst").read_bytes())
            data[len(data) // 2] ^= 1
            (directory / "files.index.jsonl.zst").write_bytes(data)
        case "document":
            (directory / "snapshot.json").write_bytes(b"{}")
        case "pack":
            for path in (bench.store / "objects").iterdir():
                path.unlink()
        case "cache":
            (cache,) = (bench.store / "cache").glob("stat-*.bin")
            cache.write_bytes(cache.read_bytes()[:-1])
        case _:
            shutil.rmtree(directory)
    with _is_spliced(monkeypatch, expected=False):
        bench.take()
    _take_with_and_without_cache(bench)


def test_index_that_does_not_match_its_snapshot_is_not_spliced(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stat cache names the index by its digest. If that were wrong too, the snapshot's digest would reveal it."""
    _warm(bench)
    before = bench.take()
    bench.write("z.py")
    bench.settle()
    other_result = bench.take()
    (bench.source / "z.py").unlink()
    bench.settle()
    bench.take()
    bench.write("b.py", "changed")
    bench.settle()
    other_snapshot = bench.load(other_result)
    real = bench.load(before)
    for name in ("_path", "document"):
        monkeypatch.setattr(real, name, getattr(other_snapshot, name))
    monkeypatch.setattr(take, "load_snapshot", lambda *_: real)
    with _is_spliced(monkeypatch, expected=False):
        bench.take()


def test_clock_set_back_triggers_a_full_listing(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    _warm(bench)
    bench.write("b.py", "changed")
    bench.settle()
    monkeypatch.setattr(take, "make_stamp", lambda *_: 1)
    with _is_spliced(monkeypatch, expected=False):
        bench.take()


def test_racy_rows_are_read_again_during_splicing(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    _warm(bench)
    future = bench.source / "a.py"
    os.utime(future, ns=(1 << 61, 1 << 61))
    bench.settle = lambda: None  # type: ignore[method-assign]
    bench.take()
    (cache_path,) = (bench.store / "cache").glob("stat-*.bin")
    cache = read_stat_cache(bench.files, cache_path)
    assert cache is not None
    assert list(cache.iter_racy()) == [b"a.py"]
    with _is_spliced(monkeypatch, expected=True):
        assert bench.take().read_files == 1


def test_file_removed_during_splicing_is_absent(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    _warm(bench)
    path = bench.write("b.py", "changed")
    bench.settle()

    def capture_removed(
        directories: DirectoryDescriptors, name: bytes, listed_stat: FileStat, writer: PackWriter
    ) -> StatRow:
        path.unlink()
        return capture_entry(directories, name, listed_stat, writer)

    monkeypatch.setattr(take, "capture_entry", capture_removed)
    assert bench.take().files == 2


def test_edits_below_several_roots_are_spliced(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one/a.py", "two/b.py", "two/.gitignore", "named.log", ".gitignore", "elsewhere.py"):
        bench.write(name, "*.log\n")
    bench.commit()
    roots = [bench.source / name for name in ("one", "two", "named.log")]
    bench.settle()
    bench.take(*roots)
    for name in ("one/a.py", "two/b.py", "two/.gitignore", "named.log"):
        bench.write(name, f"# {name}\n*.log\n")
        bench.settle()
        with _is_spliced(monkeypatch, expected=True):
            result = bench.take(*roots)
        store, bench.store = bench.store, bench.store.with_name(f"fresh{name.replace('/', '')}")
        assert bench.take(*roots).snapshot_id == result.snapshot_id
        bench.store = store
