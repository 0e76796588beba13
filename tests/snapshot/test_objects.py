"""Tests of storing and reading objects: content is returned only if it has its digest."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from codebatch.errors import ObjectMissing, StoreUnwritable
from codebatch.model.digest import Digest, digest_bytes
from codebatch.store.batches.unfinished import sweep_parts
from codebatch.store.objects import pack_writer
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PackWriter, SizeChangedError
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import SHARED_MODE, RealCalls
from tests.support.calls import Operation, WatchedCalls


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "objects"


def _store(root: Path) -> ObjectStore:
    return ObjectStore(RealFiles(), root)


def _fill(root: Path, *contents: bytes) -> list[Digest]:
    with PackWriter(_store(root)) as writer:
        return [writer.add(content) for content in contents]


def _only(root: Path, suffix: str) -> Path:
    (path,) = root.glob(f"*{suffix}")
    return path


def test_sealed_objects_are_read_by_another_process(root: Path) -> None:
    contents = [b"", b"x", b"y" * 100_000, os.urandom(50_000)]
    digests = _fill(root, *contents)
    store = _store(root)
    assert [store.read(digest, len(content)) for digest, content in zip(digests, contents, strict=True)] == contents
    assert digests[0] == digest_bytes(b"")


def test_pack_is_named_by_its_digest_and_stores_an_object_once(root: Path) -> None:
    _fill(root, b"a", b"b", b"a")
    pack = _only(root, ".pack")
    assert pack.stem == hashlib.sha256(pack.read_bytes()).hexdigest()
    _fill(root, b"a", b"b")
    assert sorted(path.suffix for path in root.iterdir()) == [".idx", ".pack"]


def test_many_objects_make_deterministic_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_writer, "PACK_BYTES_TARGET", 30_000)
    monkeypatch.setattr(pack_writer, "COMPRESSED_TOGETHER_BYTES", 10_000)
    contents = [hashlib.sha256(str(number).encode()).digest() * 3 for number in range(3000)]
    listings = []
    for name in ("one", "two"):
        digests = _fill(tmp_path / name, *contents)
        listings.append(sorted(path.name for path in (tmp_path / name).iterdir()))
        store = _store(tmp_path / name)
        assert all(store.read(digest) == content for digest, content in zip(digests, contents, strict=True))
    assert listings[0] == listings[1]
    assert len(listings[0]) > 4


def test_an_object_in_a_pack_sealed_later_is_found(root: Path) -> None:
    early = _store(root)
    assert not early.has_key(hashlib.sha256(b"a").digest())
    (digest,) = _fill(root, b"a")
    assert early.read(digest) == b"a"


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "foreign"])
def test_damaged_pack_index_is_rebuilt_from_the_pack(root: Path, damage: str) -> None:
    digests = _fill(root, b"a", b"b" * 1000)
    index = _only(root, ".idx")
    sound = index.read_bytes()
    match damage:
        case "missing":
            index.unlink()
        case "cut":
            index.write_bytes(sound[:-1])
        case "flipped":
            index.write_bytes(sound[:40] + bytes([sound[40] ^ 1]) + sound[41:])
        case _:
            index.write_bytes(b"")
    assert _store(root).read(digests[1]) == b"b" * 1000
    assert index.read_bytes() == sound


def test_flipped_byte_in_a_pack_is_never_returned(root: Path) -> None:
    contents = [b"alpha" * 40, b"beta" * 3]
    digests = _fill(root, *contents)
    pack = _only(root, ".pack")
    sound = pack.read_bytes()
    for at in range(len(sound)):
        pack.write_bytes(sound[:at] + bytes([sound[at] ^ 0x10]) + sound[at + 1 :])
        store = _store(root)
        for digest, content in zip(digests, contents, strict=True):
            try:
                assert store.read(digest) == content
            except ObjectMissing:
                assert not _store(root).has_key(bytes.fromhex(digest)), "another reader still finds the damaged object"
        for bad in root.glob("*.bad"):
            bad.unlink()


def test_error_names_the_damaged_pack(root: Path) -> None:
    (digest,) = _fill(root, b"a" * 100)
    pack = _only(root, ".pack")
    pack.write_bytes(bytes(pack.stat().st_size))
    with pytest.raises(ObjectMissing, match=pack.name):
        _store(root).read(digest)


def test_wrong_expected_size_does_not_condemn_an_object(root: Path) -> None:
    (digest,) = _fill(root, b"a" * 100)
    with pytest.raises(ObjectMissing):
        _store(root).read(digest, 99)
    assert _store(root).read(digest, 100) == b"a" * 100


def test_objects_of_a_missing_or_truncated_pack_are_missing(root: Path) -> None:
    contents = [os.urandom(500) for _ in range(3)]
    digests = _fill(root, *contents)
    pack = _only(root, ".pack")
    pack.write_bytes(pack.read_bytes()[:-10])
    store = _store(root)
    assert [store.has_key(bytes.fromhex(digest)) for digest in digests] == [True, True, False]
    pack.unlink()
    with pytest.raises(ObjectMissing):
        store.read(digests[0])
    with pytest.raises(ObjectMissing, match="is not in any pack"):
        _store(root).read(digests[0])


def test_truncated_pack_gets_no_index(root: Path) -> None:
    _fill(root, *(os.urandom(500) for _ in range(3)))
    pack, index = _only(root, ".pack"), _only(root, ".idx")
    pack.write_bytes(pack.read_bytes()[:-10])
    index.unlink()
    _store(root).refresh()
    assert not index.exists()


def test_objects_condemned_by_another_process_are_missing_after_refresh(root: Path) -> None:
    (digest,) = _fill(root, b"a" * 100)
    store, key = _store(root), bytes.fromhex(digest)
    assert store.has_key(key)
    pack = _only(root, ".pack")
    pack.write_bytes(bytes(pack.stat().st_size))
    with pytest.raises(ObjectMissing):
        _store(root).read(digest)
    store.refresh()
    assert not store.has_key(key)


@pytest.mark.parametrize("spoiled", [0, 1])
@pytest.mark.parametrize("are_all_known", [False, True])
def test_second_copy_is_read_if_the_first_is_damaged(root: Path, spoiled: int, *, are_all_known: bool) -> None:
    """The result is the same whether the object is searched in the indexes or in the table of all objects."""
    _fill(root, b"a" * 100)
    first = _only(root, ".pack")
    aside = root.parent / "aside"
    first.rename(aside)
    digests = _fill(root, b"a" * 100, b"b")
    aside.rename(first)
    pack = sorted(root.glob("*.pack"))[spoiled]
    pack.write_bytes(b"\0" * pack.stat().st_size)
    store, key = _store(root), bytes.fromhex(digests[0])
    assert not are_all_known or store.has_key(key)
    assert store.read(digests[0]) == b"a" * 100
    assert store.has_key(key)


def test_adding_the_content_again_repairs_the_pack(root: Path) -> None:
    (digest,) = _fill(root, b"a" * 100)
    pack = _only(root, ".pack")
    pack.write_bytes(b"\0" * pack.stat().st_size)
    with pytest.raises(ObjectMissing):
        _store(root).read(digest)
    _fill(root, b"a" * 100)
    assert _store(root).read(digest) == b"a" * 100
    assert not list(root.glob("*.bad"))


def test_stale_prefetch_does_not_condemn_a_repaired_pack(root: Path) -> None:
    first, second, third = _fill(root, b"first" * 100, b"second" * 100, b"third" * 100)
    pack = _only(root, ".pack")
    sound = pack.read_bytes()
    pack.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    store = _store(root)
    assert [store.read(first), store.read(second)] == [b"first" * 100, b"second" * 100]
    pack.write_bytes(sound)
    assert store.read(third) == b"third" * 100
    assert not list(root.glob("*.bad"))


def test_prefetch_follows_several_positions(root: Path) -> None:
    contents = [random.Random(number).randbytes(30_000) for number in range(18)]
    digests = _fill(root, *contents)
    reads: list[Operation] = []
    store = ObjectStore(RealFiles(WatchedCalls(RealCalls(), reads.append)), root)
    store.refresh()
    # A read covers two objects. The fifth read discards the first.
    for number, is_read in [
        *((0, True), (1, False), (4, True), (0, False), (5, False), (8, True), (9, False), (1, False)),
        *((12, True), (4, False), (16, True), (17, False), (5, False), (1, True)),
    ]:
        reads.clear()
        assert store.read(digests[number]) == contents[number]
        assert [operation.call for operation in reads].count("open") == is_read, number


def test_objects_are_packed_alike_if_no_thread_can_be_started(tmp_path: Path) -> None:
    contents = [b"%d" % number for number in range(5000)]  # several batches, of which a thread would write the first
    digests = _fill(tmp_path / "with", *contents)
    before = threading.stack_size(1 << 47)  # Larger than the address space, so the system refuses to start a thread.
    try:
        assert _fill(tmp_path / "without", *contents) == digests
    finally:
        threading.stack_size(before)
    packs = [
        {path.name: path.read_bytes() for path in (tmp_path / variant).iterdir()} for variant in ("with", "without")
    ]
    assert packs[0] == packs[1]


def test_big_object_is_streamed_into_its_own_pack(root: Path) -> None:
    chunk = os.urandom(1 << 20)
    tracemalloc.start()
    try:
        with PackWriter(_store(root)) as writer:
            digest = writer.add_stream((chunk for _ in range(64)), 64 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
    assert _store(root).read(digest, 64 << 20) == chunk * 64
    assert [len(list(root.glob(suffix))) for suffix in ("*.pack", "*.part")] == [1, 0]


@pytest.mark.parametrize("size", [9, 11])
def test_stream_of_the_wrong_size_leaves_nothing(root: Path, size: int) -> None:
    writer = PackWriter(_store(root))
    with pytest.raises(SizeChangedError):
        writer.add_stream([b"0123456789"], size)
    writer.seal_packs()
    assert list(root.iterdir()) == []


def test_stream_is_not_read_beyond_its_announced_size(root: Path) -> None:
    def endless() -> Iterator[bytes]:
        yield b"0123456789"
        pytest.fail("it was read on")

    with pytest.raises(SizeChangedError):
        PackWriter(_store(root)).add_stream(endless(), 9)


def test_exception_discards_unsealed_objects(root: Path) -> None:
    def fail_halfway() -> None:
        with PackWriter(_store(root)) as writer:
            for number in range(3000):
                writer.add(str(number).encode())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert list(root.iterdir()) == []


def test_sweep_removes_the_part_of_a_dead_writer_only(root: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from codebatch.store.objects.pack_writer import PackPart\n"
        "from codebatch.system.files.files import RealFiles\n"
        "part = PackPart(RealFiles(), pathlib.Path(sys.argv[1]))\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        assert sweep_parts(RealFiles(), root) == 0
        child.kill()
        child.wait()
    assert len(list(root.glob("*.part"))) == 1
    assert sweep_parts(RealFiles(), root) == 1
    assert list(root.iterdir()) == []


def test_part_swept_before_its_lock_is_created_again(root: Path) -> None:
    """The sweeper has released its lock when we request it, so the file that we lock has no name."""
    swept: list[Path] = []

    def watch(operation: Operation) -> None:
        if operation.call == "flock" and operation.path.suffix == ".part" and not swept:
            swept.append(operation.path)
            operation.path.unlink()

    with PackWriter(ObjectStore(RealFiles(WatchedCalls(RealCalls(), watch)), root)) as writer:
        digest = writer.add(b"a")
    assert swept
    assert _store(root).read(digest) == b"a"


def test_sound_pack_of_the_same_name_is_never_removed(root: Path) -> None:
    """Two snapshots of equal trees run concurrently. A reader finds the pack at any moment."""
    removed: list[Path] = []

    def watch(operation: Operation) -> None:
        if operation.call == "unlink" and operation.path.suffix == ".pack":
            removed.append(operation.path)

    with PackWriter(ObjectStore(RealFiles(WatchedCalls(RealCalls(), watch)), root)) as second:
        second.add(b"a")
        _fill(root, b"a")
    assert not removed
    assert len(list(root.glob("*.pack"))) == 1


class _RefusingFiles(RealFiles):
    """Files on a disk that refuses the n-th write."""

    def __init__(self, allowed: int) -> None:
        super().__init__()
        self.left = allowed

    def _write_file(self, path: Path | str, data: bytes, *, sync: bool) -> None:
        self._spend()
        super()._write_file(path, data, sync=sync)

    def create_exclusive(self, source: Path | str, path: Path | str) -> bool:
        self._spend()
        return super().create_exclusive(source, path)

    def sync_directory(self, path: Path) -> None:
        self._spend()
        super().sync_directory(path)

    def make_directory(self, path: Path, mode: int = SHARED_MODE) -> bool:
        self._spend()
        return super().make_directory(path, mode)

    def _spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise StoreUnwritable("no space left")


def test_refused_write_leaves_a_working_store(tmp_path: Path) -> None:
    for allowed in range(20):
        root = tmp_path / str(allowed)
        files = _RefusingFiles(allowed)
        try:
            with PackWriter(ObjectStore(files, root)) as writer:
                digest = writer.add(b"content")
        except StoreUnwritable:
            assert not list(root.glob("*.part"))
            assert _fill(root, b"content") == [digest_bytes(b"content")]
            digest = digest_bytes(b"content")
            assert _store(root).read(digest) == b"content"
        else:
            assert files.left >= 0
            break
    else:
        pytest.fail("the write never succeeded")
    assert allowed > 3
