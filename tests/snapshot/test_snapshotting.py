"""Tests of snapshots of real trees, with everything that a file system can contain."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.errors import InvalidId, InvalidInput, ObjectMissing, SnapshotUnstable, StoreCorrupt, UnknownId
from codebatch.model.entry import encode_entries
from codebatch.snapshotting.snapshot import SnapshotProgress, SourceRules, take_snapshot
from codebatch.store.batches.store_directory import create_store
from codebatch.store.objects.frames import decompress_all
from codebatch.store.snapshots.snapshots import list_snapshots, load_snapshot
from codebatch.system.files.files import RealFiles

from .conftest import Workbench


def test_snapshot_records_path_kind_mode_size_and_content(bench: Workbench) -> None:
    bench.write("b.sh", "#!/bin/sh\n").chmod(0o755)
    bench.write("a.py", "print()\n")
    bench.write("empty", "")
    (bench.source / "link").symlink_to("../outside")
    result = bench.take()
    snapshot = bench.load(result)
    assert [(e.path, e.kind, e.executable, e.size) for e in snapshot.entries] == [
        (b"a.py", "file", False, 8),
        (b"b.sh", "file", True, 10),
        (b"empty", "file", False, 0),
        (b"link", "symlink", False, 10),
    ]
    assert snapshot.read(b"a.py") == b"print()\n"
    assert snapshot.read(b"link") is None
    assert bench.objects().read(snapshot.entries[3].object) == b"../outside"
    assert (result.files, result.bytes, result.entries) == (3, 18, 4) == (snapshot.files, snapshot.bytes, 4)


def test_snapshot_id_depends_only_on_the_tree(bench: Workbench, make_bench: Callable[[], Workbench]) -> None:
    other_bench = make_bench()
    for one in (bench, other_bench):
        one.write("a.py")
        one.write("sub/b.py")
    os.utime(other_bench.source / "a.py", (1, 1))
    (other_bench.source / "a.py").chmod(0o600)
    assert bench.take().snapshot_id == other_bench.take().snapshot_id
    other_bench.commit()
    assert other_bench.take().snapshot_id == bench.take().snapshot_id
    (other_bench.source / "a.py").chmod(0o700)
    assert other_bench.take().snapshot_id != bench.take().snapshot_id


def test_snapshot_retains_its_first_creation_time_and_source(bench: Workbench) -> None:
    bench.write("a.py")
    first = bench.load(bench.take()).document
    copy = bench.source.parent / "copy"
    shutil.copytree(bench.source, copy)
    take_snapshot(bench.files, bench.store, [copy], SourceRules(), now=lambda: 1_800_000_000.0)
    (known,) = list_snapshots(bench.files, bench.store)
    assert known == first
    assert known.created_at == "2023-11-14T22:13:20.000000Z"
    assert known.source.base == str(bench.source)


def test_index_file_is_the_encoded_entries(bench: Workbench) -> None:
    bench.write("a.py")
    snapshot = bench.load(bench.take())
    data = (bench.store / "snapshots" / snapshot.id / "files.index.jsonl.zst").read_bytes()
    assert decompress_all(data) == encode_entries(snapshot.entries)


HOSTILE_NAMES = [
    b"aux.c", b"con.py", b"a:b.txt", b"q?.txt", b"trail ", b"trail", b"d\\f.txt", b"new\nline", b"\xff\xfe.py", b"-rf",
    "caf\u00e9".encode(), "cafe\u0301".encode(), b"UPPER", b"upper", b".hidden", b"'", b'"', b" ", b"*",
]  # fmt: skip


@pytest.mark.parametrize("is_repository", [True, False])
def test_every_valid_file_name_round_trips(bench: Workbench, is_repository: bool) -> None:
    for name in HOSTILE_NAMES:
        with open(os.path.join(bytes(bench.source), name), "wb") as file:
            file.write(name)
    if is_repository:
        bench.git("init", "-q")
    snapshot = bench.load(bench.take())
    assert [entry.path for entry in snapshot.entries] == sorted(HOSTILE_NAMES)
    assert all(snapshot.read(name) == name for name in HOSTILE_NAMES)


@pytest.mark.parametrize("is_repository", [True, False])
def test_links_are_recorded_and_never_followed(bench: Workbench, is_repository: bool) -> None:
    secret = bench.source.parent / "secret.txt"
    secret.write_text("secret")
    (bench.source.parent / "outside").mkdir()
    (bench.source.parent / "outside/x.py").write_text("x")
    for name, target in (("file", "../secret.txt"), ("dir", "../outside"), ("loop", "loop"), ("dangling", "nowhere")):
        (bench.source / name).symlink_to(target)
    if is_repository:
        bench.git("init", "-q")
    snapshot = bench.load(bench.take())
    assert [(entry.path, entry.kind) for entry in snapshot.entries] == [
        (name, "symlink") for name in (b"dangling", b"dir", b"file", b"loop")
    ]
    assert bench.objects().read(snapshot.entries[2].object) == b"../secret.txt"


@pytest.mark.parametrize("is_repository", [True, False])
def test_fifos_sockets_and_devices_are_skipped_and_counted(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, is_repository: bool
) -> None:
    bench.write("sub/a.py")
    bench.write(".gitignore", "ignored\n")
    if is_repository:
        bench.git("init", "-q")
    os.mkfifo(bench.source / "ignored")
    os.mkfifo(bench.source / "pipe")
    os.mkfifo(bench.source / "sub/pipe2")
    monkeypatch.chdir(bench.source)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        result = bench.take()
    assert result.entries == 2
    assert [(item.path, item.reason) for item in result.skipped] == [
        (b"pipe", "fifo"),
        (b"sock", "socket"),
        (b"sub/pipe2", "fifo"),
    ]
    assert "skipped 2 fifos, for example pipe" in result.notes
    assert "skipped 1 socket, for example sock" in result.notes


@pytest.mark.parametrize("is_repository", [True, False])
def test_store_inside_the_source_is_never_included(bench: Workbench, is_repository: bool) -> None:
    bench.write("a.py")
    if is_repository:
        bench.commit()
    old_store = bench.source / "store-of-1x"
    old_store.mkdir()
    (old_store / "store.json").write_text('{"schema_name": "codebatch.store", "schema_version": 1}')
    (old_store / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
    create_store(RealFiles(), bench.source / "other-store")
    if is_repository:
        bench.git("add", "-f", "other-store")
    bench.store = bench.source / ".codebatch"
    first = bench.take()
    assert first.entries == 1
    assert bench.take().snapshot_id == first.snapshot_id
    with pytest.raises(InvalidInput):
        bench.take(bench.store)
    with pytest.raises(InvalidInput):
        bench.take(bench.store / "objects")


def test_several_roots_have_a_common_base(bench: Workbench) -> None:
    for path in ("a/x.py", "b/y.py", "c/z.py", "top.py", ".gitignore"):
        bench.write(path, "*.log\n" if path == ".gitignore" else "x\n")
    bench.write("b/y.log")
    bench.git("init", "-q")
    source = bench.source
    assert bench.paths(source / "a", source / "b") == [b"a/x.py", b"b/y.py"]
    assert bench.paths(source / "top.py") == [b"top.py"]
    assert bench.paths(source / "a/x.py", source / "c") == [b"a/x.py", b"c/z.py"]
    assert bench.paths(source / "b/y.log") == [b"y.log"], "an ignored file was left out although it was named"
    assert bench.paths(source, source / "a") == [b".gitignore", b"a/x.py", b"b/y.py", b"c/z.py", b"top.py"]


def test_missing_or_special_root_is_rejected(bench: Workbench) -> None:
    os.mkfifo(bench.source / "pipe")
    (bench.source / ".GIT").mkdir()
    for root in ("nowhere", "pipe", ".GIT"):
        with pytest.raises(InvalidInput):
            bench.take(bench.source / root)


@pytest.mark.parametrize("is_repository", [True, False])
def test_deeply_nested_directories_are_included(bench: Workbench, is_repository: bool) -> None:
    path = "/".join(["d"] * 500)
    _deep_file(bench.source, path.split("/"))
    if is_repository:
        bench.git("init", "-q")
    assert bench.paths() == [f"{path}/f.py".encode()]
    assert bench.paths() == [f"{path}/f.py".encode()]


@pytest.mark.parametrize("is_repository", [True, False])
def test_path_longer_than_path_max_is_included(bench: Workbench, is_repository: bool) -> None:
    parts = ["n" * 200] * 25
    _deep_file(bench.source, parts)
    if is_repository:
        bench.git("init", "-q")
    snapshot = bench.load(bench.take())
    assert [entry.path for entry in snapshot.entries] == [("/".join(parts) + "/f.py").encode()]
    assert snapshot.read(snapshot.entries[0].path) == b"deep\n"
    assert bench.take().snapshot_id == snapshot.id


def _deep_file(source: Path, parts: list[str]) -> None:
    fd = os.open(source, os.O_RDONLY)
    for part in parts:
        os.mkdir(part, dir_fd=fd)
        below = os.open(part, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    with open(os.open("f.py", os.O_WRONLY | os.O_CREAT, dir_fd=fd), "wb") as file:
        file.write(b"deep\n")
    os.close(fd)


def test_constantly_changing_file_fails_the_snapshot(bench: Workbench) -> None:
    """A timer of this process's CPU time touches the file, so it changes during its read even on a busy machine."""
    busy = bench.write("busy.bin")
    os.truncate(busy, 128 << 20)
    before = signal.signal(signal.SIGPROF, lambda *_: os.utime(busy))
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    try:
        with pytest.raises(SnapshotUnstable, match=r"busy\.bin"):
            bench.take()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert list_snapshots(bench.files, bench.store) == []
    assert list((bench.store / "objects").glob("*.pack")) == []
    assert bench.take().entries == 1


def test_file_removed_during_the_snapshot_is_absent(bench: Workbench) -> None:
    """The report is called between two files, so the file is removed after it was listed and before it is opened."""
    bench.write("a.py")
    doomed = bench.write("b.py")

    def vanish(_: SnapshotProgress) -> None:
        doomed.unlink(missing_ok=True)

    result = take_snapshot(bench.files, bench.store, [bench.source], SourceRules(), now=lambda: 0.0, report=vanish)
    assert [entry.path for entry in bench.load(result).entries] == [b"a.py"]


def test_fifo_in_place_of_a_listed_file_does_not_block(bench: Workbench) -> None:
    bench.write("a.py")
    swapped = bench.write("b.py")

    def swap(_: SnapshotProgress) -> None:
        if swapped.is_file():
            swapped.unlink()
            os.mkfifo(swapped)

    result = take_snapshot(bench.files, bench.store, [bench.source], SourceRules(), now=lambda: 0.0, report=swap)
    assert [entry.path for entry in bench.load(result).entries] == [b"a.py"]
    assert [(item.path, item.reason) for item in result.skipped] == [(b"b.py", "fifo")]


def test_impossible_codebatchignore_line_is_noted(bench: Workbench) -> None:
    bench.write("a.py")
    bench.write(".codebatchignore", b"\xef\xbb\xbf# ./x\n\n*.log\n./vendor/ \n!../x\n")
    assert bench.take().notes[1:] == [
        ".codebatchignore:4: './vendor/' can match no path: no path has a component '.'; write '/vendor/'"
    ]


def test_lfs_pointers_are_reported(bench: Workbench) -> None:
    bench.write("big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    note = "1 Git LFS pointer without content, for example big.bin"
    assert note in bench.take().notes
    bench.settle()
    bench.take()
    second = bench.take()
    assert second.reused
    assert note in second.notes


def test_large_file_is_streamed_in_constant_memory(bench: Workbench) -> None:
    big = bench.write("big.bin")
    os.truncate(big, 200 << 20)
    script = (
        "import sys, pathlib\n"
        "from codebatch.snapshotting.snapshot import SourceRules, take_snapshot\n"
        "from codebatch.system.files.files import RealFiles\n"
        "source, store = map(pathlib.Path, sys.argv[1:])\n"
        "take_snapshot(RealFiles(), store, [source], SourceRules(), now=lambda: 0.0)\n"
        "status = pathlib.Path('/proc/self/status').read_text()\n"
        "print(status.partition('VmHWM:')[2].split()[0])\n"
    )
    arguments = [sys.executable, "-c", script, str(bench.source), str(bench.store)]
    peak_kib = int(subprocess.run(arguments, check=True, capture_output=True).stdout)
    assert peak_kib < 80 << 10
    assert bench.take().bytes == 200 << 20


def test_damaged_or_missing_snapshot_is_rewritten(bench: Workbench) -> None:
    bench.write("a.py")
    bench.settle()
    result = bench.take()
    directory = bench.store / "snapshots" / result.snapshot_id
    index, document = directory / "files.index.jsonl.zst", directory / "snapshot.json"
    sound = index.read_bytes()
    index.write_bytes(sound[:-1])
    with pytest.raises(StoreCorrupt):
        _ = bench.load(result).entries
    assert bench.take().snapshot_id == result.snapshot_id
    assert index.read_bytes() == sound
    document.write_bytes(b"{")
    with pytest.raises(StoreCorrupt):
        bench.load(result)
    bench.take()
    assert bench.load(result).entries
    shutil.rmtree(directory)
    bench.take()
    assert bench.load(result).entries


def test_truncated_index_is_corrupt(bench: Workbench) -> None:
    bench.write("a.py")
    result = bench.take()
    index = bench.store / "snapshots" / result.snapshot_id / "files.index.jsonl.zst"
    sound = index.read_bytes()
    for length in range(len(sound)):
        index.write_bytes(sound[:length])
        with pytest.raises(StoreCorrupt):
            _ = bench.load(result).entries


@pytest.mark.parametrize("text", ["../../etc", "snap-", "snap-0123456789abcdeg", "", "snap-0123456789ABCDEF", "latest"])
def test_invalid_snapshot_id_is_rejected_before_lookup(bench: Workbench, text: str) -> None:
    with pytest.raises(InvalidId):
        load_snapshot(bench.files, bench.store, text)


def test_unused_snapshot_id_is_unknown(bench: Workbench) -> None:
    with pytest.raises(UnknownId):
        load_snapshot(bench.files, bench.store, "snap-0123456789abcdef")
    assert list_snapshots(bench.files, bench.store) == []


def test_missing_or_damaged_object_is_repaired_by_the_next_snapshot(bench: Workbench) -> None:
    bench.write("a.py", "a" * 500)
    bench.write("b.py", "b" * 500)
    bench.settle()
    result = bench.take()
    bench.take()
    (pack,) = (bench.store / "objects").glob("*.pack")
    sound = pack.read_bytes()
    pack.unlink()
    assert bench.take().read_files == 2
    assert bench.load(result).read(b"a.py") == b"a" * 500
    for at in range(len(sound)):
        pack.write_bytes(sound[:at] + bytes([sound[at] ^ 4]) + sound[at + 1 :])
        for path in (b"a.py", b"b.py"):
            try:
                bench.load(result).read(path)
            except ObjectMissing:
                assert bench.take().read_files >= 1
                assert bench.load(result).read(path) == path[:1] * 500


def test_concurrent_snapshots_of_a_tree_are_identical(bench: Workbench) -> None:
    for number in range(50):
        bench.write(f"{number}.py", str(number))
    results = []
    threads = [threading.Thread(target=lambda: results.append(bench.take())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({result.snapshot_id for result in results}) == 1
    assert len(results) == 4
    assert len(list_snapshots(bench.files, bench.store)) == 1
    assert sorted(path.name for path in (bench.store / "snapshots").iterdir()) == [results[0].snapshot_id]
