"""`codebatch/v1`: what is in it, what is not, and that no two are alike in a file."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from codebatch.compare.matching.findings import MatchableFinding
from codebatch.compare.matching.fingerprints import TEXT_BYTES_MAX, fingerprints


def found(text: bytes, line: int = 1, column: int = 1, *, code: str = "F401", scope: str = "") -> MatchableFinding:
    return MatchableFinding("ruff", code, line, column, "told", scope, text, b"", b"")


def test_a_fingerprint_is_as_the_specification_says() -> None:
    (one,) = fingerprints([found(b"importos", 7, scope="A.b")])
    assert one == sha256(b"ruff\0F401\0A.b\0importos\x001").hexdigest()[:32]


def test_equal_ones_are_numbered_in_the_order_of_their_places() -> None:
    later, first, second = fingerprints([found(b"x", 3), found(b"x", 1, 1), found(b"x", 1, 9)])
    assert [first, second, later] == fingerprints([found(b"x", 11, 1), found(b"x", 11, 9), found(b"x", 13)])
    assert first == fingerprints([found(b"x")])[0]


def test_of_a_text_that_is_minified_the_beginning_counts() -> None:
    text = b"x" * TEXT_BYTES_MAX
    assert fingerprints([found(text + b"y")]) == fingerprints([found(text)]) != fingerprints([found(text[1:])])


@given(st.lists(st.builds(found, st.sampled_from((b"", b"a", b"ab")), st.integers(0, 2), code=st.sampled_from("xy"))))
def test_no_two_of_a_file_are_alike(findings: list[MatchableFinding]) -> None:
    assert len(set(fingerprints(findings))) == len(findings)
