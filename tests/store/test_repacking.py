"""Tests of repacking without unneeded objects: the others stay readable if packs overlap or are damaged."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.model.digest import Digest, digest_bytes
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.objects.frames import compress_frame
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.objects.repacking import choose_packs, repack_objects
from codebatch.system.files.files import RealFiles
from tests.support.command_line import write
from tests.support.disk import Disk
from tests.support.stores import collect_all

PLACE = Path("/a/b/objects")


def _objects(disk: Disk) -> ObjectStore:
    return ObjectStore(RealFiles(disk.calls()), PLACE)


@settings(max_examples=60, deadline=None)
@given(
    packs=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), min_size=1, max_size=5),
    needed=st.sets(st.integers(0, 12)),
)
def test_repacking_keeps_needed_objects_and_leaves_few_dead_bytes(packs: list[list[int]], needed: set[int]) -> None:
    """Packs overlap, as those of two concurrent writers do."""
    disk = Disk()
    RealFiles(disk.calls()).make_directory(PLACE)
    disk.sync()
    contents = {number: bytes([number]) * (number * number + 1) for number in range(13)}
    writers = [PackWriter(_objects(disk)) for _ in packs]
    for writer, numbers in zip(writers, packs, strict=True):
        for number in numbers:
            writer.add(contents[number])
    for writer in writers:
        writer.seal_packs()
    objects = _objects(disk)
    keys = {number: bytes.fromhex(digest_bytes(contents[number])) for number in contents}
    packed = {number for numbers in packs for number in numbers}
    needed_keys = {keys[number] for number in needed}
    assert repack_objects(objects, choose_packs(objects, needed_keys)) == []
    disk.lose_power()
    objects = _objects(disk)
    for number in packed & needed:
        assert objects.read(digest_bytes(contents[number])) == contents[number]
    assert choose_packs(objects, needed_keys).removed == []


def _write_two_objects(store: StoreDir) -> tuple[Digest, Digest, Path]:
    with PackWriter(store.objects()) as writer:
        small, large = writer.add(b"small"), writer.add(os.urandom(5000))
    (pack,) = (store.root / "objects").glob("*.pack")
    return small, large, pack


def test_damaged_pack_with_the_only_copy_of_a_needed_object_remains(store: StoreDir) -> None:
    small, _, pack = _write_two_objects(store)
    data = bytearray(pack.read_bytes())
    data[data.index(b"small")] ^= 1
    pack.write_bytes(data)
    objects = store.objects()
    assert repack_objects(objects, choose_packs(objects, {bytes.fromhex(small)})) == [pack.stem]
    assert pack.read_bytes() == data


def test_repacking_keeps_a_sound_copy_rather_than_a_damaged_copy(store: StoreDir) -> None:
    """The pack to be removed contains the only sound copy."""
    writers = [PackWriter(store.objects()) for _ in range(2)]
    small, _ = (writer.add(b"small") for writer in writers)
    large = [writers[at].add(os.urandom(4000)) for at in range(2)]
    for writer in writers:
        writer.seal_packs()
    needed = {bytes.fromhex(digest) for digest in (small, *large)}
    (stays,) = [path for path in (store.root / "objects").glob("*.pack") if b"small" in path.read_bytes()][:1]
    data = bytearray(stays.read_bytes())
    data[data.index(b"small")] ^= 1
    stays.write_bytes(data)
    objects = store.objects()
    at = next(at for at in range(2) if objects.read(large[at]) not in stays.read_bytes())
    repack_objects(objects, choose_packs(objects, needed - {bytes.fromhex(large[at])}))
    assert store.objects().read(small) == b"small"


def test_pack_rewritten_byte_for_byte_is_not_removed(store: StoreDir) -> None:
    """Its first object is also in another pack, damaged. So all of it is copied, under its existing name."""
    shared, own = os.urandom(3000), os.urandom(3000)
    with PackWriter(store.objects()) as writer:
        keys = [writer.add(shared), writer.add(own)]
    (pack,) = (store.root / "objects").glob("*.pack")
    large, other_pack, name = b"", b"", "g"
    while not name < pack.stem:
        large = os.urandom(20_000)
        other_pack = compress_frame(shared) + compress_frame(large)
        name = digest_bytes(other_pack)
    damaged = bytearray(other_pack)
    damaged[other_pack.index(shared[:100]) + 50] ^= 1
    (pack.parent / f"{name}.pack").write_bytes(other_pack)
    store.objects().refresh()  # this creates the index
    (pack.parent / f"{name}.pack").write_bytes(damaged)
    objects = store.objects()
    chosen = choose_packs(objects, {bytes.fromhex(key) for key in (*keys, digest_bytes(large))})
    assert [given_up.name for given_up in chosen.removed] == [pack.stem]
    assert repack_objects(objects, chosen) == []
    assert [store.objects().read(key) for key in keys] == [shared, own]


def test_repacking_merges_objects_that_are_in_two_packs(store: StoreDir) -> None:
    """Two concurrent snapshots leave such packs."""
    contents = [os.urandom(500), os.urandom(500)]
    writers = [PackWriter(store.objects()) for _ in range(2)]
    for writer, ordered in zip(writers, (contents, contents[::-1]), strict=True):
        for content in ordered:
            writer.add(content)
    for writer in writers:
        writer.seal_packs()
    keys = {bytes.fromhex(digest_bytes(content)) for content in contents}
    objects = store.objects()
    chosen = choose_packs(objects, keys)
    assert (len(objects.iter_packs()), len(chosen.removed), chosen.dead) == (2, 1, 0)
    repack_objects(objects, chosen)
    assert len([*(store.root / "objects").glob("*.pack")]) == 1
    assert [store.objects().read(digest_bytes(content)) for content in contents] == contents


def test_gc_ignores_foreign_files_among_packs(store: StoreDir) -> None:
    _, _, pack = _write_two_objects(store)
    (pack.parent / "copy.pack").write_bytes(pack.read_bytes())
    hostile = [write(pack.parent / name, "x") for name in ("notes.pack", f"{'0' * 63}.pack", ".hidden", "readme")]
    hostile.append(pack.parent / "copy.pack")
    torn = write(pack.parent / f"{'1' * 64}.pack", "torn")
    orphans = [write(pack.parent / f"{'2' * 64}{suffix}", "x") for suffix in (".idx", ".bad")]
    collect_all(store, keep=1)
    assert not pack.exists()
    assert [path for path in [*hostile, torn] if not path.exists()] == []
    assert [path for path in orphans if path.exists()] == []
