"""Tests of the fingerprint `codebatch/v1`: its input, and its uniqueness within a file."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from codebatch.compare.matching.findings import MatchableFinding
from codebatch.compare.matching.fingerprints import TEXT_BYTES_MAX, fingerprints


def matchable_finding(
    text: bytes, line: int = 1, column: int = 1, *, code: str = "F401", scope: str = ""
) -> MatchableFinding:
    return MatchableFinding("ruff", code, line, column, "told", scope, text, (), ())


def test_fingerprint_follows_the_specification() -> None:
    (one,) = fingerprints([matchable_finding(b"importos", 7, scope="A.b")])
    assert one == sha256(b"ruff\0F401\0A.b\0importos\x001").hexdigest()[:32]


def test_equal_fingerprints_are_numbered_by_location() -> None:
    later, first, second = fingerprints(
        [matchable_finding(b"x", 3), matchable_finding(b"x", 1, 1), matchable_finding(b"x", 1, 9)]
    )
    assert [first, second, later] == fingerprints(
        [matchable_finding(b"x", 11, 1), matchable_finding(b"x", 11, 9), matchable_finding(b"x", 13)]
    )
    assert first == fingerprints([matchable_finding(b"x")])[0]


def test_fingerprint_of_a_long_line_uses_its_beginning() -> None:
    text = b"x" * TEXT_BYTES_MAX
    assert (
        fingerprints([matchable_finding(text + b"y")])
        == fingerprints([matchable_finding(text)])
        != fingerprints([matchable_finding(text[1:])])
    )


@given(
    st.lists(
        st.builds(matchable_finding, st.sampled_from((b"", b"a", b"ab")), st.integers(0, 2), code=st.sampled_from("xy"))
    )
)
def test_fingerprints_of_a_file_are_unique(findings: list[MatchableFinding]) -> None:
    assert len(set(fingerprints(findings))) == len(findings)
