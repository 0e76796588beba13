"""Tests of index layers in several parts: a key is found in any part, and no other part is read."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.errors import CorruptFile
from codebatch.index.generations import IndexLayer, LayerPart
from codebatch.index.keys import TermLookup
from codebatch.index.parts import LayerReader, write_parts
from codebatch.model.digest import Digest
from codebatch.store import layout
from codebatch.system.files.files import RealFiles

SLOTS = (Digest("00" * 32), Digest("11" * 32))
WITHIN = Path("indexes/batch/1")

key_bytes = st.text("abc", min_size=1, max_size=3).map(str.encode)
postings = st.sets(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=1)
lookups = key_bytes.map(lambda key: TermLookup(key, is_prefix=False)) | st.builds(
    lambda key, first, last: TermLookup(key, is_prefix=True, first=first and key + first, last=last and key + last),
    key_bytes,
    st.just(b"") | key_bytes,
    st.just(b"") | key_bytes,
)


class _Files(RealFiles):
    """Files that record reads and do not wait for the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def read_range(self, path: Path | str, offset: int, length: int) -> bytes:
        self.asked.append(Path(path).name)
        return super().read_range(path, offset, length)

    def write_many(self, contents: Iterable[tuple[Path, bytes]]) -> None:
        for path, data in contents:
            path.write_bytes(data)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codebatch.index.parts.PART_BYTES_MAX", 80)
        root = tmp_path_factory.mktemp("layer") / WITHIN
        root.mkdir(parents=True)
        yield root


def _written(root: Path, pairs: dict[bytes, bytes]) -> tuple[LayerPart, ...]:
    for path in root.iterdir():
        path.unlink()
    return write_parts(_Files(), root, "base", pairs)


def _pairs(posted: dict[bytes, set[tuple[int, int]]]) -> dict[bytes, bytes]:
    return {
        key: b"".join(struct.pack("<II", frame, slot) for slot, frame in sorted(posted[key])) for key in sorted(posted)
    }


def _holds(lookup: TermLookup, key: bytes) -> bool:
    if not lookup.is_prefix:
        return key == lookup.key
    return key.startswith(lookup.key) and lookup.first <= key and (not lookup.last or key <= lookup.last)


@settings(max_examples=60, deadline=None)  # each example writes files
@given(posted=st.dictionaries(key_bytes, postings, max_size=20), chosen=st.lists(lookups, max_size=3))
def test_lookup_reads_only_the_parts_that_contain_its_key(
    root: Path, posted: dict[bytes, set[tuple[int, int]]], chosen: list[TermLookup]
) -> None:
    parts = _written(root, _pairs(posted))
    files = _Files()
    layer = LayerReader(files, root, "base", IndexLayer(parts=parts, slots=SLOTS))
    matching = {key for key in posted if any(_holds(lookup, key) for lookup in chosen)}
    returned = {(digest, frame) for digest, frames in layer.find(chosen) for frame in frames}
    assert returned == {(SLOTS[slot], frame) for key in matching for slot, frame in posted[key]}
    starts = [part.first for part in parts]
    needed = {sum(start <= key for start in starts) for key in matching}
    assert len(files.asked) == len({*files.asked}) <= len(needed) + len(chosen), (
        "more parts were read than can contain the keys"
    )
    everything = {(key, SLOTS.index(digest), frame) for key, digest, frames in layer.iter_posted() for frame in frames}
    assert everything == {(key, slot, frame) for key in posted for slot, frame in posted[key]}
    layer.close()


def test_part_is_filled_up_to_its_limit(root: Path) -> None:
    """A single value that exceeds the limit gets its own part."""
    pairs = {b"%02d" % number: bytes(8 * (20 if number == 5 else 1)) for number in range(10)}
    parts = _written(root, pairs)
    assert [part.first for part in parts] == [b"00", b"03", b"05", b"06", b"09"]
    assert [path.stat().st_size for path in sorted(root.iterdir())] == [part.length for part in parts]


def test_part_that_begins_with_the_last_searched_key_is_read(root: Path) -> None:
    keys = (b"a", b"ab", b"b", b"bb", b"bc", b"bd")
    parts = _written(root, _pairs({key: {(0, frame)} for frame, key in enumerate(keys)}))
    assert [part.first for part in parts] == [b"a", b"bb"]
    layer = LayerReader(RealFiles(), root, "base", IndexLayer(parts=parts, slots=SLOTS))
    returned = layer.find([TermLookup(b"b", is_prefix=True, first=b"b", last=b"bb")])
    assert sorted(frame for _, frames in returned for frame in frames) == [2, 3]


@pytest.mark.parametrize("first", [b"a", b"az", b"c", b"zz"])
def test_part_with_a_wrong_first_key_is_damage(root: Path, first: bytes) -> None:
    """The recorded first key of the second part is behind its keys, or within those of the first part."""
    parts = _written(root, dict.fromkeys((b"a", b"ab", b"b", b"bb", b"bc", b"bd"), bytes(8)))
    assert [part.first for part in parts] == [b"a", b"bb"]
    forged = (parts[0], LayerPart(first=first, length=parts[1].length, crc32=parts[1].crc32, content=parts[1].content))
    layer = LayerReader(RealFiles(), root, "base", IndexLayer(parts=forged, slots=SLOTS))
    for read in (lambda: list(layer.iter_posted()), lambda: list(layer.find([TermLookup(first, is_prefix=False)]))):
        with pytest.raises(CorruptFile, match="its keys do not match"):
            read()


def test_overlapping_parts_are_damage(root: Path, tmp_path: Path) -> None:
    parts = _written(root, dict.fromkeys((b"a", b"c"), bytes(8)))
    parts += write_parts(_Files(), tmp_path, "base", {b"b": bytes(8)})
    (second,) = tmp_path.iterdir()
    second.rename(root / layout.index_part_name("base", 1))
    layer = LayerReader(RealFiles(), root, "base", IndexLayer(parts=parts, slots=SLOTS))
    with pytest.raises(CorruptFile, match="its keys do not match"):
        list(layer.iter_posted())


@pytest.mark.parametrize("content", [0, 4096, 1 << 50])
def test_part_with_a_wrong_length_is_damage(root: Path, content: int) -> None:
    (part,) = _written(root, {b"a": bytes(8)})
    forged = LayerPart(first=part.first, length=part.length, crc32=part.crc32, content=content)
    layer = LayerReader(RealFiles(), root, "base", IndexLayer(parts=(forged,), slots=SLOTS))
    with pytest.raises(CorruptFile, match="has the wrong size"):
        list(layer.find([TermLookup(b"a", is_prefix=False)]))
