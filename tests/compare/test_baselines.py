"""Tests of baselines: their lines round-trip, merge in git, and match their findings after moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.compare.baselines import (
    BaselineEntry,
    BaselineError,
    baseline_entry,
    decode_baseline,
    encode_baseline,
    match_baseline,
)
from codebatch.compare.matching.findings import MatchableFinding

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
_entries = st.builds(BaselineEntry, _text, _text, st.binary(max_size=5), _text, _text, st.integers(0, 3))


def _baseline_entries(*rows: tuple[bytes, str, bytes]) -> list[BaselineEntry]:
    """Return the baseline entries of findings of one rule, each given by path, scope and line text."""
    findings = (
        (path, MatchableFinding("t", "C", line, 1, "m", scope, text, (), ()))
        for line, (path, scope, text) in enumerate(rows)
    )
    return baseline_entry(findings)


_A, _B = (b"a.py", "f", b"x=1"), (b"a.py", "g", b"y=1")

_PAIRED = {
    "nothing changed": ([_A, _B], [_A, _B], ["all", "all"]),
    "in another order": ([_A, _B], [_B, _A], ["all", "all"]),
    "one more of the same": ([_A], [_A, _A], ["all"]),
    "one of two went": ([_A, _A], [_A], ["all"]),
    "in a function of another name": ([_A], [(b"a.py", "h", b"x=1")], ["scope"]),
    "in a file of another path": ([_A], [(b"b.py", "f", b"x=1")], ["path"]),
    "the scope before the path": ([_A], [(b"b.py", "f", b"x=1"), (b"a.py", "h", b"x=1")], ["scope"]),
    "elsewhere in another function": ([_A], [(b"b.py", "h", b"x=1")], []),
    "another text": ([_A], [(b"a.py", "f", b"x=2")], []),
}


@pytest.mark.parametrize("case", _PAIRED)
def test_baseline_lines_match_findings(case: str) -> None:
    lines, findings, passes = _PAIRED[case]
    assert [pair.by for pair in match_baseline(_baseline_entries(*lines), _baseline_entries(*findings))] == passes


def test_first_of_identical_findings_are_known() -> None:
    assert [pair.finding_index for pair in match_baseline(_baseline_entries(_A), _baseline_entries(_A, _A, _A))] == [0]
    assert [
        (pair.line, pair.finding_index)
        for pair in match_baseline(_baseline_entries(_A, _A), _baseline_entries(_A, _A, _A))
    ] == [(0, 0), (1, 1)]


def test_finding_of_another_rule_does_not_match() -> None:
    (one,) = _baseline_entries(_A)
    assert match_baseline([one], [one._replace(code="D")]) == match_baseline([one], [one._replace(tool="u")]) == []


@given(st.lists(_entries), st.lists(_entries))
def test_baseline_round_trips_sorted_and_merges_line_by_line(
    entries: list[BaselineEntry], others: list[BaselineEntry]
) -> None:
    data = encode_baseline(entries)
    assert decode_baseline(data) == sorted({*entries})
    assert data.splitlines() == sorted({*data.splitlines()})
    assert encode_baseline(decode_baseline(data)) == data
    joined = b"".join(sorted({*data.splitlines(keepends=True), *encode_baseline(others).splitlines(keepends=True)}))
    assert joined == encode_baseline([*entries, *others])


@given(st.lists(_entries), st.lists(_entries))
def test_each_line_and_finding_is_matched_at_most_once(
    lines: list[BaselineEntry], findings: list[BaselineEntry]
) -> None:
    pairs = match_baseline(lines, findings)
    assert len({pair.line for pair in pairs}) == len({pair.finding_index for pair in pairs}) == len(pairs)
    assert len(match_baseline(lines, lines)) == len(lines)


_LINE = encode_baseline(_baseline_entries(_A))


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (_LINE + b"<<<<<<< HEAD\n", 2, "conflict marker"),
        (_LINE + b"\n=======\n", 3, "conflict marker"),
        (b">>>>>>> main\n", 1, "conflict marker"),
        (b"[]\n", 1, "not a valid line of a baseline"),
        (b"\xff\n", 1, "not a valid line of a baseline"),
        (b"[" * 100_000, 1, "not a valid line of a baseline"),
        (_LINE.replace(b'"path"', b'"place"'), 1, "not a valid line of a baseline"),
        (_LINE.replace(b'"ordinal":0', b'"ordinal":"0"'), 1, "not a valid line of a baseline"),
        (_LINE[:40], 1, "not a valid line of a baseline"),
    ],
    ids=repr,
)
def test_invalid_baseline_is_rejected(data: bytes, line: int, message: str) -> None:
    with pytest.raises(BaselineError, match=message) as caught:
        decode_baseline(data)
    assert caught.value.line == line
