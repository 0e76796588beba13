"""Tests of file matching: moved files, files edited while moved, and symmetry."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.compare.matching import files
from codebatch.compare.matching.files import FilePair, line_frequencies, pair_files

_CODE = b"".join(b"line %d of it\n" % number for number in range(20))
_EDITED = _CODE.replace(b"line 3 ", b"row 3 ").replace(b"line 7 ", b"row 7 ")
_OTHER = b"".join(b"something %d else\n" % number for number in range(20))


def _paired(old: dict[bytes, bytes], new: dict[bytes, bytes]) -> list[FilePair]:
    pairs, is_whole = pair_files(*_trees(old, new))
    assert is_whole
    return pairs


def _trees(old: dict[bytes, bytes], new: dict[bytes, bytes]):  # type: ignore[no-untyped-def]
    contents = {content.hex(): content for content in (*old.values(), *new.values())}
    trees = ({path: content.hex() for path, content in tree.items()} for tree in (old, new))
    return *trees, lambda digest: line_frequencies(contents[digest])


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ({}, {}, []),
        ({b"a.py": _CODE}, {b"a.py": _OTHER}, [(b"a.py", b"a.py", "path")]),
        ({b"a.py": _CODE}, {b"b/c.py": _CODE}, [(b"a.py", b"b/c.py", "content")]),
        ({b"a.py": _CODE}, {b"b.py": _EDITED}, [(b"a.py", b"b.py", "lines")]),
        ({b"a.py": _CODE}, {b"b.js": _EDITED}, []),
        ({b"a.test.js": _CODE}, {b"b/a.jsx": _EDITED}, [(b"a.test.js", b"b/a.jsx", "lines")]),
        ({b".a": _CODE}, {b".b": _EDITED}, [(b".a", b".b", "lines")]),
        ({b"a.py": _CODE}, {b"b.py": _OTHER}, []),
        # At least half of the lines of the longer file must match.
        ({b"a.py": _CODE}, {b"b.py": _CODE + _OTHER}, [(b"a.py", b"b.py", "lines")]),
        ({b"a.py": _CODE}, {b"b.py": _CODE + _OTHER + b"more\n"}, []),
        # The pair with the most common lines comes first.
        ({b"a.py": _CODE}, {b"b.py": _CODE + _OTHER, b"c.py": _EDITED}, [(b"a.py", b"b.py", "lines")]),
        (
            {b"x/a.py": _CODE, b"y/a.py": _CODE},
            {b"y/b/a.py": _CODE, b"x/c/a.py": _CODE},
            [(b"x/a.py", b"x/c/a.py", "content"), (b"y/a.py", b"y/b/a.py", "content")],
        ),
        ({b"a": b"", b"b": b""}, {b"c": b""}, [(b"a", b"c", "content")]),
        ({b"a.py": b"\n\n"}, {b"b.py": b"\n"}, []),
    ],
)
def test_files_are_matched(
    old: dict[bytes, bytes], new: dict[bytes, bytes], pairs: list[tuple[bytes, bytes, str]]
) -> None:
    assert [tuple(pair) for pair in _paired(old, new)] == pairs


_NAMES = st.sampled_from([b"a.py", b"b.py", b"d/a.py", b"d/c.py", b"e/f.py", b"g.js"])
_CONTENTS = st.sampled_from([_CODE, _EDITED, _OTHER, b"", _CODE + _OTHER[:40], _OTHER + _CODE[:90]])
_TREES = st.dictionaries(_NAMES, _CONTENTS, max_size=6)


@given(old=_TREES, new=_TREES)
def test_file_matching_is_symmetric_and_injective(old: dict[bytes, bytes], new: dict[bytes, bytes]) -> None:
    pairs = _paired(old, new)
    assert [(pair.new, pair.old, pair.how) for pair in pairs] == sorted(
        ((pair.old, pair.new, pair.how) for pair in _paired(new, old)), key=lambda pair: pair[1]
    )
    assert len({pair.old for pair in pairs}) == len({pair.new for pair in pairs}) == len(pairs)
    assert {path for path in old if path in new} <= {pair.old for pair in pairs}


def test_file_matching_beyond_its_limit_is_reported_as_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CANDIDATES_MAX", 1)
    old, new = {b"a.py": _CODE, b"b.py": _OTHER}, {b"c.py": _EDITED}
    pairs, is_whole = pair_files(*_trees(old, new))
    assert ([tuple(pair) for pair in pairs], is_whole) == ([(b"a.py", b"c.py", "lines")], False)
    assert pair_files(*_trees({b"a": b"1\n"}, {b"b": b"2\n"}))[1], (
        "as many files as the limit allows were not all compared"
    )


def test_files_of_equal_content_are_matched_by_name_then_in_order() -> None:
    old = {b"old/%d/f%d" % (number, number): b"same" for number in range(60)}
    new = {b"new/%d/f%d" % (number, number): b"same" for number in range(30, 90)}
    pairs = _paired(old, new)
    assert len(pairs) == 60
    assert sum(pair.old.split(b"/")[2] == pair.new.split(b"/")[2] for pair in pairs) == 30


def test_lines_are_counted_without_surrounding_white_space() -> None:
    assert line_frequencies(b"  a\n\n\ta \nb") == Counter({b"a": 2, b"b": 1})
