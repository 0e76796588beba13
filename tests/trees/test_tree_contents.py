"""Reading of trees: which files are read again, and hints for the allocation of trees."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from pathlib import Path

import pytest

from codebatch.model.digest import digest_bytes
from codebatch.model.entry import Entry, EntryKind
from codebatch.snapshotting.tree_contents import TreeContents, decode_contents, encode_contents, read_tree
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.system.files.allocation import spread_subdirectories
from codebatch.system.files.files import RealFiles
from codebatch.system.files.mounts import file_system_kind_at
from tests.trees.places import write_files

TOP_DIRECTORY = 0x00020000
OTHER = digest_bytes(b"other")


def read(
    root: Path, *, before: TreeContents | None = None, known: dict[bytes, Entry] | None = None
) -> dict[bytes, str]:
    """Return the digest of each file. The store has the content `other`."""
    objects = ObjectStore(RealFiles(), root.parent / "objects")
    with PackWriter(objects) as writer:
        writer.add(b"other")
    with PackWriter(objects) as writer:
        reading = read_tree(bytes(root), objects, writer, stamp_ns=0, before=before, known=known, uses_git=False)
    return {path: row.key.hex() for path, row in reading.contents.rows.items()}


def contents(root: Path, stamp_ns: int) -> TreeContents:
    """Return the contents of a tree as they would be if all its files had the content `other`."""
    objects = ObjectStore(RealFiles(), root.parent / "objects")
    with PackWriter(objects) as writer:
        rows = read_tree(bytes(root), objects, writer, stamp_ns=0, uses_git=False).contents.rows
    return TreeContents({path: type(row)(row.stat, bytes.fromhex(OTHER), 0) for path, row in rows.items()}, stamp_ns)


def test_unchanged_file_is_read_again_only_if_its_time_is_not_before_the_stamp(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    write_files(root, {"a": b"five!"})
    changed_ns = max((root / "a").stat().st_mtime_ns, (root / "a").stat().st_ctime_ns)
    assert read(root, before=contents(root, changed_ns + 1)) == {b"a": OTHER}
    assert read(root, before=contents(root, changed_ns)) == {b"a": digest_bytes(b"five!")}


def test_changed_file_is_read_even_if_its_time_and_size_are_restored(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    write_files(root, {"a": b"five!"})
    before, status = contents(root, time.time_ns() + 10**10), (root / "a").stat()
    time.sleep(0.02)  # The clock of the file system ticks.
    (root / "a").write_bytes(b"FIVE!")
    os.utime(root / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read(root, before=before) == {b"a": digest_bytes(b"FIVE!")}


@pytest.mark.parametrize(
    ("kind", "size", "digest", "is_known"),
    [
        ("file", 5, OTHER, True),
        ("file", 4, OTHER, False),
        ("symlink", 5, OTHER, False),
        ("file", 5, digest_bytes(b"missing in the store"), False),
    ],
)
def test_known_file_is_not_read(tmp_path: Path, kind: EntryKind, size: int, digest: str, is_known: bool) -> None:
    root = tmp_path / "tree"
    write_files(root, {"a": b"five!"})
    entry = Entry(b"a", kind, False, size, type(OTHER)(digest))
    assert read(root, known={b"a": entry}) == {b"a": OTHER if is_known else digest_bytes(b"five!")}


def test_contents_survive_their_encoding(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    write_files(root, {"a": b"", "b/c": b"x"})
    made = contents(root, 7)
    assert decode_contents(encode_contents(made)) == made
    for data in (b"", encode_contents(made)[:-1], b"\x93\x01\x02\x03"):
        with pytest.raises(ValueError, match=r"."):
            decode_contents(data)


def test_subdirectories_are_spread_if_the_file_system_can(tmp_path: Path) -> None:
    spread_subdirectories(tmp_path / "missing")
    spread_subdirectories(tmp_path)
    mounts = Path("/proc/self/mountinfo").read_bytes()
    if file_system_kind_at(mounts, os.path.realpath(bytes(tmp_path))) != "ext4":
        pytest.skip("only ext4 has this flag")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    (flags,) = struct.unpack("i", fcntl.ioctl(descriptor, 0x80086601, bytes(4)))
    os.close(descriptor)
    assert flags & TOP_DIRECTORY
