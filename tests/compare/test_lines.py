"""Tests of line matching: equal lines are matched in order, whatever the texts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.compare.matching import lines
from codebatch.compare.matching.lines import NO_LINE, pair_lines, pair_sequences, split_text

_TEXTS = st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"", b"}"]), max_size=40)


@pytest.mark.parametrize(
    ("old", "new", "paired"),
    [
        (b"", b"", [0]),
        (b"a", b"", [NO_LINE]),
        (b"a\nb\nc", b"a\nx\nb\nc", [0, 2, 3]),
        (b"a\nb\nc", b"a\nc", [0, NO_LINE, 1]),
        # The brackets are not unique. Except for the first, the lines between them decide which brackets match.
        (b"{\none\n}\n{\ntwo\n}", b"{\nnew\n}\n{\none\n}\n{\ntwo\n}", [0, 4, 5, 6, 7, 8]),
        # Two blocks changed places: the longer one stays.
        (b"a\nb\nc\nx\ny", b"x\ny\na\nb\nc", [2, 3, 4, NO_LINE, NO_LINE]),
        # These lines are unique only between anchors.
        (b"p\nq\nu\nw\nq\nr\nz", b"q\nu\nw\nk\nr\nk\nq", [NO_LINE, 0, 1, 2, NO_LINE, 4, NO_LINE]),
    ],
)
def test_lines_are_matched(old: bytes, new: bytes, paired: list[int]) -> None:
    assert list(pair_lines(split_text(old), split_text(new))) == paired


@given(old=_TEXTS, new=_TEXTS)
def test_equal_lines_are_matched_in_order_without_repetition(old: list[bytes], new: list[bytes]) -> None:
    paired = [(index, new_index) for index, new_index in enumerate(pair_sequences(old, new)) if new_index != NO_LINE]
    assert all(old[index] == new[new_index] for index, new_index in paired)
    assert all(one[1] < another[1] for one, another in pairwise(paired))
    assert len(paired) == len(old) or old != new


@given(text=_TEXTS, at=st.integers(0, 40), new=_TEXTS)
def test_inserted_lines_do_not_unmatch_other_lines(text: list[bytes], at: int, new: list[bytes]) -> None:
    distinct = [b"%d %b" % pair for pair in enumerate(text)]
    longer = [*distinct[:at], *new, *distinct[at:]]
    assert NO_LINE not in pair_sequences(distinct, longer)
    assert len(set(pair_sequences(longer, distinct))) >= len(distinct)


def test_oversized_text_is_matched_only_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = b"a\nb\nc\nd\ne", b"a\nx\nc\ny\ne"
    assert list(pair_lines(split_text(old), split_text(new))) == [0, NO_LINE, 2, NO_LINE, 4]
    for limit, value in (("COMPARED_BYTES_MAX", 8), ("COMPARED_LINES_MAX", 4)):
        with monkeypatch.context() as patch:
            patch.setattr(lines, limit, value)
            assert list(pair_lines(split_text(old), split_text(new))) == [0, NO_LINE, NO_LINE, NO_LINE, 4]


def test_any_text_is_matched_in_time() -> None:
    same = [b"same"] * 50_000
    assert len(set(pair_sequences(same, [b"other", *same]))) == 50_000
    assert set(pair_sequences([b"%d" % line for line in range(20_000)], [b"%d" % -line for line in range(20_000)]))
