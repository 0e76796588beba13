"""Tests of word segments: every slot with a word is found, few others are, and each damaged byte is detected."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.errors import CorruptFile
from codebatch.index.generations import WordSegment
from codebatch.index.word_reader import SegmentReader
from codebatch.index.word_segments import CONTENTS_MAX, SLOTS_MAX, SegmentBuilder, group_size
from codebatch.index.words import BINARY_WORD
from codebatch.system.files.files import RealFiles

from .batches import spoilt


def _encode(contents: Sequence[set[bytes]], group: int) -> tuple[WordSegment, bytes]:
    builder = SegmentBuilder(group)
    for start in range(0, len(contents), group):
        keys = [b"%016d" % number for number in range(start, min(start + group, len(contents)))]
        builder.add_slot(keys, set[bytes]().union(*contents[start : start + group]))
    return builder.encode()


def _write(path: Path, contents: Sequence[set[bytes]], group: int = 1) -> SegmentReader:
    about, data = _encode(contents, group)
    path.write_bytes(data)
    return SegmentReader(RealFiles(), path, about)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("segment") / "words-000000.bin"


_WORDS = [b"word%d" % number for number in range(30)]


@settings(max_examples=100, deadline=None)
@given(contents=st.lists(st.sets(st.sampled_from(_WORDS)), min_size=1, max_size=60), group=st.integers(1, 3))
def test_every_content_with_the_words_is_found(path: Path, contents: Sequence[set[bytes]], group: int) -> None:
    reader = _write(path, contents, group)
    reader.check()
    assert reader.read_keys() == [b"%016d" % number for number in range(len(contents))]
    for words in ([_WORDS[0]], [_WORDS[1], _WORDS[2]], [b"absent1"]):
        with_words = {place for place, content in enumerate(contents) if content.issuperset(words)}
        positions = [*reader.find_positions(words)]
        assert with_words <= {*positions}
        assert positions == sorted({*positions} & {*range(len(contents))})


@pytest.mark.parametrize("group", [1, 2])
def test_a_rare_word_is_found_only_in_its_slot(path: Path, group: int) -> None:
    contents = [{b"common", b"rare%d" % number} for number in range(100)]
    reader = _write(path, contents, group)
    assert [*reader.find_positions([b"rare50"])] == [50, 51][:group]
    assert [*reader.find_positions([b"common", b"rare50"])] == [50, 51][:group]
    assert [*reader.find_positions([b"common"])] == [*range(100)]
    assert [*reader.find_positions([])] == [*range(100)]
    assert [*reader.find_positions([b"rare1", b"rare50"])] == []
    assert [reader.has_words([b"common", b"rare50"], place) for place in (0, 50)] == [False, True]


def test_a_short_word_is_also_found_in_binary_contents(path: Path) -> None:
    contents = [{b"other%d" % number} for number in range(20)]
    contents[3], contents[7] = {b"abc", b"abcd"}, {BINARY_WORD}
    reader = _write(path, contents)
    assert ([*reader.find_positions([b"abc"])], [*reader.find_positions([b"abcd"])]) == ([3, 7], [3])


def test_words_with_equal_hashes_share_their_slots(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("word_segments", "word_reader"):
        monkeypatch.setattr(f"codebatch.index.{module}.word_hash", lambda word: len(word) << 28)
    contents = [set[bytes]() for _ in range(16)]
    contents[2], contents[5], contents[9] = {b"aaaa"}, {b"bbbb", b"cccc"}, {b"ccccc"}
    reader = _write(path, contents)
    assert [*reader.find_positions([b"cccc"])] == [2, 5]
    assert [*reader.find_positions([b"ddddd"])] == [9]


def test_large_segments_have_several_buckets_and_few_false_matches(path: Path) -> None:
    """Each slot has other words. A word that no content has is found in one of a hundred searches."""
    contents = [{b"w%d_%d" % (number, other) for other in range(50)} for number in range(200)]
    about, _ = _encode(contents, 1)
    assert about.buckets == 16
    reader = _write(path, contents)
    for number in range(0, 200, 7):
        assert number in reader.find_positions([b"w%d_3" % number])
    absent = sum(bool([*reader.find_positions([b"absent%d" % number])]) for number in range(1000))
    assert absent < 30


def test_full_segment() -> None:
    builder = SegmentBuilder(group_size(CONTENTS_MAX))
    assert builder.group * SLOTS_MAX == CONTENTS_MAX
    for slot in range(SLOTS_MAX):
        assert not builder.is_full
        builder.add_slot([b"%016d" % slot] * builder.group, [b"w%d" % slot])
    assert builder.is_full
    assert builder.encode()[0].contents == CONTENTS_MAX


def test_segment_with_many_words_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.index.word_segments.WORDS_MAX", 10)
    builder = SegmentBuilder(1)
    builder.add_slot([b"k" * 16], [b"%d" % number for number in range(9)])
    assert not builder.is_full
    builder.add_slot([b"k" * 16], [b"a"])
    assert builder.is_full


def test_each_damaged_byte_is_detected(path: Path) -> None:
    contents = [{b"w%d_%d" % (number, other) for other in range(20)} for number in range(80)]
    about, sound = _encode(contents, 1)
    for data in spoilt(sound):
        path.write_bytes(data)
        with pytest.raises(CorruptFile, match=r"words-000000\.bin is damaged"):
            SegmentReader(RealFiles(), path, about).check()
        reader = SegmentReader(RealFiles(), path, about)
        with contextlib.suppress(CorruptFile):  # The damage may be in a part that this search does not read.
            assert 7 in reader.find_positions([b"w7_3"])
    path.unlink()
    with pytest.raises(FileNotFoundError):
        SegmentReader(RealFiles(), path, about).find_positions([b"w7_3"])


@pytest.mark.parametrize(
    "change",
    [
        {"contents": 0},
        {"contents": 81},
        {"contents": 257},
        {"group": 0},
        {"group": 300},
        {"buckets": 0},
        {"buckets": 3},
        {"buckets": 1 << 20},
        {"length": 1},
        {"keys_crc32": 1},
        {"directory_crc32": 1},
    ],
)
def test_impossible_numbers_are_detected(path: Path, change: dict[str, int]) -> None:
    about, data = _encode([{b"w%d" % number} for number in range(80)], 1)
    path.write_bytes(data)
    with pytest.raises(CorruptFile, match="is damaged"):
        SegmentReader(RealFiles(), path, msgspec.structs.replace(about, **change)).check()
